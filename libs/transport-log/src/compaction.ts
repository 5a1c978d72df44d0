/**
 * Compaction of one partition: of each key the last record stays.
 *
 * A pass looks at the dirty stretch (from `cleanedTo` to the first batch that is younger than the compaction lag, never
 * including the newest batch) and remembers the last offset of each key in it; then it walks from the beginning to the end
 * of the stretch and drops every record whose key has a later offset there. Invariants:
 * 1. A record is dropped only when a later one of the same key is stored: the last one of a key is never dropped, unless
 *    it is a tombstone whose time is over.
 * 2. A tombstone's time begins when the pass has dropped everything before it: its batch gets a delete horizon, and
 *    the tombstone goes in a later pass, after that horizon.
 * 3. Offsets stay. A batch covers its offsets even when records in it are gone; a batch with nothing left goes.
 * 4. A pass may be cut off anywhere: `cleanedTo` moves last, so the next one starts over and finds less to do.
 * 5. The walk writes a bounded number of bytes per transaction, each only while this process holds the maintenance lease.
 *
 * Small neighbours are joined while walking, so that one-record batches do not stay one value each.
 */
import {
  BATCH_HEADER_BYTES,
  type BatchHeader,
  bodyIsIntact,
  joinBatches,
  type KeptRecords,
  readBatchHeader,
  recordDelta,
  recordIsTombstone,
  recordKeyText,
  recordLength,
} from './batch-codec.ts';
import { batchKey, metaKey, type TopicEntry } from './layout.ts';
import { damaged, findBatch } from './partition-reader.ts';
import type { Store } from './store.ts';

export interface CompactionOptions {
  readonly store: Store;
  readonly topic: string;
  readonly entry: TopicEntry;
  readonly partition: number;
  readonly nowMs: number;
  /** Memory for the keys of one dirty stretch. */
  readonly memoryBytes: number;
  /** Inside a write: throws when this process may not maintain the log any more. */
  readonly checkLease: () => void;
  /** Lets others run; throws when it is time to stop. */
  readonly pause: () => Promise<void>;
  /** Below this many dirty bytes nothing is done, unless a tombstone's time is over. Default 0. */
  readonly minDirtyBytes?: number;
  /** … and below this share of what would be walked. Default 0. */
  readonly minDirtyRatio?: number;
  /** Bytes rewritten per transaction. Default 2 MiB. */
  readonly stepBytes?: number;
  /** Neighbours are joined up to this size. Default 256 KiB. */
  readonly joinedBytes?: number;
}

interface StoredBatch {
  readonly source: Buffer;
  readonly header: BatchHeader;
}

const JOINED_BYTES = 256 * 1024;
const STEP_BYTES = 2 * 2 ** 20;
/** What is kept of so many bytes of batches is written together, even when it is little: the batches stay in memory. */
const PENDING_SOURCE_BYTES = 8 * 2 ** 20;
/** What a map entry costs beside the characters of its key. */
const KEY_OVERHEAD_BYTES = 64;

