/** The directory of a log, before LMDB is let into it. */
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isMysyncError, type MysyncError, makeFolder } from '@mysync/core';
import { logErrors } from './errors.ts';

/** What a file system says in which no file can be made, however much room there is (below /proc, read-only ones). */
const NO_FILES: ReadonlySet<string> = new Set(['ENOENT', 'EACCES', 'EPERM', 'EROFS', 'EINVAL', 'ENOTDIR']);

export const DATA_FILE = 'data.mdb';

/** Somebody has opened a log in this directory before: whoever only looks need not make one. */
export function isLogThere(path: string): boolean {
  return existsSync(join(path, DATA_FILE));
}

/** Errors name the whole path: a relative one says little in the log of a service. */
export function prepareDirectory(given: string): string {
  const path = resolve(given);
  try {
    // the log holds whole rows: nobody but its owner reads it
    makeFolder(path, 0o700);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return realpathSync(path);
  } catch (cause) {
    throw pathError(path, cause);
  }
}

/** Not a catalogue error, and no matter of room. */
export function isNoFile(error: unknown): boolean {
  return !isMysyncError(error) && NO_FILES.has((error as NodeJS.ErrnoException).code ?? '');
}

export function pathError(path: string, cause: unknown): MysyncError {
  return logErrors.LOG_PATH({ message: `the log's directory ${path} cannot be used`, where: { path }, cause });
}
