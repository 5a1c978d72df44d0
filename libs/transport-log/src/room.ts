/** The room that the log has on its disk, and what is said when there is none. Asked of the file system once per group of writes. */
import { statfsSync } from 'node:fs';
import type { MysyncError } from '@mysync/core';
import { transportErrors } from '@mysync/transport';
import { isNoFile, pathError } from './directory.ts';
import { logErrors } from './errors.ts';

export interface RoomOptions {
  readonly path: string;
  /** Bytes of batches that the log may hold. */
  readonly maxBytes: number;
  /** Bytes that stay free on the disk. */
  readonly minFreeBytes: number;
}

/** A write may cost this many times its bytes: whole pages, copies of tree pages, free space that is too scattered. */
const WRITE_AMPLIFICATION = 2;
/** Of a log that is opened: its lock file, root pages and first entries. */
const OPEN_BYTES = 2 ** 18;

/** Throws where LMDB's own pages have no room, the cause of a TRANSPORT_DISK_FULL: what LMDB maps and cannot write kills the process. */
export function requireRoomToOpen(path: string): void {
  const { bavail, bsize, blocks } = statfsSync(path);
  // a file system without blocks says nothing of its room
  if (blocks === 0 || bavail * bsize >= OPEN_BYTES) return;
  throw new Error(`${bavail * bsize} bytes are free, opening takes ${OPEN_BYTES}`);
}

export class Room {
  readonly #options: RoomOptions;
  /** What this group of writes may still add to the file. */
  #freeBudget: number | undefined;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /** A new group of writes: the file system is asked anew. */
  begin(): void {
    this.#freeBudget = undefined;
  }

  /** Takes room for `bytes` more of a log that holds `size`, or throws TRANSPORT_DISK_FULL. */
  take(bytes: number, size: number): void {
    const { path, maxBytes, minFreeBytes } = this.#options;
    if (size + bytes > maxBytes) {
      throw transportErrors.TRANSPORT_DISK_FULL({
        message: `the log holds ${size} bytes and may hold ${maxBytes}`,
        where: { path, maxBytes },
        remedy: 'Raise transport.log.maxBytes, or let the writers catch up so that old records can go.',
      });
    }
    this.#freeBudget ??= this.freeBytes() - minFreeBytes;
    if (this.#freeBudget < WRITE_AMPLIFICATION * bytes) throw this.diskFull(this.freeBytes());
    this.#freeBudget -= WRITE_AMPLIFICATION * bytes;
  }

  /** Throws LOG_PATH where the directory is gone. */
  freeBytes(): number {
    const { path } = this.#options;
    try {
      const { bavail, bsize } = statfsSync(path);
      return bavail * bsize;
    } catch (cause) {
      if (isNoFile(cause)) throw pathError(path, cause);
      throw logErrors.LOG_WRITE_FAILED({ message: 'the disk does not tell its room', where: { path }, cause });
    }
  }

  /** What a commit of about `bytes` failed with, given what the store says of it. */
  explain(cause: unknown, bytes: number): unknown {
    const { path, minFreeBytes } = this.#options;
    try {
      const free = this.freeBytes();
      if (free < Math.max(minFreeBytes, 2 * bytes + 2 ** 20)) return this.diskFull(free, cause);
    } catch (error) {
      return error;
    }
    return logErrors.LOG_WRITE_FAILED({ message: 'the store refused a commit', where: { path }, cause });
  }

  diskFull(free: number, cause?: unknown): MysyncError {
    const { path, minFreeBytes } = this.#options;
    const message = `${free} bytes are free where the log lies; ${minFreeBytes} are kept free`;
    return transportErrors.TRANSPORT_DISK_FULL({ message, where: { path }, cause });
  }
}
