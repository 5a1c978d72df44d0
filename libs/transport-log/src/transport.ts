/** The embedded log behind the transport port: see docs/spec/embedded-log.md. */
import { type Clock, causeText, type Finding, isMysyncError, systemClock } from '@mysync/core';
import type {
  Consumer,
  ConsumerOptions,
  OffsetRange,
  ProducerIdentity,
  Publisher,
  PublisherOptions,
  ReadOptions,
  RecordBatch,
  TopicDescription,
  TopicSpec,
  Transport,
} from '@mysync/transport';
import { LogConsumer } from './consumer.ts';
import { logErrors } from './errors.ts';
import { Maintenance, type MaintenanceOptions } from './maintenance.ts';
import { type GroupPlace, readOwnership } from './membership.ts';
import { follow } from './partition-reader.ts';
import { randomId } from './process-identity.ts';
import { LogPublisher, raiseEpoch } from './publisher.ts';
import { removeBefore } from './retention.ts';
import { closedError, type Fsync, Store } from './store.ts';
import {
  checkName,
  deleteTopic,
  describe,
  ensureTopic,
  findTopic,
  requirePartition,
  requireTopic,
  topicMissing,
  topicProblems,
} from './topics.ts';

export interface LogTransportOptions {
  /** Directory of the log, on a local file system. Made when missing. */
  readonly path: string;
  /**
   * `commit` (default): an acked batch is on disk. `interval`: it is in the page cache and on disk within
   * `fsyncIntervalMs`; the death of any process loses nothing, but a power failure may damage the log so that it must be
   * made anew.
   */
  readonly fsync?: Fsync;
  /** Default 1000. */
  readonly fsyncIntervalMs?: number;
  /** Bytes of records the log may hold; a publish beyond is refused with TRANSPORT_DISK_FULL. Default: no limit. */
  readonly maxBytes?: number;
  /** Bytes that stay free on the disk, for commits and checkpoints. Default 64 MiB. */
  readonly minFreeBytes?: number;
  /** Default 1 MiB. */
  readonly maxBatchBytes?: number;
  /** Default 64 MiB. */
  readonly maxRecordBytes?: number;
  /** How long a frozen group member keeps its partitions. Default 10 s. */
  readonly memberLeaseMs?: number;
  /** Compaction and retention; false: this process leaves them to others. */
  readonly maintenance?: Partial<MaintenanceOptions> | false;
  readonly clock?: Clock;
  /** Told of what goes wrong in the background; nobody else sees it. */
  readonly onProblem?: (error: unknown) => void;
}

const DEFAULT_MAINTENANCE: MaintenanceOptions = {
  intervalMs: 15_000,
  minDirtyRatio: 0.3,
  minDirtyBytes: 4 * 2 ** 20,
  memoryBytes: 64 * 2 ** 20,
  leaseMs: 30_000,
};
const READ_BYTES = 2 ** 20;

export class LogTransport implements Transport {
  readonly kind = 'log';
  readonly #options: LogTransportOptions;
  readonly #store: Store;
  readonly #stop = new AbortController();
  readonly #publishers = new Set<LogPublisher>();
  readonly #consumers = new Set<LogConsumer>();
  #closing: Promise<void> | undefined;

  private constructor(options: LogTransportOptions, store: Store) {
    this.#options = options;
    this.#store = store;
  }

  static async open(options: LogTransportOptions): Promise<LogTransport> {
    const store = await Store.use({
      path: options.path,
      fsync: options.fsync ?? 'commit',
      fsyncIntervalMs: options.fsyncIntervalMs ?? 1000,
      maxBytes: options.maxBytes ?? Number.MAX_SAFE_INTEGER,
      minFreeBytes: options.minFreeBytes ?? 64 * 2 ** 20,
      clock: options.clock ?? systemClock,
      onProblem: options.onProblem ?? (() => {}),
    });
    if (options.maintenance !== false) {
      const settings = { ...DEFAULT_MAINTENANCE, ...options.maintenance };
      store.startOnce(() => {
        const maintenance = new Maintenance(store, settings);
        return () => maintenance.stop();
      });
    }
    return new LogTransport(options, store);
  }

  /** The log's directory, resolved. */
  get path(): string {
    return this.#store.path;
  }

