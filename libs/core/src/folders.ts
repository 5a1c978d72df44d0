import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder and those above it that are missing; gives what it made, outermost first. Throws what the file system says. In place of Node's recursive `mkdir`, which tries
 * for ever where the system says ENOENT for a name whose folder is there (below /proc; seen on Node 20.20).
 */
export function makeFolder(path: string, mode?: number): readonly string[] {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  return missing.filter((folder) => isNew(folder, mode));
}

/** False: somebody else made it meanwhile. */
function isNew(folder: string, mode: number | undefined): boolean {
  try {
    mkdirSync(folder, mode);
    return true;
  } catch (error) {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return false;
    throw error;
  }
}
