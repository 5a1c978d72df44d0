/**
 * A look at the data file before LMDB maps it: reading a mapped page that lies behind the end of the file kills the
 * process (SIGBUS), so a file that was cut off is refused here.
 *
 * Places as in LMDB's `struct MDB_meta`, data version 2, 64 bit, little endian, found in files of lmdb-js 3.5: two meta
 * pages; in each, from byte 24: magic, version, address, map size, free-page tree (page size first, root last), main
 * tree (root last), last page, transaction.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { logErrors } from './errors.ts';

const MAGIC = 0xbeefc0de;
const VERSION = 2;
/** Pages that a transaction took and gave back are never written, so a sound file may end this much early. */
const UNWRITTEN_BYTES = 2 ** 20;
const NO_PAGE = 2n ** 64n - 1n;
const PAGE_BYTES_AT = 48;
/** In each of the two root pages: the transaction that wrote it. */
export const TRANSACTION_AT = 152;

/** Throws LOG_CORRUPT for a file that is none of LMDB's, or is cut off. A missing or empty file is fine. */
export function checkDataFile(file: string): void {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch {
    return;
  }
  try {
    const head = Buffer.alloc(2 * 65536);
    let problem: string | null = null;
    // Others may be writing: the pages that a root page counts are written before it, so the size is taken after it.
    for (let tries = 0; tries < 3 && (tries === 0 || problem !== null); tries++) {
      const length = readSync(fd, head, 0, head.length, 0);
      const { size } = fstatSync(fd);
      problem = size === 0 ? null : findProblem(head.subarray(0, length), size);
    }
    if (problem !== null) throw logErrors.LOG_CORRUPT({ message: `${file}: ${problem}`, where: { file } });
  } finally {
    closeSync(fd);
  }
}

/** What is wrong with a data file that begins with `head` and has `size` bytes; null: nothing to be seen. */
export function findProblem(head: Buffer, size: number): string | null {
  if (head.length < 4096) return `it has ${size} bytes, fewer than its first page`;
  if (head.readUInt32LE(24) !== MAGIC) return 'it is not a data file of the log';
  if ((head.readUInt32LE(28) & 0xffff) !== VERSION) return 'it has another data version';
  const pageBytes = head.readUInt32LE(PAGE_BYTES_AT);
  if (pageBytes < 4096 || pageBytes > 65536 || head.length < 2 * pageBytes) return 'its first pages are damaged';
  const newest =
    head.readBigUInt64LE(TRANSACTION_AT) >= head.readBigUInt64LE(pageBytes + TRANSACTION_AT) ? 0 : pageBytes;
  if (head.readUInt32LE(newest + 24) !== MAGIC) return 'its root page is damaged';
  const needed = (Number(head.readBigUInt64LE(newest + 144)) + 1) * pageBytes;
  const short = `it has ${size} bytes of ${needed}: it was cut off`;
  if (size + UNWRITTEN_BYTES < needed) return short;
  for (const place of [88, 136]) {
    const root = head.readBigUInt64LE(newest + place);
    if (root !== NO_PAGE && (Number(root) + 1) * pageBytes > size) return short;
  }
  return null;
}

/** Of a sound data file. */
export function pageBytesOf(fd: number): number {
  const word = Buffer.alloc(4);
  readSync(fd, word, 0, 4, PAGE_BYTES_AT);
  return word.readUInt32LE(0);
}
