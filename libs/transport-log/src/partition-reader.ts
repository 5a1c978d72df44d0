/**
 * Reads a partition forward, batch by batch, out of the store into a buffer of its own: the bytes handed out stay as they
 * are until the next batch is asked for, and no LMDB snapshot stays open meanwhile (one that did would keep every page
 * freed since from being used again, for as long as a sink is down).
 */
import type { MysyncError } from '@mysync/core';
import { type RecordBatch, transportErrors } from '@mysync/transport';
import {
  BATCH_HEADER_BYTES,
  bodyIsIntact,
  readBatchHeader,
  recordDelta,
  recordLength,
  StoredRecord,
} from './batch-codec.ts';
import { logErrors } from './errors.ts';
import { baseOffsetOf, batchKey } from './layout.ts';
import { closedError, type Store } from './store.ts';
import { topicMissing } from './topics.ts';

export interface ReaderOptions {
  readonly store: Store;
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly from: number;
  /** Exclusive; undefined follows for ever. */
  readonly until: number | undefined;
  readonly maxBytes: number;
}

const FIRST_BUFFER_BYTES = 64 * 1024;

export function damaged(store: Store, topic: string, partition: number, offset: number): MysyncError {
  return logErrors.LOG_CORRUPT({
    message: 'a batch of the log is damaged',
    where: { path: store.path, topic, partition, offset },
  });
}

/** A batch where the store keeps it; `bytes` is valid until the next look into the store. */
export interface FoundBatch {
  readonly base: number;
  readonly bytes: Buffer;
}

/** The batch that covers `offset`, or else the next one; null when there is none. */
export function findBatch(store: Store, topicId: string, partition: number, offset: number): FoundBatch | null {
  const { records } = store;
  const key = batchKey(topicId, partition, offset);
  // Where nothing was compacted, the next batch begins right where the last one ended.
  const exact = store.batch(key);
  if (exact !== undefined) return { base: offset, bytes: exact };
  const first = batchKey(topicId, partition, 0);
  for (const found of records.getKeys({ start: key, end: first, inclusiveEnd: true, reverse: true, limit: 1 })) {
    const base = baseOffsetOf(found);
    const bytes = store.batch(batchKey(topicId, partition, base));
    if (bytes === undefined) break;
    const header = readBatchHeader(bytes, 0, bytes.length);
    // A damaged header is met again, and told, by whoever reads the batch.
    if (header === null || header.lastOffset >= offset) return { base, bytes };
  }
  const end = batchKey(topicId, partition, Number.MAX_SAFE_INTEGER);
  for (const found of records.getKeys({ start: key, end, limit: 1 })) {
    const base = baseOffsetOf(found);
    const bytes = store.batch(batchKey(topicId, partition, base));
    if (bytes !== undefined) return { base, bytes };
  }
  return null;
}

export class PartitionReader {
  readonly #options: ReaderOptions;
  #buffer = Buffer.allocUnsafeSlow(FIRST_BUFFER_BYTES);
  #next: number;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#next = options.from;
  }

  /** True when everything before `until` was read. */
  get isDone(): boolean {
    return this.#options.until !== undefined && this.#next >= this.#options.until;
  }

  /** The next batch, or null when there is nothing to read now. */
  read(): RecordBatch | null {
    const { store, topic, topicId, partition, maxBytes } = this.#options;
    if (store.isClosed) throw closedError();
    const state = store.partition(topicId, partition);
    if (state === undefined) throw topicMissing(topic);
    const { earliest, end } = state;
    if (this.#next < earliest || this.#next > end) {
      throw transportErrors.TRANSPORT_OFFSET_OUT_OF_RANGE({
        message: `offset ${this.#next} was asked for, the log holds ${earliest} to ${end}`,
        where: { topic, partition, offset: this.#next },
      });
    }
    const limit = Math.min(this.#options.until ?? end, end);
    if (this.#next >= limit) return null;
    const records: StoredRecord[] = [];
    let taken = 0;
    let filled = 0;
    let full = false;
    while (!full && this.#next < limit) {
      const found = findBatch(store, topicId, partition, this.#next);
      if (found === null || found.base >= limit) {
        this.#next = limit;
        break;
      }
      const { base, bytes: stored } = found;
      const { length } = stored;
      if (records.length > 0 && filled + length > maxBytes) break;
      const at = this.#reserve(filled, length);
      stored.copy(this.#buffer, at, 0, length);
      const header = readBatchHeader(this.#buffer, at, length);
      if (header === null || header.baseOffset !== base || !bodyIsIntact(this.#buffer, at, length)) {
        throw damaged(store, topic, partition, base);
      }
      let place = at + BATCH_HEADER_BYTES;
      for (let left = header.count; left > 0; left--) {
        const offset = base + recordDelta(this.#buffer, place);
        const bytes = recordLength(this.#buffer, place);
        if (offset >= limit || (taken + bytes > maxBytes && records.length > 0 && offset >= this.#next)) {
          this.#next = Math.min(offset, limit);
          full = true;
          break;
        }
        if (offset >= this.#next) {
          records.push(new StoredRecord(this.#buffer, place, offset));
          taken += bytes;
        }
        place += bytes;
      }
      if (!full) this.#next = Math.min(header.lastOffset + 1, limit);
      filled = at + length;
    }
    return { partition, records, nextOffset: this.#next, endOffset: end, endOffsetAtMs: store.options.clock.now() };
  }

  /** Room for `length` bytes; records read before keep the buffer they lie in. */
  #reserve(filled: number, length: number): number {
    if (filled + length <= this.#buffer.length) return filled;
    const size = Math.max(length, Math.min(2 * this.#buffer.length, 2 * this.#options.maxBytes));
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(size, FIRST_BUFFER_BYTES));
    return 0;
  }
}

/** Batches from `from` on; sleeps at the end, and ends at `until` or when the signal aborts. */
export async function* follow(options: ReaderOptions, signal: AbortSignal): AsyncGenerator<RecordBatch, void, void> {
  const { store, topicId, partition } = options;
  const reader = new PartitionReader(options);
  const key = `${topicId}/${partition}`;
  let sinceTurn = performance.now();
  while (!signal.aborted && !reader.isDone) {
    let batch = reader.read();
    if (batch === null) {
      // Waits first and looks then, so that nothing appended in between is missed.
      const news = store.wakeups.wait(key, signal);
      store.refresh();
      batch = reader.read();
      if (batch === null) {
        await news;
        sinceTurn = performance.now();
        continue;
      }
      store.wakeups.wake(key);
    }
    yield batch;
    // A long backlog is read without I/O: others get their turn every few milliseconds.
    if (performance.now() - sinceTurn > 5) {
      await new Promise((resolve) => setImmediate(resolve));
      sinceTurn = performance.now();
    }
  }
}
