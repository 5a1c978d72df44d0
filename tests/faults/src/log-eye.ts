/** Looks at the log between reader and writers without MySync's code: with the store's own library, and with Kafka's protocol. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { randomName, until } from '@mysync/harness';
import { type Admin, type EachBatchPayload, Kafka, logLevel, type PartitionMetadata } from 'kafkajs';
import { type Database, open, type RootDatabase } from 'lmdb';
import { KafkaTail, QUICK } from './kafka-tail.ts';

const READ_MS = 40_000;

/** One record, as far as the suite looks at it. */
export interface LoggedMessage {
  readonly partition: number;
  readonly offset: number;
  readonly key: Uint8Array;
  /** Its message: the value, or the header of a tombstone. */
  readonly message: Uint8Array;
  readonly tombstone: boolean;
}

export interface LogEye {
  /** Every message of the log, each partition in order of its offsets; gives the next offset of each partition, up to which it was read. */
  read(onMessage: (message: LoggedMessage) => void): Promise<readonly number[]>;
  /** Next offset of each partition. */
  ends(): Promise<readonly number[]>;
  /** How far compaction has come; empty where that cannot be seen. */
  cleaned(): Promise<readonly number[]>;
  /** Committed offset of each partition; -1: none. */
  committed(group: string): Promise<readonly number[]>;
  /** The newest value of a key in another topic beside the log, which has one partition; null: there is none. Of what Kafka holds, as far as it was heard of. */
  newest(topic: string, key: string): Promise<Buffer | null>;
  close(): Promise<void>;
}

/** The entries are described in docs/spec/embedded-log.md. */
export class EmbeddedLogEye implements LogEye {
  readonly #root: RootDatabase<Buffer, string>;
  readonly #meta: Database<Buffer, string>;
  readonly #records: Database<Buffer, Buffer>;
  readonly #topic: string;

  private constructor(root: RootDatabase<Buffer, string>, topic: string) {
    this.#root = root;
    this.#meta = root.openDB<Buffer, string>('meta', { encoding: 'binary' });
    this.#records = root.openDB<Buffer, Buffer>('records', { encoding: 'binary', keyEncoding: 'binary' });
    this.#topic = topic;
  }

  /** Only while MySync has it open, and nobody is just opening or closing it. */
  static async open(path: string, topic: string): Promise<EmbeddedLogEye | null> {
    if (!existsSync(join(path, 'data.mdb')) || existsSync(join(path, 'gate'))) return null;
    const root = open<Buffer, string>({
      path,
      noSubdir: false,
      mapSize: 2 ** 40,
      maxDbs: 4,
      encoding: 'binary',
      readOnly: true,
    });
    try {
      return new EmbeddedLogEye(root, topic);
    } catch (error) {
      await root.close();
      throw error;
    }
  }

  async read(onMessage: (message: LoggedMessage) => void): Promise<readonly number[]> {
    const topic = this.#entry();
    if (topic === undefined) return [];
    const ends = await this.ends();
    const [start, end] = bounds(topic.id);
    for (const { key, value } of this.#records.getRange({ start, end })) {
      readStoredBatch(Buffer.from(key).readUInt32BE(8), Buffer.from(value), onMessage);
    }
    return ends;
  }

  /** From the newest batch on: of a topic that is written often, and compacted rarely, this is one of the first. */
  async newest(name: string, wanted: string): Promise<Buffer | null> {
    const topic = this.#entry(name);
    if (topic === undefined) return null;
    const [start, end] = bounds(topic.id);
    let found: Buffer | null = null;
    for (const { value } of this.#records.getRange({ start: end, end: start, reverse: true })) {
      readStoredBatch(0, Buffer.from(value), ({ key, message, tombstone }) => {
        if (!tombstone && Buffer.from(key).toString('utf8') === wanted) found = Buffer.from(message);
      });
      if (found !== null) break;
    }
    return found;
  }

  async ends(): Promise<readonly number[]> {
    return this.#states('end');
  }

  async cleaned(): Promise<readonly number[]> {
    return this.#states('cleanedTo');
  }

  async committed(group: string): Promise<readonly number[]> {
    const topic = this.#entry();
    if (topic === undefined) return [];
    return Array.from({ length: topic.partitions }, (_, partition) => {
      return this.#read<{ committed: number | null }>(`owner/${topic.id}/${group}/${partition}`)?.committed ?? -1;
    });
  }

