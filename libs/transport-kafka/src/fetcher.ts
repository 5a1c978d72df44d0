/**
 * Reads partitions of one topic from their leaders, ahead of whoever takes the batches.
 *
 * 1. A partition is asked for again as soon as its answer came, as long as less than `maxBatchBytes` of it wait to be
 *    taken: memory is bounded by twice that and one batch per partition.
 * 2. Each leader has up to LANES connections with one request each. A request waits at the broker for news; a partition
 *    that becomes hungry meanwhile goes out at once on an idle lane and does not wait for its neighbours.
 * 3. Answers are kept as bytes and decoded when they are taken.
 * 4. Lost connections and moved leaders are looked up again, for ever, with pauses. What no repetition mends (an offset out of
 *    range, rights, another topic of the same name) ends the cursor with its error.
 */
import { Contact, causeText, isMysyncError, type Outage, systemClock } from '@mysync/core';
import { Backoff } from '@mysync/flow';
import { type IncomingRecord, type OffsetRange, type RecordBatch, transportErrors } from '@mysync/transport';
import { BrokerError, isFinal } from './broker-error.ts';
import type { Cluster } from './cluster.ts';
import { kafkaErrors } from './errors.ts';
import { RETRY_MAX_MS, RETRY_MIN_MS } from './patience.ts';
import { CODE, codeName, isDenied } from './protocol/codes.ts';
import { FETCH, type FetchedPartition, fetchAnswer, fetchRequest } from './protocol/fetch.ts';
import { BatchReader, wholeBatches } from './protocol/record-batch-decode.ts';
import { Reporter } from './reporter.ts';
import { rangeOf } from './topic-admin.ts';
import { Watchdog } from './watchdog.ts';

const LANES = 3;
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

export interface FetcherOptions {
  readonly cluster: Cluster;
  readonly topic: string;
  /** null: whichever the cluster has at the first look. */
  readonly topicId: string | null;
  readonly maxBatchBytes: number;
  readonly client: 'consumer' | 'reader';
}

interface Chunk {
  readonly bytes: Buffer;
  readonly from: number;
  readonly highWatermark: number;
  /** When it came, in milliseconds since 1970. */
  readonly atMs: number;
}

/** One reading of one partition, from an offset on. */
class Cursor {
  readonly partition: number;
  position: number;
  maxBytes: number;
  inFlight = false;
  closed = false;
  error: unknown = null;
  bufferedBytes = 0;
  readonly chunks: Chunk[] = [];
  /** With the partition's leader. */
  readonly contact = new Contact();
  #wake: (() => void) | null = null;

  constructor(partition: number, from: number, maxBytes: number) {
    this.partition = partition;
    this.position = from;
    this.maxBytes = maxBytes;
  }

  push(chunk: Chunk): void {
    this.chunks.push(chunk);
    this.bufferedBytes += chunk.bytes.length;
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.error ??= error;
    this.#wake?.();
  }

  close(): void {
    this.closed = true;
    this.#wake?.();
  }

  takeNow(): Chunk | null {
    const chunk = this.chunks.shift();
    if (chunk === undefined) return null;
    this.bufferedBytes -= chunk.bytes.length;
    return chunk;
  }

  /** The next chunk; null when closed; throws what ended the cursor, after the chunks before it. */
  async take(): Promise<Chunk | null> {
    for (;;) {
      if (this.closed) return null;
      const chunk = this.takeNow();
      if (chunk !== null) return chunk;
      if (this.error !== null) throw this.error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
  }
}

export class Fetcher {
  readonly #options: FetcherOptions;
  readonly #cluster: Cluster;
  readonly #cursors = new Set<Cursor>();
  readonly #leaders = new Map<number, number>();
  /** Per leader, which of its lanes have a request under way. */
  readonly #busy = new Map<number, boolean[]>();
  readonly #backoff = new Backoff({ minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS });
  readonly #watchdog: Watchdog;
  readonly #reporter: Reporter;
  readonly #stop = new AbortController();
  #topicId: string | null;
  #refreshing = false;
  #looked = false;
  #turn = 0;

  constructor(options: FetcherOptions) {
    this.#options = options;
    this.#cluster = options.cluster;
    this.#topicId = options.topicId;
    this.#reporter = new Reporter(options.cluster.options.observer, { topic: options.topic });
    this.#watchdog = new Watchdog({
      stallMs: options.cluster.options.stallMs,
      waiting: () => [...this.#cursors].some((cursor) => cursor.inFlight || this.#hungry(cursor)),
      replace: () => {
        this.#cluster.options.observer.clientReplaced?.({ client: options.client });
        this.#reporter.warn('nothing could be fetched for too long: making the connections anew');
        this.#cluster.reset();
      },
    });
  }

