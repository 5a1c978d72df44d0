/**
 * The publisher: batches under numbers of our own (docs/spec/kafka-transport.md, docs/adr/0041).
 *
 * 1. Batches of a partition are given to the broker in call order, at most five without an answer, each with the producer
 *    id, the producer epoch and the sequence of its first record.
 * 2. An answer that never came, and every refusal that may pass, is met by sending the same bytes under the same numbers
 *    again, in order, from the first open batch, for ever: the broker drops what it has and refuses what has a gap before it.
 * 3. Where the numbers themselves are refused, or the log contradicts them, everything open in all partitions is rejected
 *    with TRANSPORT_RENUMBER, and nothing is accepted until `renumber` has raised the epoch.
 * 4. An epoch that is refused is asked about at the coordinator, with our own id and epoch: only the holder of the name
 *    can raise it. A predecessor that was frozen learns there that it is one.
 * 5. The epoch is raised now and then, so that the coordinator does not forget the name (`NameRenewal`). A partition takes the
 *    new epoch over when nothing of it is open; until then its batches go on under the one before, which is as good: partitions
 *    refuse an older epoch only once they have stored a newer one.
 */
import { causeText, coreErrors, systemClock } from '@mysync/core';
import {
  type OutgoingRecord,
  type ProducerIdentity,
  type Publisher,
  type PublisherOptions,
  transportErrors,
} from '@mysync/transport';
import { writing } from './admission.ts';
import type { BrokerLink } from './broker-link.ts';
import { BufferPool } from './buffer-pool.ts';
import type { Cluster } from './cluster.ts';
import { type Lane, newLane, type OpenBatch, takeNumbers } from './lane.ts';
import { Leaders } from './leaders.ts';
import { NameRenewal } from './name-renewal.ts';
import { MAX_OPEN } from './partition-queue.ts';
import { patiently } from './patience.ts';
import { OFFSET_FORGOTTEN, produceVerdict } from './produce-verdict.ts';
import { ProducerName } from './producer-name.ts';
import type { ProducerNumbers } from './protocol/init-producer-id.ts';
import type { TopicMetadata } from './protocol/metadata.ts';
import { type ProduceAnswer, produceAnswer } from './protocol/produce-answer.ts';
import { PRODUCE, ProduceEncoder, RECORD_OVERHEAD_BYTES } from './protocol/record-batch-encode.ts';
import { BatchLimit, type BatchPlace, badRecord } from './refused-batch.ts';
import { Reporter } from './reporter.ts';
import { shutOut } from './shut-out.ts';
import { Watchdog } from './watchdog.ts';

const MAX_FREE_BYTES = 32 * 2 ** 20;
const DRAIN_MS = 5_000;

export interface KafkaPublisherOptions extends PublisherOptions {
  readonly cluster: Cluster;
  /** Of the topic: the largest batch that it takes. */
  readonly maxMessageBytes: () => Promise<number>;
  readonly onClose: (publisher: KafkaPublisher) => void;
}

export class KafkaPublisher implements Publisher {
  readonly maxOpenBatches = MAX_OPEN;
  readonly #options: KafkaPublisherOptions;
  readonly #cluster: Cluster;
  readonly #right: string;
  readonly #name: ProducerName;
  readonly #lanes: readonly Lane[];
  readonly #encoder: ProduceEncoder;
  readonly #pool = new BufferPool(MAX_FREE_BYTES);
  readonly #leaders: Leaders;
  readonly #watchdog: Watchdog;
  readonly #renewal: NameRenewal;
  readonly #reporter: Reporter;
  readonly #stop = new AbortController();
  #numbers: ProducerNumbers;
  readonly #limit: BatchLimit;
  /** Rises when open batches were given back; answers to older ones mean nothing any more. */
  #numbering = 0;
  /** Why nothing is accepted at present; `renumber` clears it unless it is final. */
  #failure: { readonly error: Error; readonly final: boolean } | null = null;
  #checking = false;
  #renumbering: Promise<ProducerIdentity> | null = null;
  #drained: (() => void) | null = null;
  #openBatches = 0;

