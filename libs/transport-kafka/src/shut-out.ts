/** Shutting an old producer id out of the partitions, where its name does not do it any more. */
import type { OutgoingRecord } from '@mysync/transport';
import { writing } from './admission.ts';
import { refusal } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { type PatienceOptions, patiently } from './patience.ts';
import { CODE, isDenied } from './protocol/codes.ts';
import type { TopicMetadata } from './protocol/metadata.ts';
import { produceAnswer } from './protocol/produce-answer.ts';
import { PRODUCE, ProduceEncoder } from './protocol/record-batch-encode.ts';

export const HIGHEST_EPOCH = 32_767;

/** Codes that say: the partition already knows this id with an epoch at least as high, or this very batch. */
const ALREADY_SHUT: ReadonlySet<number> = new Set([
  CODE.INVALID_PRODUCER_EPOCH,
  CODE.PRODUCER_FENCED,
  CODE.DUPLICATE_SEQUENCE_NUMBER,
]);

export interface ShutOutOptions {
  readonly cluster: Cluster;
  readonly topic: string;
  readonly topicNow: () => Promise<TopicMetadata>;
  readonly fenceRecord: ((partition: number) => OutgoingRecord) | undefined;
  readonly producerId: bigint;
  readonly patience: PatienceOptions;
}

/** Stores a record under the old id with the highest epoch in each partition; its holder is refused there from then on. */
export async function shutOut(
  options: ShutOutOptions,
  partitions: readonly { readonly partition: number }[],
): Promise<void> {
  const { topicNow, fenceRecord, patience } = options;
  for (const { partition } of partitions) {
    const record = fenceRecord?.(partition) ?? { key: Buffer.from('mysync-fence'), value: null, headers: [] };
    await patiently(patience, async () => {
      const leader = (await topicNow()).partitions[partition]?.leader ?? -1;
      await store(options, { partition, leader }, record);
    });
  }
}

/** Throws a `BrokerError` when it has to be tried again. */
async function store(
  options: ShutOutOptions,
  place: { readonly partition: number; readonly leader: number },
  record: OutgoingRecord,
): Promise<void> {
  const { cluster, topic, producerId } = options;
  const { clientId, requestTimeoutMs } = cluster.options;
  const encoder = new ProduceEncoder({ clientId, topic, timeoutMs: requestTimeoutMs / 2, compression: 'none' });
  const buffer = Buffer.allocUnsafe(encoder.room([record]));
  const numbers = { producerId, producerEpoch: HIGHEST_EPOCH, firstSequence: 0 };
  const length = encoder.encode(buffer, place.partition, [record], numbers, Date.now());
  const link = await cluster.link(place.leader, 'fence');
  const answer = produceAnswer(await link.send(buffer.subarray(0, length), PRODUCE));
  if (answer.error === 0 || ALREADY_SHUT.has(answer.error)) return;
  if (isDenied(answer.error)) {
    throw cluster.options.admission.denied(writing(topic), 'this user may not write to the topic', { topic });
  }
  throw refusal(answer.error, `the fence in ${topic}, partition ${place.partition}`);
}
