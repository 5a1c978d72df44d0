/**
 * The changes of the open transaction, kept until its end is known.
 *
 * 1. Nothing leaves before `seal`: a rolled back transaction leaves no trace.
 * 2. Bounded: above `memoryBytes` all but the last item goes to one file, which is unlinked as soon as it is open, so that
 *    a killed process leaves nothing behind. What follows goes there in pieces of 1 MiB: it waits for the end anyway.
 * 3. A savepoint marks a count of items; rolling back to it cuts memory and file there.
 * 4. A row whose bytes are in the file, or that is dropped, is given back; one that is handed over belongs to who takes it.
 *
 * File: for each item four 32-bit numbers (ordinal, partition hash, key length, payload length), with the highest bit of the key length for
 * deletes, then payload and key. Table changes are rare and stay in memory.
 */
import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { sourceErrors } from '../errors.ts';
import type { SourceItem, SourceRow, SourceTableChange } from '../port.ts';
import { DELETES, HEAD_BYTES, SpoolPieces } from './spool-pieces.ts';

/** What an item costs beside its bytes: object and list entry. */
const ITEM_BYTES = 120;
const WRITE_BYTES = 1 << 20;
/** Items of one batch that is handed over. */
const BATCH_ITEMS = 2048;
/** Up to here a copy costs less than handing over a list of its own. */
const FEW_ITEMS = 256;
const AGAIN_ITEMS = 8;

export interface TransactionSpoolOptions {
  readonly memoryBytes: number;
  readonly folder: string;
}

interface Mark {
  readonly count: number;
  /** Where item `count` begins in the file, once it is there. */
  fileOffset: number;
}

export class TransactionSpool {
  readonly #options: TransactionSpoolOptions;
  #items: (SourceRow | SourceTableChange)[] = [];
  #bytes = 0;
  #marks = new Map<string, Mark>();
  #file: number | undefined;
  #fileItems = 0;
  #fileBytes = 0;
  /** What is written next. */
  #scratch: Buffer | undefined;
  /** A rollback cut into the file, so the last row is there: it is marked when it is read. */
  #lastIsInFile = false;

  constructor(options: TransactionSpoolOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#fileItems + this.#items.length;
  }

  /** Some of them are in the file. */
  get isInFile(): boolean {
    return this.#fileItems > 0;
  }

  /** Bytes of memory that the items take. */
  get memoryBytes(): number {
    return this.#bytes;
  }

  /** The list that rows are appended to; call `grown` afterwards. */
  get tail(): (SourceRow | SourceTableChange)[] {
    return this.#items;
  }