  /** Reads from `from` on until the signal aborts. Throws TRANSPORT_OFFSET_OUT_OF_RANGE. */
  async *batches(partition: number, from: number, signal: AbortSignal): AsyncGenerator<RecordBatch, void, undefined> {
    const { topic, maxBatchBytes } = this.#options;
    const cursor = new Cursor(partition, from, maxBatchBytes);
    const close = (): void => cursor.close();
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted || this.#stop.signal.aborted) cursor.close();
    this.#cursors.add(cursor);
    try {
      let reader: BatchReader | null = null;
      let highWatermark = 0;
      let endOffsetAtMs = 0;
      for (;;) {
        // As much as has come, up to the limit: small answers must not become small batches when the taker is slow.
        const records: IncomingRecord[] = [];
        let nextOffset: number | null = null;
        let room = maxBatchBytes;
        while (room > 0) {
          if (reader === null) {
            this.#kick();
            const chunk: Chunk | null = nextOffset === null ? await cursor.take() : cursor.takeNow();
            if (chunk === null) break;
            reader = new BatchReader(chunk.bytes, chunk.from, { topic, partition });
            highWatermark = chunk.highWatermark;
            endOffsetAtMs = chunk.atMs;
          }
          const decoded = reader.next(room, records);
          if (decoded === null) {
            reader = null;
            continue;
          }
          nextOffset = decoded.nextOffset;
          room -= decoded.bytes;
        }
        if (nextOffset === null) return;
        yield { partition, records, nextOffset, endOffset: Math.max(highWatermark, nextOffset), endOffsetAtMs };
        if (cursor.closed) return;
      }
    } finally {
      signal.removeEventListener('abort', close);
      cursor.close();
      this.#cursors.delete(cursor);
    }
  }

  /** While the partition is read: since when its leader gives nothing. */
  outage(partition: number): Outage | null {
    for (const cursor of this.#cursors)
      if (cursor.partition === partition && !cursor.closed) return cursor.contact.outage;
    return null;
  }

  close(): void {
    this.#stop.abort();
    this.#watchdog.stop();
    for (const cursor of this.#cursors) cursor.close();
  }

  #hungry(cursor: Cursor): boolean {
    if (cursor.closed || cursor.inFlight || cursor.error !== null) return false;
    return cursor.bufferedBytes < this.#options.maxBatchBytes;
  }

  /** Sends out what is hungry, as far as lanes are idle. */
  #kick(): void {
    if (this.#stop.signal.aborted) return;
    const hungry = new Map<number, Cursor[]>();
    let unknown = false;
    for (const cursor of this.#cursors) {
      if (!this.#hungry(cursor)) continue;
      const leader = this.#leaders.get(cursor.partition);
      if (leader === undefined) {
        unknown = true;
        continue;
      }
      const list = hungry.get(leader);
      if (list === undefined) hungry.set(leader, [cursor]);
      else list.push(cursor);
    }
    if (unknown) this.#refresh();
    for (const [leader, cursors] of hungry) {
      const lanes = this.#busy.get(leader) ?? new Array<boolean>(LANES).fill(false);
      this.#busy.set(leader, lanes);
      const lane = lanes.indexOf(false);
      if (lane < 0) continue;
      lanes[lane] = true;
      for (const cursor of cursors) cursor.inFlight = true;
      this.#fetch(leader, lane, cursors).then(
        () => {
          lanes[lane] = false;
          this.#kick();
        },
        (error: unknown) => {
          lanes[lane] = false;
          this.#lost(leader, cursors, error);
        },
      );
    }
  }

  async #fetch(leader: number, lane: number, cursors: readonly Cursor[]): Promise<void> {
    const { clientId, fetchWaitMs, requestTimeoutMs } = this.#cluster.options;
    const link = await this.#cluster.link(leader, `fetch-${lane}`);
    // Only the first partition of a request is sure to get a batch larger than its limit, so each is first at times.
    const turn = this.#turn++ % cursors.length;
    const order = turn === 0 ? cursors : [...cursors.slice(turn), ...cursors.slice(0, turn)];
    const positions = order.map(({ partition, position, maxBytes }) => ({ partition, offset: position, maxBytes }));
    const limits = { maxWaitMs: fetchWaitMs, maxBytes: MAX_ANSWER_BYTES };
    const request = fetchRequest(clientId, this.#options.topic, positions, limits);
    const payload = await link.send(request, FETCH, fetchWaitMs + requestTimeoutMs);
    const answer = fetchAnswer(payload);
    if (answer.error !== 0) throw new BrokerError(answer.error, `fetch: ${codeName(answer.error)}`);
    const byPartition = new Map(answer.partitions.map((fetched) => [fetched.partition, fetched]));
    let well = true;
    for (const cursor of cursors) {
      cursor.inFlight = false;
      const fetched = byPartition.get(cursor.partition);
      if (fetched !== undefined && !this.#take(cursor, fetched)) well = false;
    }
    this.#watchdog.moved();
    if (!well) return;
    this.#backoff.reset();
    this.#reporter.well();
  }

  #take(cursor: Cursor, fetched: FetchedPartition): boolean {
    if (fetched.error !== 0) {
      this.#leaders.delete(cursor.partition);
      cursor.contact.lost(`fetching: ${codeName(fetched.error)}`, systemClock.monotonic());
      if (fetched.error === CODE.OFFSET_OUT_OF_RANGE) this.#checkRange(cursor);
      else if (isDenied(fetched.error)) {
        // Never final: a partition that stands still tells nobody more than one that tries (docs/adr/0211).
        const { topic } = this.#options;
        const message = `this user may not read '${topic}'`;
        cursor.fail(transportErrors.TRANSPORT_ACCESS_LOST({ message, where: { topic } }));
      }
      return false;
    }
    cursor.contact.made();
    const { bytes, highWatermark } = fetched;
    if (bytes.length === 0) return true;
    const whole = wholeBatches(bytes);
    if (whole === null) {
      // The beginning of a batch larger than the limit: ask for all of it.
      cursor.maxBytes = Math.max(cursor.maxBytes * 2, bytes.length >= 12 ? 12 + bytes.readInt32BE(8) : 0);
      return true;
    }
    const from = cursor.position;
    cursor.position = Math.max(from, whole.nextOffset);
    cursor.push({ bytes: bytes.subarray(0, whole.length), from, highWatermark, atMs: systemClock.now() });
    return true;
  }

  /** Right after a change of leader the refusal may be wrong: the range itself decides. */
  #checkRange(cursor: Cursor): void {
    cursor.inFlight = true;
    this.#range(cursor.partition).then(
      (range) => {
        cursor.inFlight = false;
        if (cursor.position < range.earliest || cursor.position > range.end)
          cursor.fail(this.#outOfRange(cursor, range));
        this.#kick();
      },
      (error: unknown) => {
        cursor.inFlight = false;
        if (isFinal(error)) cursor.fail(error);
        this.#refresh();
      },
    );
  }

