/**
 * A member of a consumer group with one handler per partition (docs/spec/kafka-transport.md, docs/adr/0042).
 *
 * 1. A partition has one handler at a time in this process: where one outstays its hand-over, the next waits for its end.
 * 2. What a handler commits counts until the partition is given up; from then on it is refused without asking.
 * 3. A partition is given up when its handler has ended, or `handoverMs` after it was revoked; only then the group is told.
 * 4. Stopping is the same for every partition at once; the membership is kept until the last one is given up.
 */
import { Contact, type Outage, systemClock } from '@mysync/core';
import { unlessAborted } from '@mysync/flow';
import type {
  AssignedPartition,
  Consumer,
  ConsumerOptions,
  OffsetRange,
  RecordBatch,
  TopicDescription,
} from '@mysync/transport';
import { BrokerError } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { Fetcher } from './fetcher.ts';
import { GroupMember } from './group-member.ts';
import { fetchCommitted, OffsetCommitter } from './group-offsets.ts';
import { patiently } from './patience.ts';
import { CODE } from './protocol/codes.ts';
import { Reporter } from './reporter.ts';
import { rangeOf } from './topic-admin.ts';

type Handle = (partition: AssignedPartition) => Promise<void>;

/** A partition that this member holds. */
interface Slot {
  readonly partition: number;
  readonly revoke: AbortController;
  /** Settles when its handler has ended; never rejects. */
  ended: Promise<void>;
  givenUp: boolean;
}

export interface KafkaConsumerOptions extends ConsumerOptions {
  readonly cluster: Cluster;
  readonly describe: () => Promise<TopicDescription>;
  readonly onClose: (consumer: KafkaConsumer) => void;
}

export class KafkaConsumer implements Consumer {
  readonly #options: KafkaConsumerOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> | null = null;
  #consuming: ConsumerRun | null = null;
  /** Before it consumes: with whoever knows the topic. */
  readonly #contact = new Contact();

  constructor(options: KafkaConsumerOptions) {
    this.#options = options;
  }

  get outage(): Outage | null {
    return this.#consuming === null ? this.#contact.outage : this.#consuming.outage;
  }

  async run(handle: Handle, signal: AbortSignal): Promise<void> {
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    const run = this.#run(handle, stop);
    this.#running = run.catch(() => {});
    await run;
  }

  /** Ends `run` as its signal would, and waits for it; connections go at the latest `handoverMs` later. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#running !== null) {
      const timer = new AbortController();
      await Promise.race([this.#running, pause(this.#options.handoverMs, timer.signal)]);
      timer.abort();
    }
    this.#options.cluster.close();
    this.#options.onClose(this);
  }

  async #run(handle: Handle, stop: AbortSignal): Promise<void> {
    if (stop.aborted) return;
    this.#contact.lost('looking for the topic', systemClock.monotonic());
    const topic = await this.#describe(stop);
    if (topic === null) return;
    this.#consuming = new ConsumerRun(this.#options, topic, handle);
    await this.#consuming.run(stop);
  }

  /** null when stopped meanwhile: brokers that do not answer are waited for, a stop does not wait for them. */
  async #describe(stop: AbortSignal): Promise<TopicDescription | null> {
    try {
      return await unlessAborted(this.#options.describe(), stop);
    } catch (error) {
      if (stop.aborted && error === stop.reason) return null;
      throw error;
    }
  }
}

class ConsumerRun {
  readonly #options: KafkaConsumerOptions;
  readonly #cluster: Cluster;
  readonly #topic: TopicDescription;
  readonly #handle: Handle;
  readonly #fetcher: Fetcher;
  readonly #member: GroupMember;
  readonly #committer: OffsetCommitter;
  readonly #slots = new Map<number, Slot>();
  /** Handlers that still run although their partition was given up. */
  readonly #overdue = new Map<number, Promise<void>>();
  /** Aborts when everything must be given up: stopped from outside, or a failure. */
  readonly #stop = new AbortController();
  #assignment: ReadonlySet<number> = new Set();
  #failure: { readonly error: unknown } | null = null;