  private constructor(
    options: KafkaPublisherOptions,
    start: { name: ProducerName; topic: TopicMetadata; numbers: ProducerNumbers; maxMessageBytes: number },
  ) {
    const { cluster } = options;
    this.#options = options;
    this.#cluster = cluster;
    this.#right = writing(options.topic);
    this.#name = start.name;
    this.#numbers = start.numbers;
    this.#limit = new BatchLimit(start.maxMessageBytes);
    this.#lanes = start.topic.partitions.map(({ partition }) => newLane(partition, start.numbers));
    const { clientId, compression, requestTimeoutMs, stallMs, producerRenewalMs } = cluster.options;
    // The broker gives up first, so that its answer comes before ours counts as lost.
    this.#encoder = new ProduceEncoder({
      clientId,
      topic: options.topic,
      timeoutMs: Math.ceil(requestTimeoutMs * 0.8),
      compression,
    });
    this.#reporter = new Reporter(cluster.options.observer, { topic: options.topic, producer: options.producer });
    this.#leaders = new Leaders({
      cluster,
      topic: start.topic,
      lanes: this.#lanes,
      reporter: this.#reporter,
      signal: this.#stop.signal,
      isFinal: () => this.#failure?.final === true,
      onLink: (partition) => this.#pump(this.#lanes[partition] as Lane),
      onFailure: (error) => this.#fail(error),
    });
    this.#watchdog = new Watchdog({
      stallMs,
      waiting: () => this.#openBatches > 0 && this.#failure === null,
      replace: () => this.#replace(),
    });
    this.#renewal = new NameRenewal({
      everyMs: producerRenewalMs,
      signal: this.#stop.signal,
      holder: () => (this.#failure === null && !this.#checking ? this.#numbers : null),
      raise: (holder) => this.#name.raise(holder),
      onTrouble: (trouble) => this.#reporter.trouble(`showing that we are there: ${trouble}`),
      onRaised: (numbers) => this.#renewed(numbers),
      onFailure: (error) => this.#fail(error),
    });
  }

  static async open(options: KafkaPublisherOptions): Promise<KafkaPublisher> {
    const { cluster, signal, previous } = options;
    const patience = { signal, limitMs: 2 * cluster.options.requestTimeoutMs };
    const topic = await patiently({ ...patience, what: 'metadata of the topic' }, () => cluster.topic(options.topic));
    if (topic === null) {
      throw transportErrors.TRANSPORT_TOPIC_MISSING({ message: `there is no topic '${options.topic}'` });
    }
    const maxMessageBytes = await options.maxMessageBytes();
    const name = new ProducerName(cluster, options.producer);
    const numbers = await patiently({ ...patience, what: 'the producer id' }, () => name.takeOver());
    const publisher = new KafkaPublisher(options, { name, topic, numbers, maxMessageBytes });
    try {
      if (previous !== null && BigInt(previous.id) !== numbers.producerId) {
        await publisher.#shutOut(BigInt(previous.id), signal);
      }
      await publisher.#leaders.connect(topic);
    } catch (error) {
      await publisher.close(0);
      throw error;
    }
    if (publisher.#lanes.some((lane) => lane.link === null)) publisher.#leaders.recover();
    return publisher;
  }

  get identity(): ProducerIdentity {
    return { id: `${this.#numbers.producerId}`, epoch: this.#numbers.producerEpoch };
  }

  get maxBatchBytes(): number {
    return this.#limit.batchBytes;
  }

  get surelyTakenBytes(): number {
    return this.#limit.recordBytes(systemClock.monotonic()) - RECORD_OVERHEAD_BYTES;
  }

  takes(record: OutgoingRecord): boolean {
    const records = [record];
    const buffer = this.#pool.take(this.#encoder.room(records));
    const length = this.#encoder.encode(buffer, 0, records, { ...this.#numbers, firstSequence: 0 }, Date.now());
    this.#pool.give(buffer);
    const nowMs = systemClock.monotonic();
    const fits = this.#encoder.batchBytes(length) <= this.#limit.recordBytes(nowMs);
    if (!fits && this.#limit.isToBeAsked(nowMs)) this.#askLimit();
    return fits;
  }

  publish(partition: number, records: readonly OutgoingRecord[]): Promise<{ readonly baseOffset: number }> {
    if (this.#failure !== null) return Promise.reject(this.#failure.error);
    const lane = this.#lanes[partition];
    if (lane === undefined || records.length === 0) {
      const what = lane === undefined ? `there is no partition ${partition}` : 'a batch without records';
      return Promise.reject(
        coreErrors.INTERNAL({ message: `publish: ${what}`, where: { topic: this.#options.topic } }),
      );
    }
    const buffer = this.#pool.take(this.#encoder.room(records));
    const numbers = takeNumbers(lane, this.#numbers, records.length);
    const length = this.#encoder.encode(buffer, partition, records, numbers, Date.now());
    return new Promise((resolve, reject) => {
      const frame = buffer.subarray(0, length);
      const count = records.length;
      const { firstSequence } = numbers;
      const batch = { firstSequence, count, buffer, frame, records, resolve, reject, baseOffset: null, attempts: 0 };
      lane.queue.add(batch);
      this.#openBatches++;
      if (this.#encoder.batchBytes(length) > this.#limit.recordBytes(systemClock.monotonic())) {
        this.#refuse(lane, batch, this.#limit.tooLarge(records, this.#placeOf(lane)));
      } else this.#pump(lane);
    });
  }

  renumber(): Promise<ProducerIdentity> {
    this.#renumbering ??= this.#renumber().finally(() => {
      this.#renumbering = null;
    });
    return this.#renumbering;
  }

  async close(drainMs = DRAIN_MS): Promise<void> {
    if (this.#openBatches > 0 && drainMs > 0 && this.#failure === null && !this.#stop.signal.aborted) {
      const drained = new Promise<void>((resolve) => {
        this.#drained = resolve;
      });
      const timer = new AbortController();
      await Promise.race([drained, systemClock.sleep(drainMs, timer.signal).catch(() => {})]);
      timer.abort();
    }
    this.#fail(transportErrors.TRANSPORT_CLOSED({ message: 'the publisher was closed' }));
    this.#stop.abort();
    this.#watchdog.stop();
    this.#renewal.stop();
    this.#cluster.close();
    this.#options.onClose(this);
  }

  /** Sends what may be sent. */
  #pump(lane: Lane): void {
    const { link, queue } = lane;
    if (link === null || this.#checking || this.#failure !== null) return;
    if (!link.alive) {
      this.#restart(lane);
      return;
    }
    if (this.#renewal.mustAskFirst()) return;
    const now = systemClock.monotonic();
    for (let batch = queue.next(now); batch !== null; batch = queue.next(now)) this.#send(lane, link, batch);
  }

  #send(lane: Lane, link: BrokerLink, batch: OpenBatch): void {
    const { attempt } = lane.queue;
    const numbering = this.#numbering;
    link.send(batch.frame, PRODUCE).then(
      (payload) => {
        if (numbering === this.#numbering) this.#answered(lane, batch, attempt, payload);
      },
      () => {
        if (numbering === this.#numbering && attempt === lane.queue.attempt) this.#restart(lane);
      },
    );
  }

  #answered(lane: Lane, batch: OpenBatch, attempt: number, payload: Buffer): void {
    let answer: ProduceAnswer;
    try {
      answer = produceAnswer(payload);
    } catch (error) {
      this.#reporter.trouble(`an answer that cannot be read: ${causeText(error)}`, { partition: lane.partition });
      if (attempt === lane.queue.attempt) this.#restart(lane);
      return;
    }
    const verdict = produceVerdict(answer.error, lane.queue.isFirst(batch));
    if (verdict.kind === 'stored') {
      this.#stored(lane, batch, attempt, answer.baseOffset);
      return;
    }
    if (attempt !== lane.queue.attempt || this.#checking) return;
    const place = this.#placeOf(lane);
    switch (verdict.kind) {
      case 'renumber':
        this.#demandRenumber(lane, verdict.why);
        return;
      case 'fenced':
        this.#checkFenced();
        return;
      case 'too-large':
        this.#refuse(lane, batch, this.#tooLarge(batch, place));
        return;
      case 'bad-record':
        this.#refuse(lane, batch, badRecord(batch.records, place, answer));
        return;
      case 'denied':
        this.#denied(lane, batch, place.topic);
        return;
      case 'again':
        if (verdict.why !== null) this.#reporter.trouble(verdict.why, { partition: lane.partition });
        this.#restart(lane);
    }
  }

  #denied(lane: Lane, batch: OpenBatch, topic: string): void {
    const message = `this user may not write to '${topic}'`;
    const error = this.#cluster.options.admission.denied(this.#right, message, { topic });
    if (!error.retriable) {
      this.#refuse(lane, batch, error);
      return;
    }
    this.#reporter.trouble(causeText(error), { partition: lane.partition });
    this.#restart(lane);
  }

  #stored(lane: Lane, batch: OpenBatch, attempt: number, baseOffset: number): void {
    if (batch.baseOffset !== null) return; // an older attempt had answered
    if (baseOffset < 0) {
      this.#demandRenumber(lane, OFFSET_FORGOTTEN);
      return;
    }
    const outcome = lane.queue.stored(batch, baseOffset, attempt, systemClock.monotonic());
    if (outcome.kind === 'waits') return;
    if (outcome.kind === 'log-cut') {
      this.#demandRenumber(lane, `a batch is at offset ${baseOffset}, below ${outcome.expected}: the log was cut`);
      return;
    }
    this.#cluster.options.admission.given(this.#right);
    this.#watchdog.moved();
    this.#renewal.heard();
    this.#leaders.well();
    this.#reporter.well();
    if (outcome.foreign > 0) this.#reporter.foreign(this.#placeOf(lane), outcome.foreign, baseOffset);
    for (const settled of outcome.batches) {
      this.#openBatches--;
      // What was sent twice may still lie in a socket.
      if (settled.attempts === 1) this.#pool.give(settled.buffer);
      settled.resolve({ baseOffset: settled.baseOffset ?? -1 });
    }
    this.#pump(lane);
    if (this.#openBatches === 0) this.#drained?.();
  }

  /** Ends the attempt of a partition: its leader is looked up, and everything open goes again. */
  #restart(lane: Lane): void {
    const count = lane.queue.restart();
    const { topic } = this.#options;
    if (count > 0) this.#cluster.options.observer.batchesResent?.({ topic, partition: lane.partition, count });
    lane.link = null;
    this.#leaders.recover();
  }

  #checkFenced(): void {
    this.#checking = true;
    const holder = this.#numbers;
    patiently({ ...this.#forever(), what: 'the producer id' }, () => this.#name.raise(holder)).then(
      () => {
        this.#checking = false;
        this.#demandRenumber(null, 'the broker refused the epoch, but no successor holds the name');
      },
      (error: unknown) => {
        this.#checking = false;
        if (!this.#stop.signal.aborted) this.#fail(error as Error);
      },
    );
  }

  #renewed(numbers: ProducerNumbers): void {
    if (numbers.producerId !== this.#numbers.producerId) {
      this.#demandRenumber(null, 'the epochs of the producer id are used up');
      return;
    }
    this.#numbers = numbers;
    for (const lane of this.#lanes) this.#pump(lane);
  }

  async #renumber(): Promise<ProducerIdentity> {
    if (this.#failure?.final) throw this.#failure.error;
    if (this.#failure === null) this.#demandRenumber(null, 'the publisher is being renumbered');
    const { signal } = this.#stop;
    const forever = this.#forever();
    const before = this.#numbers;
    try {
      const numbers = await patiently({ ...forever, what: 'the producer id' }, () => this.#name.raise(before));
      if (numbers.producerId !== before.producerId) await this.#shutOut(before.producerId, signal);
      await patiently({ ...forever, what: 'metadata of the topic' }, () => this.#leaders.topicNow());
      this.#limit.topicBytes = await this.#options.maxMessageBytes();
      this.#numbers = numbers;
    } catch (error) {
      if (signal.aborted) throw this.#failure?.error ?? error;
      this.#fail(error as Error);
      throw error;
    }
    this.#failure = null;
    this.#renewal.heard();
    return this.identity;
  }

  async #shutOut(producerId: bigint, signal: AbortSignal | undefined): Promise<void> {
    const { topic, fenceRecord } = this.#options;
    const topicNow = (): Promise<TopicMetadata> => this.#leaders.topicNow();
    const patience = { ...this.#forever(), what: 'the fence of the old producer id', signal };
    await shutOut({ cluster: this.#cluster, topic, topicNow, fenceRecord, producerId, patience }, this.#lanes);
  }

  #forever(): { signal: AbortSignal; onTrouble: (trouble: string) => void } {
    return { signal: this.#stop.signal, onTrouble: (trouble) => this.#reporter.trouble(trouble) };
  }

  /** Gives everything back: it goes again under new numbers. */
  #demandRenumber(lane: Lane | null, message: string): void {
    if (this.#failure !== null) return;
    const where = { topic: this.#options.topic, ...(lane === null ? {} : { partition: lane.partition }) };
    this.#giveBack({ error: transportErrors.TRANSPORT_RENUMBER({ message, where }), final: false });
  }

  #askLimit(): void {
    this.#options.maxMessageBytes().then(
      (bytes) => {
        this.#limit.topicBytes = bytes;
      },
      (error: unknown) => this.#reporter.warn(`the topic's limit cannot be read: ${causeText(error)}`, {}),
    );
  }

  #tooLarge({ records, frame }: OpenBatch, place: BatchPlace): Error {
    return this.#limit.refused(records, this.#encoder.batchBytes(frame.length), place, systemClock.monotonic());
  }

  /** Rejects one batch for what it holds, and everything else for renumbering. */
  #refuse(lane: Lane, batch: OpenBatch, error: Error): void {
    batch.reject(error);
    this.#demandRenumber(lane, 'a batch was refused');
  }

  #fail(error: Error): void {
    if (this.#failure?.final) return;
    this.#giveBack({ error, final: true });
  }

  #giveBack(failure: { error: Error; final: boolean }): void {
    this.#failure = failure;
    this.#numbering++;
    for (const lane of this.#lanes) {
      for (const batch of lane.queue.renumber()) batch.reject(failure.error);
    }
    this.#openBatches = 0;
    this.#drained?.();
  }

  #placeOf({ partition }: Lane): BatchPlace {
    return { topic: this.#options.topic, partition };
  }

  #replace(): void {
    this.#cluster.options.observer.clientReplaced?.({ client: 'publisher' });
    this.#reporter.warn('nothing was stored for too long: making the connections anew');
    this.#cluster.reset();
    for (const lane of this.#lanes) this.#restart(lane);
  }
}
