/** What the tests of this room share: a transport on a real broker, and an operator's tools by kafkajs's own admin client. */
import { randomBytes } from 'node:crypto';
import { sharedServer, startServer, type TestServer } from '@mysync/harness';
import type { OutgoingRecord, TopicSpec, Transport } from '@mysync/transport';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import type { Cluster } from './cluster.ts';
import { createKafkaTransport } from './kafka-transport.ts';
import type { KafkaOptions } from './options.ts';
import type { ProducerNumbers } from './protocol/init-producer-id.ts';
import { type ProduceAnswer, produceAnswer } from './protocol/produce-answer.ts';
import { PRODUCE, ProduceEncoder } from './protocol/record-batch-encode.ts';

const DEFAULT_VERSION = '4.1.1';

/** The shared broker, of the version that KAFKA_VERSION names. */
export async function sharedKafka(): Promise<TestServer> {
  // biome-ignore lint/style/noProcessEnv: only tests import this file
  const version = process.env.KAFKA_VERSION ?? DEFAULT_VERSION;
  if (version === DEFAULT_VERSION) return await sharedServer('kafka');
  return await startServer('kafka', { instance: `shared-${version.replaceAll('.', '-')}` });
}

export function brokersOf(server: TestServer): string[] {
  return server.get('KAFKA_BROKERS').split(',');
}

export function transportOn(server: TestServer, more: Partial<KafkaOptions> = {}): Transport {
  return createKafkaTransport({ brokers: brokersOf(server), clientId: 'mysync-test', ...more });
}

export function topicName(): string {
  return `t-${randomBytes(6).toString('hex')}`;
}

export function spec(name: string, partitions = 1, more: Partial<TopicSpec> = {}): TopicSpec {
  return {
    name,
    partitions,
    compacted: true,
    deleteRetentionMs: 7 * 86_400_000,
    minCompactionLagMs: 86_400_000,
    retentionMs: -1,
    allowWeaker: true,
    ...more,
  };
}

export function record(key: string, value: string | null = key): OutgoingRecord {
  return { key: Buffer.from(key), value: value === null ? null : Buffer.from(value), headers: [] };
}

/** One record under exactly these numbers. */
export async function produceAs(
  cluster: Cluster,
  topic: string,
  numbers: ProducerNumbers,
  firstSequence: number,
): Promise<ProduceAnswer> {
  const encoder = new ProduceEncoder({ clientId: 'raw', topic, timeoutMs: 5000, compression: 'none' });
  const records = [record(`${numbers.producerEpoch}:${firstSequence}`)];
  const buffer = Buffer.alloc(encoder.room(records));
  const length = encoder.encode(buffer, 0, records, { ...numbers, firstSequence }, Date.now());
  const leader = (await cluster.topic(topic))?.partitions[0]?.leader ?? -1;
  return produceAnswer(await (await cluster.link(leader, 'raw')).send(buffer.subarray(0, length), PRODUCE));
}

export interface SeenRecord {
  readonly offset: number;
  readonly key: string;
  readonly value: string | null;
}

export async function readAll(transport: Transport, topic: string, partition = 0): Promise<SeenRecord[]> {
  const range = (await transport.offsetRanges(topic))[partition];
  if (range === undefined) throw new Error(`no partition ${partition}`);
  const seen: SeenRecord[] = [];
  for await (const batch of transport.read({ topic, partition, from: range.earliest, until: range.end })) {
    for (const { offset, key, value } of batch.records) {
      seen.push({
        offset,
        key: Buffer.from(key).toString(),
        value: value === null ? null : Buffer.from(value).toString(),
      });
    }
  }
  return seen;
}

export function kafkajsOn(server: TestServer): Kafka {
  return new Kafka({ brokers: brokersOf(server), clientId: 'operator', logLevel: logLevel.NOTHING });
}

export async function withAdmin<T>(server: TestServer, use: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafkajsOn(server).admin({ retry: { retries: 10 } });
  await admin.connect();
  try {
    return await use(admin);
  } finally {
    await admin.disconnect();
  }
}
