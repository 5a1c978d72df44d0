/** Removing the front of a partition: by time, or before an offset. The newest batch always stays. */
import { readBatchHeader } from './batch-codec.ts';
import { batchKey, metaKey, type TopicEntry } from './layout.ts';
import { findBatch } from './partition-reader.ts';
import type { Store } from './store.ts';

const BATCHES_PER_STEP = 100;

/**
 * Inside a write: removes up to 100 batches from the front for which `isOver` holds, and moves the earliest offset.
 * True when there may be more.
 */
function removeFront(
  store: Store,
  entry: TopicEntry,
  partition: number,
  isOver: (lastOffset: number, appendedMs: number) => boolean,
): boolean {
  const state = store.partition(entry.id, partition);
  if (state === undefined) return false;
  let { earliest } = state;
  let freed = 0;
  let count = 0;
  for (; count < BATCHES_PER_STEP && earliest < state.end; count++) {
    const found = findBatch(store, entry.id, partition, earliest);
    const header = found === null ? null : readBatchHeader(found.bytes, 0, found.bytes.length);
    if (header === null || header.lastOffset + 1 >= state.end || !isOver(header.lastOffset, header.appendedMs)) break;
    store.removeBatch(batchKey(entry.id, partition, header.baseOffset));
    freed += header.bytes;
    earliest = header.lastOffset + 1;
  }
  if (count === 0) return false;
  const cleanedTo = Math.max(state.cleanedTo, earliest);
  store.addSize(-freed);
  store.put(metaKey.partition(entry.id, partition), { ...state, earliest, cleanedTo, bytes: state.bytes - freed });
  return count === BATCHES_PER_STEP;
}

/** Removes batches appended before `beforeMs`, step by step. */
export async function removeOlder(
  store: Store,
  entry: TopicEntry,
  partition: number,
  beforeMs: number,
  checkLease: () => void,
): Promise<void> {
  const step = (): boolean => {
    checkLease();
    return removeFront(store, entry, partition, (_, appendedMs) => appendedMs < beforeMs);
  };
  while (await store.write(step));
}

/** Makes `offset` the earliest one of the partition; whole batches before it go. */
export async function removeBefore(store: Store, entry: TopicEntry, partition: number, offset: number): Promise<void> {
  while (await store.write(() => removeFront(store, entry, partition, (lastOffset) => lastOffset < offset)));
  await store.write(() => {
    const state = store.partition(entry.id, partition);
    if (state === undefined || state.earliest >= offset || offset > state.end) return;
    store.put(metaKey.partition(entry.id, partition), { ...state, earliest: offset });
  });
}
