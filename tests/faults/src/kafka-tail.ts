import { randomName } from '@mysync/harness';
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';

/**
 * The client's own defaults are long: five seconds for a look at the end of a topic, and for leaving it; half a minute for a group that is joined again after
 * all brokers were away.
 */
export const QUICK = {
  maxWaitTimeInMs: 200,
  sessionTimeout: 6000,
  rebalanceTimeout: 6000,
  heartbeatInterval: 1000,
} as const;

/** Follows a topic in the background, and keeps the newest value of each key. It goes on by itself when brokers come back. */
export class KafkaTail {
  readonly #consumer: Consumer;
  readonly #newest = new Map<string, Buffer>();
  /** Why it ended; null while it follows. */
  #broken: Error | null = null;

  private constructor(kafka: Kafka) {
    this.#consumer = kafka.consumer({ groupId: randomName('tail'), allowAutoTopicCreation: false, ...QUICK });
    this.#consumer.on('consumer.crash', ({ payload: { error, restart } }) => {
      if (!restart) this.#broken = error;
    });
  }

  /** Rejects while the topic cannot be read, also where there is none. */
  static async follow(kafka: Kafka, topic: string): Promise<KafkaTail> {
    const tail = new KafkaTail(kafka);
    try {
      await tail.#start(topic);
    } catch (error) {
      await tail.close();
      throw error;
    }
    return tail;
  }

  /** null before there is one. Throws once it has ended. */
  newest(key: string): Buffer | null {
    if (this.#broken !== null) throw new Error('the topic is not followed any more', { cause: this.#broken });
    return this.#newest.get(key) ?? null;
  }

  async close(): Promise<void> {
    // brokers that are away are not told
    await this.#consumer.disconnect().catch(() => undefined);
  }

  async #start(topic: string): Promise<void> {
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topic, fromBeginning: true });
    const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
      for (const { key, value } of batch.messages) {
        if (key !== null && value !== null) this.#newest.set(key.toString('utf8'), value);
      }
    };
    await this.#consumer.run({ autoCommit: false, eachBatch });
  }
}
