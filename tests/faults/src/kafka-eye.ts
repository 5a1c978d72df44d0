/** Looks at the log with Kafka's protocol, and does to its topic what others may do. */
import { randomName, until } from '@mysync/harness';
import { type Admin, type EachBatchPayload, Kafka, logLevel, type PartitionMetadata } from 'kafkajs';
import { KafkaTail, QUICK } from './kafka-tail.ts';
import type { LogEye, LoggedMessage } from './log-eye.ts';

const READ_MS = 40_000;

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
    await this.make(partitions);
  }

  /** Makes the topic, with settings other than those that MySync asks for. */
  async make(partitions: number, settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const configEntries = Object.entries({
      'cleanup.policy': 'compact',
      'min.insync.replicas': '2',
      'delete.retention.ms': '604800000',
      'min.compaction.lag.ms': '604800000',
      'max.message.bytes': '16777216',
      ...settings,
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