  async ensureTopic(spec: TopicSpec): Promise<TopicDescription> {
    return await ensureTopic(this.#use(), spec);
  }

  async describeTopic(name: string): Promise<TopicDescription | null> {
    const entry = findTopic(this.#use(), name);
    return entry === undefined ? null : describe(name, entry);
  }

  async check(spec: TopicSpec): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    const { path } = this;
    try {
      const store = this.#use();
      const free = store.freeBytes();
      const kept = store.options.minFreeBytes;
      findings.push({ level: 'ok', code: 'LOG_PATH', message: `the log in ${path} is open for writing`, remedy: '' });
      const room = `${free} bytes are free where the log lies, ${kept} of them are kept free`;
      const isLow = free < 2 * kept;
      const level = free < kept ? 'error' : isLow ? 'warning' : 'ok';
      const remedy = isLow ? logErrors.entries.LOG_DISK.remedy : '';
      findings.push({ level, code: 'LOG_DISK', message: room, remedy });
      const entry = findTopic(store, spec.name);
      if (entry === undefined) {
        const remedy = 'Start the reader: it makes the topic.';
        const message = `topic '${spec.name}' is not there yet`;
        findings.push({ level: 'warning', code: 'TRANSPORT_TOPIC_MISSING', message, remedy });
      } else {
        for (const { code, message, remedy } of topicProblems(entry, spec)) {
          findings.push({ level: 'error', code, message, remedy });
        }
      }
    } catch (error) {
      const code = isMysyncError(error) ? error.code : 'LOG_PATH';
      const remedy = isMysyncError(error) ? error.remedy : logErrors.entries.LOG_PATH.remedy;
      findings.push({ level: 'error', code, message: causeText(error), remedy });
    }
    return findings;
  }

  async offsetRanges(topic: string): Promise<readonly OffsetRange[]> {
    const store = this.#use();
    const entry = requireTopic(store, topic);
    return Array.from({ length: entry.partitions }, (_, partition) => {
      const state = store.partition(entry.id, partition);
      if (state === undefined) throw topicMissing(topic);
      return { earliest: state.earliest, end: state.end };
    });
  }

  async committedOffsets(topic: string, group: string): Promise<readonly (number | null)[]> {
    const place = this.#place(topic, group);
    return Array.from({ length: place.entry.partitions }, (_, partition) => readOwnership(place, partition).committed);
  }

  async openPublisher(options: PublisherOptions): Promise<Publisher> {
    const { topic, producer, previous, signal } = options;
    const store = this.#use();
    signal?.throwIfAborted();
    checkName('producer', producer);
    const entry = requireTopic(store, topic);
    // A log that was made anew goes on under the id that the checkpoint knows: there is nobody else to fence.
    const identity: ProducerIdentity = await raiseEpoch(store, producer, previous?.id ?? randomId());
    signal?.throwIfAborted();
    const publisher = new LogPublisher({
      store,
      topic,
      entry,
      producer,
      identity,
      maxBatchBytes: this.#options.maxBatchBytes ?? 2 ** 20,
      maxRecordBytes: this.#options.maxRecordBytes ?? 256 * 2 ** 20,
      onClose: (closed) => this.#publishers.delete(closed),
    });
    this.#publishers.add(publisher);
    return publisher;
  }

  async *read(options: ReadOptions): AsyncGenerator<RecordBatch, void, void> {
    const store = this.#use();
    const { topic, partition, from, until, maxBytes = READ_BYTES, signal } = options;
    const entry = requireTopic(store, topic);
    requirePartition(entry, topic, partition);
    const stop = signal === undefined ? this.#stop.signal : AbortSignal.any([this.#stop.signal, signal]);
    yield* follow({ store, topic, topicId: entry.id, partition, from, until, maxBytes }, stop);
  }

  async openConsumer(options: ConsumerOptions): Promise<Consumer> {
    const consumer = new LogConsumer({
      ...options,
      place: this.#place(options.topic, options.group),
      leaseMs: this.#options.memberLeaseMs ?? 10_000,
      onClose: (closed) => this.#consumers.delete(closed),
    });
    this.#consumers.add(consumer);
    return consumer;
  }

  /** Deletes a topic with its records and groups: for operators and tests. */
  async deleteTopic(name: string): Promise<void> {
    await deleteTopic(this.#use(), name);
  }

  /** Removes the records before an offset: for operators and tests. */
  async deleteBefore(topic: string, partition: number, offset: number): Promise<void> {
    const store = this.#use();
    await removeBefore(store, requireTopic(store, topic), partition, offset);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()));
    await Promise.all([...this.#publishers].map((publisher) => publisher.close()));
    await this.#store.release();
  }

  #place(topic: string, group: string): GroupPlace {
    const store = this.#use();
    checkName('group', group);
    const entry = requireTopic(store, topic);
    return { store, topicId: entry.id, entry, group };
  }

  /** The store, with other processes' commits visible. */
  #use(): Store {
    if (this.#closing !== undefined) throw closedError();
    this.#store.refresh();
    return this.#store;
  }
}