/** The batch that covers `offset`, or the next one, copied out of the store. */
function load(options: CompactionOptions, offset: number): StoredBatch | null {
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

/** Which records of a batch stay, and whether a tombstone is among them. Pure. */
export function keepOf(
  batch: StoredBatch,
  latest: ReadonlyMap<string, number>,
  nowMs: number,
): { readonly kept: KeptRecords; readonly hasTombstone: boolean } {
  const { source, header } = batch;
  const places: number[] = [];
  const isOver = header.deleteHorizonMs > 0 && nowMs >= header.deleteHorizonMs;
  let hasTombstone = false;
  let at = BATCH_HEADER_BYTES;
  for (let left = header.count; left > 0; left--) {
    const last = latest.get(recordKeyText(source, at));
    const isLast = last === undefined || last <= header.baseOffset + recordDelta(source, at);
    const isTombstone = recordIsTombstone(source, at);
    if (isLast && !(isTombstone && isOver)) {
      places.push(at);
      hasTombstone ||= isTombstone;
    }
    at += recordLength(source, at);
  }
  return { kept: { source, header, places }, hasTombstone };
}

/** The last offset of each key in the dirty stretch, and where that stretch ends. */
async function findLatest(options: CompactionOptions, from: number, end: number) {
  const latest = new Map<string, number>();
  const youngest = options.nowMs - options.entry.minCompactionLagMs;
  let next = from;
  let memory = 0;
  let dirtyBytes = 0;
  let sincePause = 0;
  while (next < end && memory < options.memoryBytes) {
    const batch = load(options, next);
    // The newest batch stays as it is: it holds the partition's newest record.
    if (batch === null || batch.header.lastOffset + 1 >= end || batch.header.appendedMs > youngest) break;
    const { source, header } = batch;
    let at = BATCH_HEADER_BYTES;
    for (let left = header.count; left > 0; left--) {
      const key = recordKeyText(source, at);
      if (!latest.has(key)) memory += key.length + KEY_OVERHEAD_BYTES;
      latest.set(key, header.baseOffset + recordDelta(source, at));
      at += recordLength(source, at);
    }
    next = header.lastOffset + 1;
    dirtyBytes += source.length;
    sincePause += source.length;
    if (sincePause > STEP_BYTES) {
      sincePause = 0;
      await options.pause();
    }
  }
  return { latest, dirtyBytes, dirtyEnd: next };
}

/** What one transaction of the walk changes. */
class Step {
  readonly #options: CompactionOptions;
  readonly #puts: Buffer[] = [];
  readonly #removes: number[] = [];
  readonly #earliest: number;
  #saved = 0;
  #work = 0;

  constructor(options: CompactionOptions, earliest: number) {
    this.#options = options;
    this.#earliest = earliest;
  }

  get isFull(): boolean {
    return this.#work > (this.#options.stepBytes ?? STEP_BYTES);
  }

  /** Replaces the batches of these parts by one with what is kept of them. */
  replace(parts: readonly KeptRecords[], horizonMs: number): void {
    const [first, ...rest] = parts;
    if (first === undefined) return;
    const unchanged = first.places.length === first.header.count && first.header.deleteHorizonMs === horizonMs;
    if (rest.length === 0 && unchanged) {
      this.#work += 1024;
      return;
    }
    const joined = joinBatches(parts, horizonMs);
    for (const { header } of parts) {
      this.#saved += header.bytes;
      this.#work += header.bytes;
    }
    for (const { header } of joined === null ? parts : rest) this.#removes.push(header.baseOffset);
    if (joined !== null) {
      this.#puts.push(joined);
      this.#saved -= joined.length;
    }
  }

  async write(): Promise<void> {
    const { store, entry, partition, checkLease } = this.#options;
    const [puts, removes, saved] = [this.#puts.splice(0), this.#removes.splice(0), this.#saved];
    this.#saved = 0;
    this.#work = 0;
    if (puts.length === 0 && removes.length === 0) return;
    await store.write(() => {
      checkLease();
      const state = store.partition(entry.id, partition);
      // Deleted, or cut off at the front meanwhile: what was planned may put back what was removed.
      if (state === undefined || state.earliest !== this.#earliest) return;
      for (const base of removes) store.removeBatch(batchKey(entry.id, partition, base));
      for (const batch of puts) {
        const base = batch.readDoubleLE(16);
        store.putBatch(batchKey(entry.id, partition, base), batch);
      }
      store.addSize(-saved);
      store.put(metaKey.partition(entry.id, partition), { ...state, bytes: state.bytes - saved });
    });
  }
}

/** One pass over one partition; false when there was too little to do. */
export async function compactPartition(options: CompactionOptions): Promise<boolean> {
  const { store, entry, partition, nowMs, checkLease } = options;
  store.refresh();
  const before = store.partition(entry.id, partition);
  if (before === undefined) return false;
  const { latest, dirtyBytes, dirtyEnd } = await findLatest(
    options,
    Math.max(before.cleanedTo, before.earliest),
    before.end,
  );
  const isDue = before.horizonMs > 0 && nowMs >= before.horizonMs;
  const least = Math.max(options.minDirtyBytes ?? 0, (options.minDirtyRatio ?? 0) * (before.cleanBytes + dirtyBytes));
  if (!isDue && (dirtyBytes === 0 || dirtyBytes < least)) return false;
  const { joinedBytes = JOINED_BYTES, stepBytes = STEP_BYTES } = options;
  const step = new Step(options, before.earliest);
  let pending: KeptRecords[] = [];
  let pendingBytes = 0;
  let pendingSourceBytes = 0;
  let pendingHorizon = 0;
  let walked = 0;
  let horizonMs = 0;
  let cleanBytes = 0;
  const flush = (): void => {
    step.replace(pending, pendingHorizon);
    pending = [];
    pendingBytes = 0;
    pendingSourceBytes = 0;
    pendingHorizon = 0;
  };
  let next = before.earliest;
  while (next < dirtyEnd) {
    const batch = load(options, next);
    if (batch === null || batch.header.baseOffset >= dirtyEnd) break;
    const { kept, hasTombstone } = keepOf(batch, latest, nowMs);
    let horizon = 0;
    if (hasTombstone) horizon = batch.header.deleteHorizonMs || nowMs + entry.deleteRetentionMs;
    if (horizon > 0) horizonMs = horizonMs === 0 ? horizon : Math.min(horizonMs, horizon);
    let bytes = 0;
    for (const at of kept.places) bytes += recordLength(kept.source, at);
    // Joined with younger ones, tombstones would wait for as long as others come.
    const otherTime = horizon > 0 && pendingHorizon > 0 && horizon !== pendingHorizon;
    if (pending.length > 0 && (otherTime || pendingBytes + bytes > joinedBytes)) flush();
    pending.push(kept);
    pendingBytes += bytes;
    pendingSourceBytes += batch.source.length;
    walked += batch.source.length;
    cleanBytes += bytes;
    pendingHorizon = Math.max(pendingHorizon, horizon);
    next = batch.header.lastOffset + 1;
    if (pendingBytes > joinedBytes || pendingSourceBytes > PENDING_SOURCE_BYTES) flush();
    if (step.isFull) await step.write();
    if (walked > stepBytes) {
      walked = 0;
      await options.pause();
    }
  }
  flush();
  await step.write();
  await store.write(() => {
    checkLease();
    const state = store.partition(entry.id, partition);
    if (state === undefined) return;
    const cleanedTo = Math.max(state.cleanedTo, dirtyEnd);
    store.put(metaKey.partition(entry.id, partition), { ...state, cleanedTo, cleanBytes, horizonMs });
  });
  return true;
}
