/** One partition as the publisher sees it: the way to its leader, its open batches, and the numbers that they go under. */
import type { OutgoingRecord } from '@mysync/transport';
import type { LinkedLane } from './leaders.ts';
import { PartitionQueue, type QueuedBatch } from './partition-queue.ts';
import type { ProducerNumbers } from './protocol/init-producer-id.ts';

export interface OpenBatch extends QueuedBatch {
  readonly buffer: Buffer;
  readonly frame: Buffer;
  readonly records: readonly OutgoingRecord[];
  readonly resolve: (stored: { readonly baseOffset: number }) => void;
  readonly reject: (error: Error) => void;
}

export interface Lane extends LinkedLane {
  readonly queue: PartitionQueue<OpenBatch>;
  /** Of its open batches; those of the publisher may be newer. */
  numbers: ProducerNumbers;
}

export function newLane(partition: number, numbers: ProducerNumbers): Lane {
  return { partition, queue: new PartitionQueue(), link: null, numbers };
}

/** What the next batch goes under. `current`: the publisher's; a partition takes them over when nothing of it is open. */
export function takeNumbers(
  lane: Lane,
  current: ProducerNumbers,
  count: number,
): ProducerNumbers & { readonly firstSequence: number } {
  if (lane.numbers !== current && lane.queue.openCount === 0) {
    lane.numbers = current;
    lane.queue.startOver();
  }
  return { ...lane.numbers, firstSequence: lane.queue.takeSequence(count) };
}
