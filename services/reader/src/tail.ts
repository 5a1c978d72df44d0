import type { PartitionCheckpoint } from '@mysync/checkpoint';
import { NO_CHANGE, ORDINAL_BITS } from '@mysync/core';
import { type PartitionMark, TailRecovery } from '@mysync/flow';
import type { OffsetRange, Transport } from '@mysync/transport';
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

/** Reads one partition's tail. `range.earliest` must not lie beyond the checkpoint's offset + 1. */
export async function readTail(options: {
  transport: Transport;
  topic: string;
  partition: number;
  from: PartitionCheckpoint;
  /** Offset of our fence: the end of the tail. */
  fence: number;
  signal: AbortSignal;
}): Promise<PartitionTail> {
  const { transport, topic, partition, from, fence, signal } = options;
  const recovery = new TailRecovery(from);
  const decoder = new MessageDecoder();
  let highestVersion = 0n;
  for await (const batch of transport.read({ topic, partition, from: from.offset + 1, until: fence, signal })) {
    for (const record of batch.records) {
      const payload = payloadOf(record);
      if (payload === null) recovery.skip(record.offset);
      else if (keyKind(record.key) === 'fence') recovery.skip(record.offset, readDelivery(payload).epoch);
      else {
        const delivery = readDelivery(payload);
        if (delivery.version > highestVersion) highestVersion = delivery.version;
        recovery.offer(record.offset, delivery, () => decoder.decode(payload).source.change);
      }
    }
  }
  const { frontier, highestEpoch, anomaly } = recovery.result();
  const frontierCounter = frontier.offset === from.offset ? 0 : await counterAt(options, frontier.offset);
  const highestCounter = Number(highestVersion >> BigInt(ORDINAL_BITS));
  return { frontier, frontierCounter, highestEpoch, highestCounter, anomaly: anomaly !== null };
}

async function counterAt(
  {
    transport,
    topic,
    partition,
    signal,
  }: { transport: Transport; topic: string; partition: number; signal: AbortSignal },
  offset: number,
): Promise<number> {
  for await (const batch of transport.read({ topic, partition, from: offset, until: offset + 1, signal })) {
    const record = batch.records[0];
    const payload = record === undefined ? null : payloadOf(record);
    if (payload !== null) return Number(readDelivery(payload).version >> BigInt(ORDINAL_BITS));
  }
  return 0;
}

/** The state of a partition before anything was published. */
export function untouched(range: OffsetRange): PartitionCheckpoint {
  return { epoch: 0, generation: 0, sequence: 0, offset: range.earliest - 1, change: NO_CHANGE };
}