  async close(): Promise<void> {
    await this.#root.close();
  }

  #states(field: 'end' | 'cleanedTo'): readonly number[] {
    const topic = this.#entry();
    if (topic === undefined) return [];
    return Array.from({ length: topic.partitions }, (_, partition) => {
      return this.#read<Record<typeof field, number>>(`partition/${topic.id}/${partition}`)?.[field] ?? 0;
    });
  }

  #entry(topic = this.#topic): { id: string; partitions: number } | undefined {
    this.#root.resetReadTxn();
    return this.#read<{ id: string; partitions: number }>(`topic/${topic}`);
  }

  #read<T>(key: string): T | undefined {
    const bytes = this.#meta.get(key);
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString('utf8')) as T);
  }
}

/** Where the batches of a topic lie: from the first key on, and before the second. */
function bounds(topicId: string): readonly [Buffer, Buffer] {
  const next = (BigInt(`0x${topicId}`) + 1n).toString(16).padStart(16, '0');
  return [Buffer.from(topicId, 'hex'), Buffer.from(next, 'hex')];
}

/** A batch as docs/spec/embedded-log.md's store holds it: 48 bytes of header, then the records. */
function readStoredBatch(partition: number, batch: Buffer, onMessage: (message: LoggedMessage) => void): void {
  const base = batch.readDoubleLE(16);
  let at = 48;
  for (let left = batch.readUInt32LE(12); left > 0; left -= 1) {
    const length = batch.readUInt32LE(at);
    const offset = base + batch.readUInt32LE(at + 4);
    const keyEnd = at + 18 + batch.readUInt32LE(at + 8);
    const valueLength = batch.readInt32LE(at + 12);
    const tombstone = valueLength < 0;
    // the only header is the message of a tombstone
    const headerAt = keyEnd + 6 + (tombstone ? batch.readUInt16LE(keyEnd) : 0);
    const message = tombstone
      ? batch.subarray(headerAt, headerAt + batch.readUInt32LE(keyEnd + 2))
      : batch.subarray(keyEnd, keyEnd + valueLength);
    onMessage({ partition, offset, key: batch.subarray(at + 18, keyEnd), message, tombstone });
    at += length;
  }
}

export class KafkaEye implements LogEye {
  readonly #admin: Admin;
  readonly #kafka: Kafka;
  readonly #topic: string;
  /** Of other topics. */
  readonly #tails = new Map<string, KafkaTail>();

  private constructor(kafka: Kafka, topic: string) {
    this.#kafka = kafka;
    this.#admin = kafka.admin();
    this.#topic = topic;
  }

