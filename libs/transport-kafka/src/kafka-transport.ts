/** Kafka behind the transport port. */
import { coreErrors, type Finding } from '@mysync/core';
import {
  type Consumer,
  type ConsumerOptions,
  type OffsetRange,
  type Publisher,
  type PublisherOptions,
  type ReadOptions,
  type RecordBatch,
  type TopicDescription,
  type TopicSpec,
  type Transport,
  transportErrors,
} from '@mysync/transport';
import { Cluster } from './cluster.ts';
import { KafkaConsumer } from './consumer.ts';
import { Fetcher } from './fetcher.ts';
import { fetchCommitted } from './group-offsets.ts';
import { BATCH_OVERHEAD_BYTES, type KafkaOptions, type ResolvedKafkaOptions, resolveOptions } from './options.ts';
import { patiently } from './patience.ts';
import { KafkaPublisher } from './publisher.ts';
import { missing, TopicAdmin } from './topic-admin.ts';

const READ_BYTES = 2 ** 20;

export class KafkaTransport implements Transport {
  readonly kind = 'kafka';
  readonly #options: ResolvedKafkaOptions;
  readonly #cluster: Cluster;
  readonly #admin: TopicAdmin;
  readonly #stop = new AbortController();
  readonly #publishers = new Set<KafkaPublisher>();
  readonly #consumers = new Set<KafkaConsumer>();

  constructor(options: KafkaOptions) {
    this.#options = resolveOptions(options);
    this.#cluster = new Cluster(this.#options);
    this.#admin = new TopicAdmin(this.#cluster);
  }

  async ensureTopic(spec: TopicSpec): Promise<TopicDescription> {
    this.#check();
    return await this.#admin.ensure(spec);
  }

  async describeTopic(name: string): Promise<TopicDescription | null> {
    this.#check();
    return await this.#admin.describe(name);
  }

  async check(spec: TopicSpec): Promise<readonly Finding[]> {
    return await this.#admin.check(spec);
  }

  async offsetRanges(topic: string): Promise<readonly OffsetRange[]> {
    this.#check();
    return await this.#admin.ranges(topic);
  }

  async committedOffsets(topic: string, group: string): Promise<readonly (number | null)[]> {
    this.#check();
    const description = await this.#describe(topic);
    const partitions = Array.from({ length: description.partitions }, (_, partition) => partition);
    const limitMs = 2 * this.#options.requestTimeoutMs;
    const committed = await patiently({ what: 'the offsets of the group', limitMs }, async () => {
      const coordinator = await this.#cluster.coordinator('group', group);
      return await fetchCommitted(this.#cluster, { coordinator, group, topic }, partitions);
    });
    return partitions.map((partition) => committed.get(partition) ?? null);
  }

  async openPublisher(options: PublisherOptions): Promise<Publisher> {
    this.#check();
    const cluster = new Cluster(this.#options);
    const opening = KafkaPublisher.open({
      ...options,
      cluster,
      maxMessageBytes: () => this.#maxMessageBytes(options.topic),
      onClose: (closed) => this.#publishers.delete(closed),
    });
    // a publisher that could not be opened leaves no connection behind
    opening.catch(() => cluster.close());
    const publisher = await opening;
    if (this.#stop.signal.aborted) await publisher.close(0);
    this.#check();
    this.#publishers.add(publisher);
    return publisher;
  }

  async *read(options: ReadOptions): AsyncGenerator<RecordBatch, void, undefined> {
    this.#check();
    const { topic, partition, from, until } = options;
    if (until !== undefined && from >= until) return;
    const description = await this.#describe(topic);
    if (partition >= description.partitions) {
      throw coreErrors.INTERNAL({ message: `read: there is no partition ${partition}`, where: { topic } });
    }
    const cluster = new Cluster(this.#options);
    const maxBatchBytes = options.maxBytes ?? READ_BYTES;
    const fetcher = new Fetcher({ cluster, topic, topicId: description.id, maxBatchBytes, client: 'reader' });
    const signals = options.signal === undefined ? [] : [options.signal];
    try {
      for await (const batch of fetcher.batches(partition, from, AbortSignal.any([this.#stop.signal, ...signals]))) {
        if (until === undefined || batch.nextOffset < until) {
          yield batch;
          continue;
        }
        yield { ...batch, records: batch.records.filter(({ offset }) => offset < until), nextOffset: until };
        return;
      }
    } finally {
      fetcher.close();
      cluster.close();
    }
  }

  async openConsumer(options: ConsumerOptions): Promise<Consumer> {
    this.#check();
    const consumer = new KafkaConsumer({
      ...options,
      cluster: new Cluster(this.#options),
      describe: () => this.#describe(options.topic),
      onClose: (closed) => this.#consumers.delete(closed),
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([
      ...[...this.#publishers].map((publisher) => publisher.close(0)),
      ...[...this.#consumers].map((consumer) => consumer.close()),
    ]);
    this.#cluster.close();
  }

  async #describe(topic: string): Promise<TopicDescription> {
    const description = await this.#admin.describe(topic);
    if (description === null) throw missing(topic);
    return description;
  }

  /** What the topic takes; the option where this user may not see it. */
  async #maxMessageBytes(topic: string): Promise<number> {
    try {
      const value = Number((await this.#admin.config(topic)).get('max.message.bytes'));
      if (Number.isSafeInteger(value) && value > 0) return value;
    } catch {
      // Without the right to describe it the broker's refusal has to do.
    }
    return this.#options.maxRecordBytes + BATCH_OVERHEAD_BYTES;
  }

  #check(): void {
    if (this.#stop.signal.aborted) throw transportErrors.TRANSPORT_CLOSED({ message: 'the transport was closed' });
  }
}

export function createKafkaTransport(options: KafkaOptions): Transport {
  return new KafkaTransport(options);
}