  /** Counts what was appended to `tail` since item `from` of it, and moves it to the file where it is too much. */
  grown(from: number): void {
    for (let i = from; i < this.#items.length; i += 1) this.#bytes += sizeOf(this.#items[i] as SourceRow);
    const { memoryBytes } = this.#options;
    if (this.#bytes > (this.isInFile ? Math.min(WRITE_BYTES, memoryBytes) : memoryBytes)) this.#spill();
  }

  mark(name: string): void {
    this.#marks.set(name, { count: this.count, fileOffset: this.#fileBytes });
  }

  /** False when there is no such savepoint in this transaction. */
  rollbackTo(name: string): boolean {
    const mark = this.#marks.get(name);
    if (mark === undefined) return false;
    if (mark.count >= this.#fileItems) this.#drop(mark.count - this.#fileItems);
    else {
      this.#drop(0);
      this.#fileItems = mark.count;
      this.#fileBytes = mark.fileOffset;
      if (this.#file !== undefined) ftruncateSync(this.#file, this.#fileBytes);
    }
    this.#bytes = this.#items.reduce((sum, item) => sum + sizeOf(item), 0);
    for (const [other, { count }] of this.#marks) if (count > mark.count) this.#marks.delete(other);
    return true;
  }

  /** Marks the last row as the transaction's last. */
  seal(): void {
    const last = this.#items.at(-1);
    if (last?.kind === 'row') last.markLast();
    this.#lastIsInFile = last === undefined;
  }

  /** Appends all items to `batch` and is empty afterwards, when there are few of them and all in memory; else does nothing and says false. */
  drainFew(batch: SourceItem[]): boolean {
    const items = this.#items;
    if (this.#fileItems > 0 || items.length > FEW_ITEMS) return false;
    for (let i = 0; i < items.length; i += 1) batch.push(items[i] as SourceItem);
    // the list of a few is used again: a new one costs more than emptying it
    if (items.length <= AGAIN_ITEMS) while (items.length > 0) items.pop();
    this.#begin();
    return true;
  }

  /** All items in order; afterwards the spool is empty. */
  *drain(): Generator<SourceItem[]> {
    if (this.#fileItems > 0) yield* this.#readFile();
    const items: SourceItem[] = this.#items;
    this.#items = [];
    if (items.length > 0) yield items;
    this.#begin();
  }

  /** Drops all items. */
  clear(): void {
    this.#drop(0);
    this.#begin();
  }

  close(): void {
    this.clear();
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** Items from here on, of those in memory. */
  #drop(from: number): void {
    const items = this.#items;
    for (let i = from; i < items.length; i += 1) {
      const item = items[i] as SourceRow | SourceTableChange;
      if (item.kind === 'row') item.giveBack();
    }
    items.length = from;
  }

  /** Anew, with nothing. */
  #begin(): void {
    if (this.#items.length > 0) this.#items = [];
    this.#bytes = 0;
    if (this.#marks.size > 0) this.#marks = new Map();
    if (this.#file !== undefined && this.#fileBytes > 0) ftruncateSync(this.#file, 0);
    this.#fileItems = 0;
    this.#fileBytes = 0;
    this.#scratch = undefined;
  }

  #spill(): void {
    // the last item stays, so that `seal` can still reach it; so does everything from a table change on
    let until = this.#items.findIndex((item) => item.kind !== 'row');
    if (until < 0) until = this.#items.length - 1;
    if (until <= 0) return;
    const open = [...this.#marks.values()];
    this.#scratch ??= Buffer.allocUnsafeSlow(WRITE_BYTES);
    const scratch = this.#scratch;
    let filled = 0;
    const flush = (): void => {
      if (filled > 0) this.#write(scratch.subarray(0, filled), this.#fileBytes);
      this.#fileBytes += filled;
      filled = 0;
    };
    for (let i = 0; i < until; i += 1) {
      for (const mark of open) if (mark.count === this.#fileItems) mark.fileOffset = this.#fileBytes + filled;
      const row = this.#items[i] as SourceRow;
      const isLarge = HEAD_BYTES + row.bytes > WRITE_BYTES;
      if (isLarge || filled + HEAD_BYTES + row.bytes > WRITE_BYTES) flush();
      filled = scratch.writeUInt32LE(row.ordinal, filled);
      filled = scratch.writeUInt32LE(row.partitionHash, filled);
      filled = scratch.writeUInt32LE((row.end - row.keyStart + (row.deletes ? DELETES : 0)) >>> 0, filled);
      filled = scratch.writeUInt32LE(row.keyStart - row.start, filled);
      const bytes = row.slab.subarray(row.start, row.end);
      if (isLarge) {
        flush();
        this.#write(bytes, this.#fileBytes);
        this.#fileBytes += bytes.length;
      } else {
        scratch.set(bytes, filled);
        filled += bytes.length;
      }
      this.#fileItems += 1;
      row.giveBack();
    }
    flush();
    // in place: the caller may hold the list
    this.#items.splice(0, until);
    this.#bytes = this.#items.reduce((sum, item) => sum + sizeOf(item), 0);
    for (const mark of open) if (mark.count === this.#fileItems) mark.fileOffset = this.#fileBytes;
  }

  #write(data: Uint8Array, offset: number): void {
    try {
      this.#file ??= openUnlinked(this.#options.folder);
      for (let done = 0; done < data.length; )
        done += writeSync(this.#file, data, done, data.length - done, offset + done);
    } catch (error) {
      throw sourceErrors.SOURCE_SPOOL_FAILED({
        message: `a large transaction cannot be written to ${this.#options.folder}`,
        where: { folder: this.#options.folder, bytes: data.length },
        cause: error,
      });
    }
  }

  *#readFile(): Generator<SourceItem[]> {
    const file = this.#file as number;
    const pieces = new SpoolPieces();
    let piece = pieces.take(Buffer.alloc(0), 0);
    let left = this.#fileItems;
    for (let offset = 0; offset < this.#fileBytes; ) {
      const wanted = Math.min(piece.slab.length - piece.end, this.#fileBytes - offset);
      for (let got = 0; got < wanted; ) got += readSync(file, piece.slab, piece.end + got, wanted - got, offset + got);
      offset += wanted;
      piece.end += wanted;
      let batch: SourceItem[] = [];
      for (let row = piece.row(); row !== undefined; row = piece.row()) {
        left -= 1;
        if (left === 0 && this.#lastIsInFile) row.markLast();
        batch.push(row);
        if (batch.length < BATCH_ITEMS) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0) yield batch;
      const read = piece;
      piece = pieces.take(read.rest, read.nextBytes);
      read.takeBack();
    }
  }
}

function sizeOf(item: SourceRow | SourceTableChange): number {
  return ITEM_BYTES + (item.kind === 'row' ? item.bytes : item.statement.length * 2);
}

export function openUnlinked(folder: string): number {
  const own = mkdtempSync(join(folder, 'mysync-spool-'));
  try {
    return openSync(join(own, 'transaction'), 'wx+', 0o600);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
