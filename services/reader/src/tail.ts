import type { PartitionCheckpoint } from '@mysync/checkpoint';
import { type ChangeId, MAX_WINDOW_MESSAGES, NO_CHANGE, ORDINAL_BITS } from '@mysync/core';
import { flowErrors, type PartitionMark, TailRecovery } from '@mysync/flow';
import type { OffsetRange, TopicDescription, Transport } from '@mysync/transport';
import { keyKind, MessageDecoder, payloadOf, readDelivery } from '@mysync/wire';

/** What a starting reader finds in one partition between its checkpoint and its fence. */
export interface PartitionTail {
  readonly frontier: PartitionMark;
  /** Transaction counter in the frontier message's version; 0 when the frontier is the checkpoint's. */
  readonly frontierCounter: number;
  readonly highestEpoch: number;
  /** Of the versions of all records in the tail, also of those that do not count. */
  readonly highestCounter: number;
  readonly anomaly: boolean;
}

export interface TailOptions {
  readonly transport: Pick<Transport, 'read'>;
  readonly topic: TopicDescription;
  readonly partition: number;
  readonly from: PartitionCheckpoint;
  /** Offset of our fence: the end of the tail. */
  readonly fence: number;
  readonly signal: AbortSignal;
}

/** Reads one partition's tail. `range.earliest` must not lie beyond the checkpoint's offset + 1. */
export async function readTail(options: TailOptions): Promise<PartitionTail> {
  const { transport, topic, partition, from, fence, signal } = options;
  // no window of a partition was ever larger (ADR 0212)
  const recovery = new TailRecovery(from, { remember: Math.ceil(MAX_WINDOW_MESSAGES / topic.partitions) });
  let highestVersion = 0n;
  const range = { topic: topic.name, partition, from: from.offset + 1, until: fence, signal };
  for await (const batch of transport.read(range)) {
    for (const record of batch.records) {
      const payload = payloadOf(record);
      if (payload === null) recovery.skip(record.offset);
      else if (keyKind(record.key) === 'fence') recovery.skip(record.offset, readDelivery(payload).epoch);
      else {
        const delivery = readDelivery(payload);
        if (delivery.version > highestVersion) highestVersion = delivery.version;
        recovery.offer(record.offset, delivery);
      }
    }
  }
  const { frontier, highestEpoch, anomaly } = recovery.result();
  const { change, counter } =
    frontier.offset === from.offset ? { change: from.change, counter: 0 } : await messageAt(options, frontier.offset);
  return {
    frontier: { ...frontier, change },
    frontierCounter: counter,
    highestEpoch,
    highestCounter: counterOf(highestVersion),
    anomaly: anomaly !== null,
  };
}

async function messageAt(
  { transport, topic, partition, signal }: TailOptions,
  offset: number,
): Promise<{ readonly change: ChangeId; readonly counter: number }> {
  const range = { topic: topic.name, partition, from: offset, until: offset + 1, signal };
  for await (const { records } of transport.read(range)) {
    const payload = records[0] === undefined ? null : payloadOf(records[0]);
    if (payload === null) continue;
    const { change } = new MessageDecoder().decode(payload).source;
    return { change, counter: counterOf(readDelivery(payload).version) };
  }
  signal.throwIfAborted();
  const message = 'a message that was read a moment ago is not in the log any more';
  throw flowErrors.FLOW_TAIL_INVALID({ message, where: { topic: topic.name, partition, offset } });
}

function counterOf(version: bigint): number {
  return Number(version >> BigInt(ORDINAL_BITS));
}

/** The state of a partition before anything was published. */
export function untouched(range: OffsetRange): PartitionCheckpoint {
  return { epoch: 0, generation: 0, sequence: 0, offset: range.earliest - 1, change: NO_CHANGE };
}
