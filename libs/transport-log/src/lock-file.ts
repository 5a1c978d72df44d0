/**
 * Room for the lock file before LMDB maps it. LMDB makes it sparse, and a page of it that is first written when the disk is full
 * kills the process without a word (SIGBUS, seen on tmpfs). So the whole file is written beforehand: LMDB takes a file that is
 * larger than it needs as it is, with more places for readers.
 */
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';

/** 512 readers of 64 bytes, and the two mutexes before them, with room to spare. */
const BYTES = 65_536;

/** Makes the lock file where there is none; throws what the file system says (ENOSPC), and leaves nothing half made. */
export function reserveLockFile(file: string): void {
  let fd: number;
  try {
    fd = openSync(file, 'wx', 0o664);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return;
    throw error;
  }
  try {
    let written = 0;
    while (written < BYTES) written += writeSync(fd, Buffer.alloc(BYTES - written), 0, BYTES - written, written);
  } catch (error) {
    unlinkSync(file);
    throw error;
  } finally {
    closeSync(fd);
  }
}
