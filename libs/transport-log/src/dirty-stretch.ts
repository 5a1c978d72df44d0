/**
 * The dirty stretch of a partition: what was appended since compaction last came by, up to the first batch that is younger than
 * the compaction lag, never including the newest batch (it holds the partition's newest record).
 */
import {
  BATCH_HEADER_BYTES,
  type BatchHeader,
  bodyIsIntact,
  readBatchHeader,
  recordDelta,
  recordKeyLength,
  recordKeyStart,
  recordLength,
} from './batch-codec.ts';
import { KeyOffsets } from './key-offsets.ts';
import type { TopicEntry } from './layout.ts';
import { damaged, findBatch } from './partition-reader.ts';
import type { Store } from './store.ts';

export interface StretchOptions {
  readonly store: Store;
  readonly topic: string;
  readonly entry: TopicEntry;
  readonly partition: number;
  readonly nowMs: number;
  /** Memory for the keys of one dirty stretch. */
  readonly memoryBytes: number;
  /** Lets others run; throws when it is time to stop. */
  readonly pause: () => Promise<void>;
}

export interface StoredBatch {
  readonly source: Buffer;
  readonly header: BatchHeader;
}

export interface DirtyStretch {
  /** The last offset of each key in it. */
  readonly latest: KeyOffsets;
  /** Where it ends. */
  readonly end: number;
  readonly bytes: number;
  /** The memory was full, and more is dirty and old enough. */
  readonly isMemoryFull: boolean;
  /** Where that ends, and what it has, about; else `end` and `bytes`. */
  readonly oldEnd: number;
  readonly oldBytes: number;
}

/** Bytes that are read between two pauses. */
export const STEP_BYTES = 2 * 2 ** 20;

/** The batch that covers `offset`, or the next one, copied out of the store. */
export function load(options: StretchOptions, offset: number): StoredBatch | null {
  const { store, topic, entry, partition } = options;
  const found = findBatch(store, entry.id, partition, offset);
  if (found === null) return null;
  const { base, bytes } = found;
  const source = Buffer.from(bytes);
  const header = readBatchHeader(source, 0, source.length);
  if (header === null || header.baseOffset !== base || !bodyIsIntact(source, 0, source.length)) {
    throw damaged(store, topic, partition, base);
  }
  return { source, header };
}

/** The batches from the one that covers `from` on, as long as there are any; others run between two steps. */
export async function* batchesFrom(options: StretchOptions, from: number): AsyncGenerator<StoredBatch> {
  let sincePause = 0;
  for (let batch = load(options, from); batch !== null; batch = load(options, batch.header.lastOffset + 1)) {
    yield batch;
    sincePause += batch.source.length;
    if (sincePause > STEP_BYTES) {
      sincePause = 0;
      await options.pause();
    }
  }
}

/** Reads the stretch that begins at `from`, as far as its keys fit into memory; `end` is the partition's. */
export async function readDirtyStretch(options: StretchOptions, from: number, end: number): Promise<DirtyStretch> {
  const latest = new KeyOffsets();
  const youngest = options.nowMs - options.entry.minCompactionLagMs;
  let next = from;
  let bytes = 0;
  let isFull = false;
  for await (const { source, header } of batchesFrom(options, from)) {
    if (!mayBeCompacted(header, end, youngest)) break;
    let at = BATCH_HEADER_BYTES;
    for (let left = header.count; left > 0; left--) {
      const offset = header.baseOffset + recordDelta(source, at);
      latest.set(source, recordKeyStart(at), recordKeyLength(source, at), offset);
      at += recordLength(source, at);
    }
    next = header.lastOffset + 1;
    bytes += source.length;
    isFull = latest.bytes >= options.memoryBytes;
    if (isFull) break;
  }
  const oldEnd = isFull ? findOldEnd(options, next, end, youngest) : next;
  // What lies behind is not read: its batches are taken to be as dense as those before.
  const oldBytes = oldEnd > next ? (bytes * (oldEnd - from)) / (next - from) : bytes;
  return { latest, end: next, bytes, isMemoryFull: oldEnd > next, oldEnd, oldBytes };
}

function mayBeCompacted(header: BatchHeader, end: number, youngest: number): boolean {
  return header.lastOffset + 1 < end && header.appendedMs <= youngest;
}

/** Where the batches that are old enough end: by halving, since they were appended one after the other. */
function findOldEnd(options: StretchOptions, from: number, end: number, youngest: number): number {
  const { store, entry, partition } = options;
  let [low, high] = [from, end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = findBatch(store, entry.id, partition, middle);
    const header = found === null ? null : readBatchHeader(found.bytes, 0, found.bytes.length);
    if (header !== null && mayBeCompacted(header, end, youngest)) low = Math.max(middle, header.lastOffset) + 1;
    else high = middle;
  }
  return Math.min(low, end);
}
