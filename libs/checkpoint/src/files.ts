/** What both files of a store need of the file system. */
import { open, readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isMysyncError } from '@mysync/core';
import { checkpointErrors } from './errors.ts';

export async function writeSynced(path: string, content: string): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Texts beside `path` of owners that died, or were frozen, while they wrote them. */
export async function removeTemporaries(path: string): Promise<void> {
  const folder = dirname(path);
  const prefix = `${basename(path)}.`;
  for (const file of await readdir(folder)) {
    if (!file.startsWith(prefix) || !/^[0-9a-f]{16}\.tmp$/.test(file.slice(prefix.length))) continue;
    await rm(join(folder, file), { force: true });
  }
}

/** `what` is what was to be saved, for the message. */
export function translate(error: unknown, what: string, path: string, signal?: AbortSignal): unknown {
  if (isMysyncError(error) || (signal?.aborted && error === signal.reason)) return error;
  const code = (error as NodeJS.ErrnoException).code;
  const details = { where: { path }, cause: error };
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return checkpointErrors.CHECKPOINT_DISK_FULL({
      ...details,
      message: `${what} cannot be saved: the disk is full`,
    });
  }
  return checkpointErrors.CHECKPOINT_UNWRITABLE({ ...details, message: `${what} cannot be saved` });
}
