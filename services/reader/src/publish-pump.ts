import { type Clock, causeText, isMysyncError, type Logger, type MysyncError } from '@mysync/core';
import { AckWindow, type Batch, type PassedBatch } from '@mysync/flow';
import type { Metrics } from '@mysync/telemetry';
import type { OutgoingRecord, ProducerIdentity, Publisher } from '@mysync/transport';
import { toRecord } from '@mysync/wire';
import type { WindowEntry } from './change-router.ts';
import { readerErrors } from './errors.ts';
import { LargeRows, type LargeRowsOptions } from './large-rows.ts';
import { Unstored } from './unstored.ts';
import { WakeUp } from './wake-up.ts';

export interface PumpOptions {
  readonly source: string;
  readonly publisher: Publisher;
  readonly epoch: number;
  /** Per partition: the frontier's sequence and the offset of the last record known (the fence). */
  readonly starts: readonly { readonly sequence: number; readonly offset: number }[];
  /** Of each partition's window. */
  readonly windowMessages: number;
  readonly windowBytes: number;
  readonly batchMessages: number;
  /** Called with every new producer identity before its first use, and awaited. */
  readonly saveIdentity: (identity: ProducerIdentity) => Promise<void>;
  /** The base of a partition's window moved over a batch; called for each, in order. */
  readonly onAcked: (partition: number, run: PassedBatch) => void;
  readonly onLargeRow: LargeRowsOptions['onLargeRow'];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const RETRY_PAUSE_MS = 1_000;
/** Why those who wait are sent away; never seen by anybody else. */
const CLOSED = new Error('the pump was closed');
/** A transport that stays away is told once, and then once in so many attempts. */
const TELL_EVERY = 30;
/** Overhead of one record beside its key and payload, for the byte bounds. */
const RECORD_BYTES = 64;

/**
 * Moves messages from the ack windows to the transport and acks back: one window per partition, one publisher for all.
 *
 * 1. A batch is stamped when it is taken, so that a message that goes again carries its new generation.
 * 2. As soon as one partition has to go back, all go back together: the producer epoch is raised first (nothing given to
 *    the publisher before can land any more), its identity is saved, then every window rewinds.
 * 3. `put` never drops: the caller waits for room, which is what pauses the source.
 * 4. A message is changed only while it is in no log (`Unstored`): before it is given to the publisher, never while it may be on its way. All that
 *    is known to be too large goes smaller the first time, or in the one rewind that a partition's refusal brings.
 */
export class PublishPump {
  readonly #options: PumpOptions;
  readonly #windows: AckWindow<WindowEntry>[];
  readonly #largeRows: LargeRows;
  /** Per partition. */
  readonly #unstored: readonly Unstored[];
  readonly #room = new WakeUp();
  readonly #drained = new WakeUp();
  /** As the publisher said when it was last given something. */
  #surelyTakenBytes: number;
  #renumbering: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;
  /** Refusals since the last ack, and what the last one said. */
  #refusals = 0;
  #trouble = '';
  /** Whose batch was refused last: what others have room for does not end its trouble. */
  #refusedPartition = -1;
  #fail: (error: unknown) => void = () => undefined;
  readonly #failed: Promise<never>;
  readonly #stop = new AbortController();
  /** Monotonic time at which something was stored last. */
  #storedMs: number;