  static async open(brokers: readonly string[], topic: string): Promise<KafkaEye> {
    const retry = { retries: 1, initialRetryTime: 50, maxRetryTime: 200 };
    const patience = { requestTimeout: 2500, connectionTimeout: 1000, retry };
    const eye = new KafkaEye(new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING, ...patience }), topic);
    await eye.#admin.connect();
    return eye;
  }

  async read(onMessage: (message: LoggedMessage) => void): Promise<readonly number[]> {
    const ends = await this.#settledEnds();
    const missing = new Set([...ends.keys()].filter((partition) => (ends[partition] ?? 0) > 0));
    if (missing.size === 0) return ends;
    // one that starts anew by itself, as when a leader moves, reads from the beginning again
    const next = ends.map(() => 0);
    const consumer = this.#kafka.consumer({ groupId: randomName('audit'), ...QUICK });
    try {
      await until('the log can be read', async () => {
        await consumer.connect();
        await consumer.subscribe({ topic: this.#topic, fromBeginning: true });
        return true;
      });
      await new Promise<void>((resolve, reject) => {
        const deadline = setTimeout(() => reject(new Error('the log could not be read to its end')), READ_MS);
        const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
          for (const { offset, key, value, headers } of batch.messages) {
            const message = value ?? headers?.['mysync'];
            const at = Number(offset);
            if (at < (next[batch.partition] ?? 0) || at >= (ends[batch.partition] ?? 0)) continue;
            next[batch.partition] = at + 1;
            if (!Buffer.isBuffer(message) || key === null) continue;
            onMessage({ partition: batch.partition, offset: at, key, message, tombstone: value === null });
          }
          if (Number(batch.lastOffset()) + 1 >= (ends[batch.partition] ?? 0)) missing.delete(batch.partition);
          if (missing.size > 0) return;
          clearTimeout(deadline);
          resolve();
        };
        consumer.run({ autoCommit: false, eachBatch }).catch(reject);
      });
      return ends;
    } finally {
      await consumer.disconnect();
    }
  }

  /** Deletes the topic, and makes one of the same name. */
  async remake(partitions: number): Promise<void> {
    await until('the topic is deleted', async () => {
      if ((await this.#admin.listTopics()).includes(this.#topic))
        await this.#admin.deleteTopics({ topics: [this.#topic] });
      return true;
    });
    const configEntries = Object.entries({
      'cleanup.policy': 'compact',
      'min.insync.replicas': '2',
      'delete.retention.ms': '604800000',
      'min.compaction.lag.ms': '604800000',
      'max.message.bytes': '16777216',
    }).map(([name, value]) => ({ name, value }));
    const topic = { topic: this.#topic, numPartitions: partitions, replicationFactor: 3, configEntries };
    await until('the topic is made anew', async () => {
      const there = (await this.#admin.listTopics()).includes(this.#topic);
      // somebody else may have made it
      return there || (await this.#admin.createTopics({ topics: [topic] }));
    });
  }

  /** Puts a record of a stranger into a partition; gives its offset. */
  async put(partition: number, key: Uint8Array, value: Uint8Array): Promise<number> {
    await this.#settledEnds();
    const producer = this.#kafka.producer();
    await producer.connect();
    try {
      const messages = [{ partition, key: Buffer.from(key), value: Buffer.from(value) }];
      const [stored] = await producer.send({ topic: this.#topic, acks: -1, messages });
      return Number(stored?.baseOffset ?? -1);
    } finally {
      await producer.disconnect();
    }
  }

  async ends(): Promise<readonly number[]> {
    const found: number[] = [];
    for (const { partition, high } of await this.#admin.fetchTopicOffsets(this.#topic)) found[partition] = Number(high);
    return found;
  }

  async cleaned(): Promise<readonly number[]> {
    return [];
  }

  /** Ids of the brokers that lead a partition. */
  async leaders(): Promise<readonly number[]> {
    return (await this.#partitions()).map(({ leader }) => leader).filter((leader) => leader > 0);
  }

  /** Has each partition led by its next replica: the brokers give leadership to the first of the list, and this is another now. */
  async moveLeaders(): Promise<void> {
    const partitions = await until('the partitions of the topic', () => this.#partitions());
    const partitionAssignment = partitions.map(({ partitionId: partition, replicas: [first = 0, ...others] }) => ({
      partition,
      replicas: [...others, first],
    }));
    await this.#admin.alterPartitionReassignments({ topics: [{ topic: this.#topic, partitionAssignment }] });
    await until('other brokers lead', async () => {
      const moved = await this.#partitions();
      return partitionAssignment.every(({ partition, replicas: [first] }) =>
        moved.some(({ partitionId, leader }) => partitionId === partition && leader === first),
      );
    });
  }

  async committed(group: string): Promise<readonly number[]> {
    const found: number[] = [];
    for (const { partitions } of await this.#admin.fetchOffsets({ groupId: group, topics: [this.#topic] })) {
      for (const { partition, offset } of partitions) found[partition] = Number(offset);
    }
    return found;
  }

  async newest(topic: string, key: string): Promise<Buffer | null> {
    const tail = this.#tails.get(topic) ?? (await KafkaTail.follow(this.#kafka, topic));
    this.#tails.set(topic, tail);
    try {
      return tail.newest(key);
    } catch (error) {
      // another one follows at the next look
      this.#tails.delete(topic);
      await tail.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const tail of this.#tails.values()) await tail.close();
    await this.#admin.disconnect();
  }

  /** Once every partition has a leader: long after a fault one may be on the move, since brokers get their leadership back. */
  async #settledEnds(): Promise<readonly number[]> {
    return await until('the ends of the log', () => this.ends());
  }

  async #partitions(): Promise<readonly PartitionMetadata[]> {
    const { topics } = await this.#admin.fetchTopicMetadata({ topics: [this.#topic] });
    return topics.flatMap(({ partitions }) => partitions);
  }
}
