/** Looks at the log between reader and writers without MySync's code: with the store's own library, and with Kafka's protocol. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import { type Database, open, type RootDatabase } from 'lmdb';

export interface LogEye {
  /** Next offset of each partition. */
  ends(): Promise<readonly number[]>;
  /** How far compaction has come; empty where that cannot be seen. */
  cleaned(): Promise<readonly number[]>;
  /** Committed offset of each partition; -1: none. */
  committed(group: string): Promise<readonly number[]>;
  close(): Promise<void>;
}

/** The entries are described in docs/spec/embedded-log.md. */
export class EmbeddedLogEye implements LogEye {
  readonly #root: RootDatabase<Buffer, string>;
  readonly #meta: Database<Buffer, string>;
  readonly #topic: string;

  private constructor(root: RootDatabase<Buffer, string>, topic: string) {
    this.#root = root;
    this.#meta = root.openDB<Buffer, string>('meta', { encoding: 'binary' });
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

  #entry(): { id: string; partitions: number } | undefined {
    this.#root.resetReadTxn();
    return this.#read<{ id: string; partitions: number }>(`topic/${this.#topic}`);
  }

  #read<T>(key: string): T | undefined {
    const bytes = this.#meta.get(key);
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString('utf8')) as T);
  }
}

export class KafkaEye implements LogEye {
  readonly #admin: Admin;
  readonly #topic: string;

  private constructor(admin: Admin, topic: string) {
    this.#admin = admin;
    this.#topic = topic;
  }

  static async open(brokers: readonly string[], topic: string): Promise<KafkaEye> {
    const admin = kafkaAdmin(brokers);
    await admin.connect();
    return new KafkaEye(admin, topic);
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
    const { topics } = await this.#admin.fetchTopicMetadata({ topics: [this.#topic] });
    return topics.flatMap(({ partitions }) => partitions.map(({ leader }) => leader)).filter((leader) => leader > 0);
  }

  async committed(group: string): Promise<readonly number[]> {
    const found: number[] = [];
    for (const { partitions } of await this.#admin.fetchOffsets({ groupId: group, topics: [this.#topic] })) {
      for (const { partition, offset } of partitions) found[partition] = Number(offset);
    }
    return found;
  }

  async close(): Promise<void> {
    await this.#admin.disconnect();
  }
}

export function kafkaAdmin(brokers: readonly string[]): Admin {
  const retry = { retries: 1, initialRetryTime: 50, maxRetryTime: 200 };
  const options = {
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    requestTimeout: 1500,
    connectionTimeout: 1000,
    retry,
  };
  return new Kafka(options).admin();
}