  constructor(options: PumpOptions) {
    this.#options = options;
    this.#storedMs = options.clock.monotonic();
    this.#largeRows = new LargeRows(options);
    this.#surelyTakenBytes = options.publisher.surelyTakenBytes;
    this.#unstored = options.starts.map(() => new Unstored());
    const { publisher, windowMessages, windowBytes } = options;
    this.#windows = options.starts.map(
      (start) =>
        new AckWindow<WindowEntry>({
          firstSequence: start.sequence + 1,
          lastOffset: start.offset,
          maxItems: windowMessages,
          maxBytes: windowBytes,
          maxOpen: publisher.maxOpenBatches,
          onPassed: giveBack,
        }),
    );
    this.#failed = new Promise((_, reject) => {
      this.#fail = (error) => {
        this.#failure ??= { error };
        reject(error);
        this.#room.notify();
        this.#drained.notify();
      };
    });
    this.#failed.catch(() => undefined);
  }

  /** Rejects when publishing cannot go on. */
  get failed(): Promise<never> {
    return this.#failed;
  }

  /** Why nothing is published at the moment; empty when all is well. */
  get trouble(): string {
    return this.#trouble;
  }

  /** While something waits to be stored: monotonic time since which nothing was. */
  get waitingSinceMs(): number | null {
    return this.#windows.some((window) => window.length > 0) ? this.#storedMs : null;
  }

  /** Puts a message into its partition's window; gives its sequence. Wait for `room` while it gives false. */
  tryPut(partition: number, entry: WindowEntry): number | false {
    const window = this.#window(partition);
    if (!window.canPut()) return false;
    // before it counts as what it was: batches are filled by size
    if (entry.message.bytes > this.#surelyTakenBytes) this.#largeRows.fit(entry);
    return window.put(entry, entry.message.bytes + RECORD_BYTES);
  }

  hasRoom(partition: number): boolean {
    return this.#window(partition).canPut();
  }

  /** Resolves when some window has room again; throws when publishing cannot go on. */
  async room(): Promise<void> {
    this.flush();
    await this.#room.wait();
    this.#check();
  }

  /** Sends what is there. */
  flush(): void {
    for (let partition = 0; partition < this.#windows.length; partition += 1) this.#send(partition);
  }

  /** Resolves when every message put is acked. */
  async drain(): Promise<void> {
    this.flush();
    while (this.#windows.some((window) => window.length > 0)) {
      await this.#drained.wait();
      this.#check();
    }
    this.#check();
  }

  /** Gives up what is not acked: whoever waits is sent away. Then nothing of this pump is under way any more. */
  async close(): Promise<void> {
    this.#fail(CLOSED);
    this.#stop.abort(CLOSED);
    await this.#options.publisher.close(0);
    await this.#renumbering;
  }

  /** Last acked sequence of a partition. */
  ackedSequence(partition: number): number {
    return this.#window(partition).base - 1;
  }

  /** Commit time of the oldest message that is not acked, or null. */
  oldestMicros(): number | null {
    let oldest: number | null = null;
    for (const window of this.#windows) {
      const entry = window.oldest();
      const micros = entry?.transaction.commitTimeMicros;
      if (micros !== undefined && (oldest === null || micros < oldest)) oldest = micros;
    }
    return oldest;
  }

  refresh(): void {
    const { metrics, source, windowMessages, windowBytes } = this.#options;
    let fill = 0;
    for (const [index, window] of this.#windows.entries()) {
      const labels = { source, partition: String(index) };
      metrics.reader.windowMessages.set(labels, window.length);
      metrics.reader.windowBytes.set(labels, window.bytes);
      fill = Math.max(fill, window.length / windowMessages, window.bytes / windowBytes);
    }
    metrics.reader.windowFill.set({ source }, fill);
  }

  #window(partition: number): AckWindow<WindowEntry> {
    const window = this.#windows[partition];
    if (window === undefined) throw new Error(`no partition ${partition}`);
    return window;
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  #send(partition: number): void {
    if (this.#renumbering !== null || this.#failure !== null) return;
    const { publisher, batchMessages } = this.#options;
    const window = this.#window(partition);
    for (;;) {
      const batch = window.take(batchMessages, publisher.maxBatchBytes, this.#options.clock.monotonic());
      if (batch === null) return;
      this.#fit(partition, batch);
      const records = this.#stamp(batch);
      publisher
        .publish(partition, records)
        .then(
          ({ baseOffset }) => this.#onAck(partition, batch, baseOffset),
          (error: unknown) => this.#onRefused(error, partition, batch),
        )
        .catch(this.#fail);
    }
  }

  /** What the transport does not take by now is made smaller where it is in no log; then all of it counts as given. */
  #fit(partition: number, { items, firstSequence }: Batch<WindowEntry>): void {
    const unstored = this.#unstored[partition] as Unstored;
    const { surelyTakenBytes } = this.#options.publisher;
    this.#surelyTakenBytes = surelyTakenBytes;
    for (let at = 0; at < items.length; at += 1) {
      const entry = items[at] as WindowEntry;
      if (entry.message.bytes > surelyTakenBytes && unstored.has(firstSequence + at)) this.#largeRows.fit(entry);
    }
    unstored.gives(firstSequence + items.length - 1);
  }

  #stamp(batch: Batch<WindowEntry>): OutgoingRecord[] {
    const numbers = {
      epoch: this.#options.epoch,
      generation: batch.generation,
      base: batch.base,
      sequence: batch.firstSequence,
      transactionCounter: 0,
      ordinal: 0,
    };
    return batch.items.map(({ message, transaction, versionOrdinal }) => {
      numbers.transactionCounter = transaction.counter;
      numbers.ordinal = versionOrdinal;
      message.stamp(numbers);
      numbers.sequence += 1;
      return toRecord(message.key, message.payload, message.deletes);
    });
  }

  #onAck(partition: number, batch: Batch<WindowEntry>, baseOffset: number): void {
    const outcome = this.#window(partition).acked(batch.id, baseOffset);
    if (outcome.kind === 'rewind') {
      if (outcome.reason === 'log-shrank') this.#fail(this.#logShrank(partition, baseOffset));
      else this.#renumber(outcome.reason, 0);
      return;
    }
    if (outcome.kind === 'advanced') {
      this.#storedMs = this.#options.clock.monotonic();
      if (partition === this.#refusedPartition) {
        this.#refusals = 0;
        this.#trouble = '';
        this.#refusedPartition = -1;
      }
      const { metrics, source } = this.#options;
      const labels = { source, partition: String(partition) };
      metrics.reader.published.inc(labels, outcome.items);
      metrics.reader.publishedBytes.inc(labels, batch.bytes);
      for (const run of outcome.passed) this.#options.onAcked(partition, run);
      this.#room.notify();
      this.#drained.notify();
    }
    this.#send(partition);
  }

  #logShrank(partition: number, offset: number): Error {
    const message = `a batch was stored at offset ${offset}, below one that was acked before: the log lost acked messages`;
    return readerErrors.READER_LOG_TRUNCATED({ message, where: { source: this.#options.source, partition } });
  }

  #onRefused(error: unknown, partition: number, batch: Batch<WindowEntry>): void {
    if (this.#failure !== null) return;
    // Also while a neighbour's refusal has everything go again: this one would only come back, and the neighbour's before it.
    if (isMysyncError(error, 'TRANSPORT_RECORD_TOO_LARGE')) {
      // one of an earlier generation: its messages are on their way again
      if (batch.generation !== this.#window(partition).generation) return;
      this.#unstored[partition]?.refused(batch.firstSequence);
      const failure = this.#largeRows.meet(error, batch);
      if (failure === null) this.#renumber(error.code, 0);
      else this.#fail(failure);
      return;
    }
    if (this.#renumbering !== null) return;
    if (isMysyncError(error) && error.retriable) this.#tryAgain(error, partition);
    else this.#fail(error);
  }

  /** `partition`: that of the batch; without one, as it was. */
  #tryAgain(error: MysyncError, partition = Math.max(this.#refusedPartition, 0)): void {
    if (error.code === 'TRANSPORT_RENUMBER') {
      this.#renumber(error.code, 0);
      return;
    }
    if (this.#refusals % TELL_EVERY === 0) {
      this.#options.logger.warn({ error: error.toJSON() }, 'the transport takes nothing for now, trying again');
    }
    this.#refusals += 1;
    this.#trouble = causeText(error);
    this.#refusedPartition = partition;
    this.#renumber(error.code, RETRY_PAUSE_MS);
  }

  /** Invariant 2. */
  #renumber(reason: string, pauseMs: number): void {
    if (this.#renumbering !== null) return;
    const { publisher, saveIdentity, clock, logger, metrics, source } = this.#options;
    const level = this.#refusals > 1 ? 'debug' : 'warn';
    logger[level]({ reason }, 'sending again what was not acked, under the next generation');
    metrics.reader.rewinds.inc({ source, reason });
    const work = async (): Promise<void> => {
      if (pauseMs > 0) await clock.sleep(pauseMs, this.#stop.signal);
      const identity = await publisher.renumber();
      this.#check();
      await saveIdentity(identity);
      for (const window of this.#windows) window.rewind();
      for (const unstored of this.#unstored) unstored.rewind();
    };
    this.#renumbering = work()
      .then(
        () => {
          this.#renumbering = null;
          this.flush();
        },
        (error: unknown) => {
          this.#renumbering = null;
          if (this.#failure === null && isMysyncError(error) && error.retriable) this.#tryAgain(error);
          else this.#fail(error);
        },
      )
      .catch(this.#fail);
  }
}

/** What is stored is never sent again, and a publisher reads records only until it has encoded them. */
function giveBack(entry: WindowEntry): void {
  entry.message.giveBack();
}