  constructor(options: KafkaConsumerOptions, topic: TopicDescription, handle: Handle) {
    const { cluster, group, maxBatchBytes } = options;
    this.#options = options;
    this.#cluster = cluster;
    this.#topic = topic;
    this.#handle = handle;
    this.#fetcher = new Fetcher({ cluster, topic: topic.name, topicId: topic.id, maxBatchBytes, client: 'consumer' });
    this.#member = new GroupMember({
      cluster,
      group,
      topic: topic.name,
      partitions: topic.partitions,
      owned: () => [...this.#slots.keys()],
      onAssigned: (partitions) => this.#assigned(partitions),
      onLost: () => this.#lost(),
    });
    this.#committer = new OffsetCommitter({ cluster, group, topic: topic.name, member: this.#member });
  }

  get outage(): Outage | null {
    return this.#member.outage;
  }

  async run(stop: AbortSignal): Promise<void> {
    const membership = new AbortController();
    const onStop = (): void => this.#stop.abort();
    stop.addEventListener('abort', onStop, { once: true });
    const membershipEnded = this.#member.run(membership.signal).catch((error: unknown) => this.#fail(error));
    await aborted(this.#stop.signal);
    stop.removeEventListener('abort', onStop);
    await Promise.all([...this.#slots.values()].map((slot) => this.#giveUp(slot)));
    membership.abort();
    await this.#member.leave();
    this.#fetcher.close();
    this.#cluster.close(); // also ends a join that still waits for other members
    await membershipEnded;
    await Promise.all(this.#overdue.values());
    if (this.#failure !== null) throw this.#failure.error;
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#stop.abort();
  }

  #assigned(partitions: readonly number[]): void {
    this.#assignment = new Set(partitions);
    if (this.#stop.signal.aborted) return;
    for (const slot of this.#slots.values()) {
      if (!this.#assignment.has(slot.partition) && !slot.revoke.signal.aborted) this.#hand(slot);
    }
    for (const partition of partitions) if (!this.#slots.has(partition)) this.#take(partition);
  }

  #lost(): void {
    this.#assignment = new Set();
    for (const slot of [...this.#slots.values()]) {
      slot.givenUp = true;
      slot.revoke.abort();
      this.#remove(slot);
    }
  }

  /** Gives a partition up and tells the group, or takes it again if the group gave it back meanwhile. */
  #hand(slot: Slot): void {
    this.#giveUp(slot).then(
      () => {
        if (this.#stop.signal.aborted || this.#slots.has(slot.partition)) return;
        if (this.#assignment.has(slot.partition)) this.#take(slot.partition);
        else if (this.#member.membership !== null) this.#member.rejoin();
      },
      (error: unknown) => this.#fail(error),
    );
  }

  async #giveUp(slot: Slot): Promise<void> {
    slot.revoke.abort();
    const timer = new AbortController();
    await Promise.race([slot.ended, pause(this.#options.handoverMs, timer.signal)]);
    timer.abort();
    if (slot.givenUp) return; // lost meanwhile
    slot.givenUp = true;
    this.#remove(slot);
  }

  #remove(slot: Slot): void {
    if (this.#slots.get(slot.partition) === slot) this.#slots.delete(slot.partition);
    const before = this.#overdue.get(slot.partition);
    const overdue = before === undefined ? slot.ended : Promise.all([before, slot.ended]).then(() => {});
    const last = overdue.then(() => {
      if (this.#overdue.get(slot.partition) === last) this.#overdue.delete(slot.partition);
    });
    this.#overdue.set(slot.partition, last);
  }

  #take(partition: number): void {
    const slot: Slot = { partition, revoke: new AbortController(), ended: Promise.resolve(), givenUp: false };
    this.#slots.set(partition, slot);
    slot.ended = this.#work(slot).catch((error: unknown) => this.#fail(error));
  }

  async #work(slot: Slot): Promise<void> {
    const { signal } = slot.revoke;
    await this.#overdue.get(slot.partition);
    let start: { committed: number | null; range: OffsetRange };
    try {
      const reporter = new Reporter(this.#cluster.options.observer, {
        topic: this.#topic.name,
        partition: slot.partition,
      });
      const onTrouble = (trouble: string): void => reporter.trouble(trouble);
      const patience = { what: 'the offsets of the group', signal, onTrouble };
      start = await patiently(patience, () => this.#start(slot.partition));
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    if (signal.aborted) return;
    const fetcher = this.#fetcher;
    await this.#handle({
      topic: this.#topic,
      partition: slot.partition,
      ...start,
      revoked: signal,
      get outage(): Outage | null {
        return fetcher.outage(slot.partition);
      },
      batches: (from: number, until?: AbortSignal): AsyncIterable<RecordBatch> =>
        fetcher.batches(slot.partition, from, until === undefined ? signal : AbortSignal.any([signal, until])),
      commit: (nextOffset: number) => this.#committer.commit(slot.partition, nextOffset, () => !slot.givenUp),
    });
  }

  async #start(partition: number): Promise<{ committed: number | null; range: OffsetRange }> {
    const { group } = this.#options;
    const { name } = this.#topic;
    try {
      const coordinator = await this.#member.coordinator();
      const committed = await fetchCommitted(this.#cluster, { coordinator, group, topic: name }, [partition]);
      const topic = await this.#cluster.topic(name);
      if (topic === null) throw new BrokerError(CODE.UNKNOWN_TOPIC_OR_PARTITION, `the topic '${name}' is not there`);
      const leader = topic.partitions[partition]?.leader ?? -1;
      const range = await rangeOf(this.#cluster, { topic: name, leader, partition });
      return { committed: committed.get(partition) ?? null, range };
    } catch (error) {
      this.#member.forgetCoordinator();
      throw error;
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return systemClock.sleep(ms, signal).catch(() => {});
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