  async #range(partition: number): Promise<OffsetRange> {
    const topic = await this.#cluster.topic(this.#options.topic);
    const leader = topic?.partitions[partition]?.leader ?? -1;
    return await rangeOf(this.#cluster, { topic: this.#options.topic, leader, partition });
  }

  #outOfRange(cursor: Cursor, { earliest, end }: OffsetRange): Error {
    return transportErrors.TRANSPORT_OFFSET_OUT_OF_RANGE({
      message: `the log holds the offsets from ${earliest} to ${end}, asked for was ${cursor.position}`,
      where: { topic: this.#options.topic, partition: cursor.partition, offset: cursor.position },
    });
  }

  #lost(leader: number, cursors: readonly Cursor[], error: unknown): void {
    const trouble = `fetching from node ${leader}: ${causeText(error)}`;
    const now = systemClock.monotonic();
    for (const cursor of cursors) {
      cursor.inFlight = false;
      cursor.contact.lost(trouble, now);
      if (this.#leaders.get(cursor.partition) === leader) this.#leaders.delete(cursor.partition);
    }
    if (!this.#stop.signal.aborted) this.#reporter.trouble(trouble);
    this.#refresh();
  }

  /** Looks the leaders up; only one look is under way at a time. */
  #refresh(): void {
    if (this.#refreshing || this.#stop.signal.aborted) return;
    this.#refreshing = true;
    this.#look().then(
      () => {
        this.#refreshing = false;
        this.#kick();
      },
      (error: unknown) => {
        this.#refreshing = false;
        if (this.#stop.signal.aborted) return;
        if (isMysyncError(error) && !error.retriable && !this.#looked) {
          for (const cursor of this.#cursors) cursor.fail(error);
        } else if (isMysyncError(error, 'KAFKA_TOPIC_REPLACED') || isMysyncError(error, 'TRANSPORT_CLOSED')) {
          for (const cursor of this.#cursors) cursor.fail(error);
        } else {
          this.#lookFailed(`looking for the leaders: ${causeText(error)}`);
          this.#kick();
        }
      },
    );
  }

  /** Partitions whose leader is known are read meanwhile. */
  #lookFailed(trouble: string): void {
    this.#reporter.trouble(trouble);
    const now = systemClock.monotonic();
    for (const cursor of this.#cursors) if (!this.#leaders.has(cursor.partition)) cursor.contact.lost(trouble, now);
  }

  async #look(): Promise<void> {
    // Not before the very first look, which is no repetition.
    if (this.#looked || this.#leaders.size > 0) await systemClock.sleep(this.#backoff.next(), this.#stop.signal);
    const name = this.#options.topic;
    let topic: Awaited<ReturnType<Cluster['topic']>>;
    try {
      topic = await this.#cluster.topic(name);
      if (topic === null) throw new BrokerError(CODE.UNKNOWN_TOPIC_OR_PARTITION, `the topic '${name}' is not there`);
    } catch (error) {
      if (!isFinal(error)) this.#looked = true;
      throw error;
    }
    this.#looked = true;
    if (this.#topicId !== null && topic.id !== this.#topicId) {
      throw kafkaErrors.KAFKA_TOPIC_REPLACED({
        message: `the topic '${name}' is not the one that was opened`,
        where: { topic: name, id: topic.id, was: this.#topicId },
      });
    }
    this.#topicId = topic.id;
    for (const { partition, leader } of topic.partitions) {
      if (leader >= 0) this.#leaders.set(partition, leader);
    }
    for (const cursor of this.#cursors) {
      if (!this.#leaders.has(cursor.partition)) cursor.contact.lost('it has no leader', systemClock.monotonic());
    }
  }
}
