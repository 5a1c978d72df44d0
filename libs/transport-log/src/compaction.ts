/**
 * Compaction of one partition: of each key the last record stays.
 *
 * A pass reads the dirty stretch, as far as its keys fit into memory, and remembers the last offset of each; then it walks from the
 * beginning of the partition to the end of the stretch and drops every record whose key has a later offset there. Invariants:
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
  joinBatches,
  type KeptRecords,
  mayJoin,
  recordDelta,
  recordIsTombstone,
  recordKeyLength,
  recordKeyStart,
  recordLength,
} from './batch-codec.ts';
import type { Campaign } from './campaign.ts';
import {
  type DirtyStretch,
  load,
  readDirtyStretch,
  STEP_BYTES,
  type StoredBatch,
  type StretchOptions,
} from './dirty-stretch.ts';
import type { KeyOffsets } from './key-offsets.ts';
import { batchKey, metaKey, type PartitionState } from './layout.ts';

export interface CompactionOptions extends StretchOptions {
  /** Inside a write: throws when this process may not maintain the log any more. */
  readonly checkLease: () => void;
  /** Below this many dirty bytes nothing is done, unless a tombstone's time is over. Default 0. */
  readonly minDirtyBytes?: number;
  /** … and below this share of what would be walked. Default 0. */
  readonly minDirtyRatio?: number;
  /** Decides where the keys of what is dirty do not fit into memory. Without: a pass. */
  readonly campaign?: Campaign;
  /** Bytes rewritten per transaction. Default 2 MiB. */
  readonly stepBytes?: number;
  /** Neighbours are joined up to this size. Default 256 KiB. */
  readonly joinedBytes?: number;
}

const JOINED_BYTES = 256 * 1024;
/** What is kept of so many bytes of batches is written together, even when it is little: the batches stay in memory. */
const PENDING_SOURCE_BYTES = 8 * 2 ** 20;

/** Which records of a batch stay, and whether a tombstone is among them. Pure. */
function keepOf(
  batch: StoredBatch,
  latest: KeyOffsets,
  nowMs: number,
): { readonly kept: KeptRecords; readonly hasTombstone: boolean } {
  const { source, header } = batch;
  const places: number[] = [];
  const isOver = header.deleteHorizonMs > 0 && nowMs >= header.deleteHorizonMs;
  let hasTombstone = false;
  let at = BATCH_HEADER_BYTES;
  for (let left = header.count; left > 0; left--) {
    const last = latest.get(source, recordKeyStart(at), recordKeyLength(source, at));
    const isLast = last <= header.baseOffset + recordDelta(source, at);
    const isTombstone = recordIsTombstone(source, at);
    if (isLast && !(isTombstone && isOver)) {
      places.push(at);
      hasTombstone ||= isTombstone;
    }
    at += recordLength(source, at);
  }
  return { kept: { source, header, places }, hasTombstone };
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

/** Whether enough is dirty for a pass, or a tombstone's time is over. */
async function isWanted(options: CompactionOptions, state: PartitionState, dirty: DirtyStretch): Promise<boolean> {
  const { minDirtyBytes = 0, minDirtyRatio = 0, campaign, nowMs } = options;
  if (state.horizonMs > 0 && nowMs >= state.horizonMs) return true;
  const { bytes, oldBytes, oldEnd, latest, isMemoryFull } = dirty;
  const { cleanBytes, earliest } = state;
  if (oldBytes === 0 || oldBytes < minDirtyBytes) return false;
  if (!isMemoryFull || campaign === undefined) return oldBytes >= minDirtyRatio * (cleanBytes + oldBytes);
  const recordBytes = bytes / latest.size;
  return await campaign.wants(
    options,
    { from: earliest, end: oldEnd, cleanBytes, oldBytes, recordBytes },
    minDirtyRatio,
  );
}

/** One pass over one partition; false when there was too little to do. */
export async function compactPartition(options: CompactionOptions): Promise<boolean> {
  const { store, entry, partition, nowMs, checkLease } = options;
  store.refresh();
  const before = store.partition(entry.id, partition);
  if (before === undefined) return false;
  const dirty = await readDirtyStretch(options, Math.max(before.cleanedTo, before.earliest), before.end);
  if (!(await isWanted(options, before, dirty))) return false;
  const { latest, end: dirtyEnd } = dirty;
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
    const isFar = pending[0] !== undefined && !mayJoin(pending[0].header, batch.header);
    if (pending.length > 0 && (otherTime || isFar || pendingBytes + bytes > joinedBytes)) flush();
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
