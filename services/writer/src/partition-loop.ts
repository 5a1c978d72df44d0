import { randomUUID } from 'node:crypto';
import { type Clock, causeText, errorForLog, isMysyncError, type Logger, type TableRef } from '@mysync/core';
import { Backoff, type GuardCounts, isRetriableError, retryForever, SequenceGuard } from '@mysync/flow';
import type { Sink, StreamRef } from '@mysync/sink';
import { LagTracker, type Metrics } from '@mysync/telemetry';
import type { AssignedPartition, RecordBatch, Transport } from '@mysync/transport';
import { MessageDecoder } from '@mysync/wire';
import { Committer } from './committer.ts';
import type { DeadLetters } from './dead-letters.ts';
import { DeletionWatch } from './deletion-watch.ts';
import { writerErrors } from './errors.ts';
import { newestStates } from './key-history.ts';
import type { PartitionStatus } from './partition-status.ts';
import type { PoisonPolicy } from './poison-handler.ts';
import { SinkApplier } from './sink-applier.ts';
import { type ApplyUnit, UnitBuilder } from './unit-builder.ts';

export interface PartitionLoopOptions {
  readonly assigned: AssignedPartition;
  /** The whole of it, to look for later changes of a key. */
  readonly log: Pick<Transport, 'read' | 'offsetRanges'>;
  readonly source: string;
  readonly sinkName: string;
  readonly sink: Sink;
  readonly maxChanges: number;
  readonly commitIntervalMs: number;
  /** How long after the revocation an apply in flight is left alone before it is abandoned. */
  readonly handoverMs: number;
  /** How long the topic keeps deletions; null where it is not compacted. */
  readonly deleteRetentionMs: number | null;
  readonly onPoison: (table: TableRef) => PoisonPolicy;
  readonly maxParkedKeys: number;
  /** What was applied in this long before is applied again when other servers hold the sink's data. */
  readonly replayMs: number;
  readonly deadLetters: DeadLetters;
  /** Whether the log was made anew after a loss. */
  readonly isLogIncomplete: () => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A batch that holds nothing for the sink (heartbeats) moves the marker at most this often. */
const IDLE_MARKER_MS = 5_000;
/** A partition that stands before deletions that the log has forgotten looks at its marker as often. */
const STOPPED_LOOK_MS = 1_000;
/** A marker that was held for this long was not taken in a quarrel: the next pause is a short one again. */
const QUIET_MS = 30_000;
const VERDICTS = ['accept', 'duplicate', 'stale', 'early'] as const;

/**
 * One assigned partition of one sink: batch → guard → map → collapse → apply → commit.
 *
 * 1. Strict order: one apply at a time; the next unit is built meanwhile, never sent.
 * 2. The marker in the sink says where to resume, even below the committed offset; it moves with the apply, never before.
 * 3. On start the loop puts its own name into the marker, which refuses every later apply of a predecessor.
 * 4. Transient failures are retried for ever; a change that can never succeed is set aside, put away, or halts this partition loudly
 *    while others go on, as the table's rule says (`SinkApplier`).
 * 5. Offsets are committed behind the applies. When the partition is revoked, the apply in flight is finished first.
 * 6. Two that hold each other for displaced pause longer and longer, and ask the group who owns the partition (ADR 0101).
 * 7. Deletions that the log may have forgotten before they were read halt the partition (ADR 0100), until the marker says that it may pass them
 *    (ADR 0193).
 *
 * Spec: docs/spec/writer.md.
 */
export class PartitionLoop {
  readonly #options: PartitionLoopOptions;
  readonly #stream: StreamRef;
  readonly #logger: Logger;
  readonly #labels: { sink: string; source: string; partition: string };
  readonly #committer: Committer;
  readonly #lag: LagTracker;
  readonly #decoder = new MessageDecoder();
  readonly #applier: SinkApplier;
  #state: PartitionStatus['state'] = 'starting';
  #detail = '';
  #nextOffset = 0;
  #endOffset = 0;
  readonly #abandon = new AbortController();
  /** Ends the reading of batches, so that a failure or a doubt is met at once and not at the next batch. */
  #interrupt = new AbortController();
  #markerMovedAt = 0;
  #takenOverAt = 0;
  #gapSince: number | null = null;
  #deletions: DeletionWatch | null = null;
  /** Already in the metrics: a labelled counter costs more than the guard itself, so it is asked once per batch. */
  #counted: Pick<GuardCounts, (typeof VERDICTS)[number]> = { accept: 0, duplicate: 0, stale: 0, early: 0 };
  readonly #assignedAtMs: number;
  readonly #pauses = new Backoff({ minMs: 100, maxMs: 5_000 });

  constructor(options: PartitionLoopOptions) {
    this.#options = options;
    const { assigned, sinkName, source } = options;
    this.#stream = { topic: assigned.topic.name, partition: assigned.partition };
    this.#labels = { sink: sinkName, source, partition: String(assigned.partition) };
    this.#logger = options.logger.child({ component: 'writer', ...this.#labels });
    this.#committer = new Committer({ assigned, intervalMs: options.commitIntervalMs, clock: options.clock });
    this.#lag = new LagTracker({ clock: options.clock });
    this.#assignedAtMs = options.clock.now();
    this.#applier = new SinkApplier({
      sink: options.sink,
      stream: this.#stream,
      topic: assigned.topic,
      earliest: assigned.range.earliest,
      owner: randomUUID(),
      poison: {
        onPoison: options.onPoison,
        maxParkedKeys: options.maxParkedKeys,
        deadLetters: options.deadLetters,
        newestStates: (wanted) => this.#newestStates(wanted),
      },
      replayMs: options.replayMs,
      hasCommitted: () => this.#committer.hasCommitted,
      isLogIncomplete: options.isLogIncomplete,
      unreadSinceMs: (nextOffset) => this.#deletions?.unreadSince(nextOffset) ?? this.#assignedAtMs,
      retrying: (call) => this.#retrying(call, assigned.revoked),
      abandon: this.#abandon.signal,
      labels: this.#labels,
      where: this.#where(),
      clock: options.clock,
      logger: this.#logger,
      metrics: options.metrics,
    });
    this.#nextOffset = assigned.committed ?? assigned.range.earliest;
    this.#endOffset = assigned.range.end;
    // Until something was read this is the least that it can be.
    if (this.#nextOffset < this.#endOffset) this.#lag.outstanding(this.#assignedAtMs * 1000);
  }

  /** Resolves when the partition was revoked and the apply in flight is finished. */
  async run(): Promise<void> {
    const { revoked } = this.#options.assigned;
    let deadline: NodeJS.Timeout | undefined;
    const onRevoked = (): void => {
      deadline = setTimeout(() => this.#abandon.abort(revoked.reason), this.#options.handoverMs);
    };
    if (revoked.aborted) onRevoked();
    else revoked.addEventListener('abort', onRevoked, { once: true });
    try {
      while (!revoked.aborted && !this.#committer.lost) {
        try {
          await this.#turn(revoked);
        } catch (error) {
          if (!revoked.aborted) await this.#halt(error, revoked);
        }
      }
    } finally {
      clearTimeout(deadline);
      revoked.removeEventListener('abort', onRevoked);
      await this.#committer.finish();
      this.#state = 'ended';
      const { lag, backlog, gapSeconds, halted, parkedKeys, deletionsLost } = this.#options.metrics.writer;
      for (const gauge of [lag, backlog, gapSeconds, halted, parkedKeys, deletionsLost]) gauge.remove(this.#labels);
      await this.#options.deadLetters.close();
    }
  }

  status(): PartitionStatus {
    return {
      partition: this.#stream.partition,
      state: this.#state,
      nextOffset: this.#nextOffset,
      endOffset: this.#endOffset,
      lagSeconds: this.#lag.current(),
      parkedKeys: this.#applier.parkedKeys,
      parkedByTable: this.#applier.parkedByTable,
      deletionsLostSinceMs: this.#applier.lost?.foundMs ?? null,
      detail: this.#detail,
    };
  }

  /** Sets the gauges that are computed on demand. */
  refresh(): void {
    const { writer } = this.#options.metrics;
    writer.lag.set(this.#labels, this.#lag.peak());
    writer.backlog.set(this.#labels, Math.max(0, this.#endOffset - this.#nextOffset));
    const gap = this.#gapSince === null ? 0 : (this.#options.clock.monotonic() - this.#gapSince) / 1000;
    writer.gapSeconds.set(this.#labels, gap);
    writer.parkedKeys.set(this.#labels, this.#applier.parkedKeys);
    writer.deletionsLost.set(this.#labels, this.#applier.lost === null ? 0 : 1);
  }

  /** The sink may have lost what it confirmed: the marker is read again before the next apply. */
  doubt(): void {
    this.#interrupt.abort();
  }

  /** Follows the log until there is a reason to read the marker again. */
  async #turn(revoked: AbortSignal): Promise<void> {
    try {
      if (await this.#resume()) return;
      await this.#committer.confirm();
    } catch (error) {
      // The sink's own failures are met where they occur: this one is the transport's.
      if (revoked.aborted || !isRetriableError(error)) throw error;
      this.#state = 'retrying';
      this.#detail = causeText(error);
      this.#logger.warn({ error: errorForLog(error) }, 'the partition cannot be read, trying again');
    }
    await this.#pause(revoked);
  }

  /** Before the marker is taken back. */
  async #pause(revoked: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    if (this.#committer.lost) return;
    if (clock.monotonic() - this.#takenOverAt > QUIET_MS) this.#pauses.reset();
    await clock.sleep(this.#pauses.next(), revoked);
  }

  /** Reads the marker and follows the log from there until revoked or in doubt; false when another writer moved the marker. */
  async #resume(): Promise<boolean> {
    const interrupt = new AbortController();
    this.#interrupt = interrupt;
    const marker = await this.#applier.takeOver();
    if (marker === null) return false;
    this.#takenOverAt = this.#options.clock.monotonic();
    this.#nextOffset = marker.nextOffset;
    this.#deletions = new DeletionWatch(marker.nextOffset, marker.unreadSinceMs);
    this.#deletions.endSeen(this.#options.assigned.range.end, this.#assignedAtMs);
    const guard = new SequenceGuard(marker.guard);
    this.#counted = { accept: 0, duplicate: 0, stale: 0, early: 0 };
    const where = this.#where();
    const builder = new UnitBuilder({
      guard,
      decoder: this.#decoder,
      maxChanges: this.#options.maxChanges,
      accepts: (table) => this.#options.sink.accepts(table),
      nextOffset: marker.nextOffset,
      onMissing: (offset) => this.#onMissing(offset),
      version: BigInt(marker.version),
      change: marker.change,
      where,
    });
    this.#state = 'running';
    this.#detail = '';
    let applying: Promise<boolean> = Promise.resolve(true);
    try {
      for await (const batch of this.#batches(marker.nextOffset, interrupt.signal)) {
        this.#onBatch(batch);
        for (const unit of builder.units(batch)) {
          if (!(await applying) || interrupt.signal.aborted) return await applying;
          applying = this.#apply(unit);
          applying.then(
            (moved) => moved || interrupt.abort(),
            () => interrupt.abort(),
          );
        }
        this.#afterBatch(guard);
        if (this.#committer.lost) break;
      }
    } finally {
      // Its failure is thrown also where the reading has ended by itself.
      await applying;
      this.#count(guard.counts);
    }
    return await applying;
  }

  async *#batches(from: number, signal: AbortSignal): AsyncGenerator<RecordBatch> {
    try {
      yield* this.#options.assigned.batches(from, signal);
    } catch (cause) {
      if (!isMysyncError(cause, 'TRANSPORT_OFFSET_OUT_OF_RANGE')) throw cause;
      const message = `the sink needs offset ${from}, which the log does not hold`;
      throw writerErrors.WRITER_LOG_TRUNCATED({ message, where: this.#where(), cause });
    }
  }

  /** False when another writer moved the marker: the caller resumes from it. */
  async #apply(unit: ApplyUnit): Promise<boolean> {
    const { metrics, clock } = this.#options;
    for (const schema of unit.newSchemas) await this.#applier.prepare(schema);
    if (unit.oldestMicros > 0) this.#lag.outstanding(unit.oldestMicros);
    if (this.#applier.needs(unit) || clock.monotonic() - this.#markerMovedAt >= IDLE_MARKER_MS) {
      const start = clock.monotonic();
      if (!(await this.#applier.apply(unit))) return false;
      this.#markerMovedAt = clock.monotonic();
      metrics.writer.applySeconds.observe(
        { sink: this.#labels.sink, source: this.#labels.source },
        (this.#markerMovedAt - start) / 1000,
      );
      if (unit.progress !== null) this.#committer.applied(unit.progress.nextOffset);
    }
    metrics.writer.applied.inc(this.#labels, unit.messages);
    if (unit.progress !== null) this.#onApplied(unit.progress.nextOffset, unit.newestMicros);
    return true;
  }

  async #newestStates(wanted: ReadonlyMap<string, number>): ReturnType<typeof newestStates> {
    const { log, assigned } = this.#options;
    const until = (await log.offsetRanges(this.#stream.topic))[this.#stream.partition]?.end ?? 0;
    return await newestStates(wanted, { log, ...this.#stream, until, signal: assigned.revoked });
  }

  async #retrying<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { clock, metrics } = this.#options;
    const result = await retryForever(call, {
      signal,
      clock,
      onRetry: ({ error, attempt, delayMs }) => {
        const code = isMysyncError(error) ? error.code : 'INTERNAL';
        metrics.writer.retries.inc({ ...this.#labels, code });
        this.#state = 'retrying';
        this.#detail = causeText(error);
        if (attempt === 1 || attempt % 20 === 0) {
          this.#logger.warn({ attempt, delayMs, error: errorForLog(error) }, 'the sink failed, trying again');
        }
      },
    });
    if (this.#state === 'retrying') {
      this.#state = 'running';
      this.#detail = '';
      this.#logger.info({}, 'the sink takes changes again');
    }
    return result;
  }

  #onBatch(batch: RecordBatch): void {
    this.#endOffset = Math.max(batch.endOffset, batch.nextOffset);
    if (batch.endOffsetAtMs !== undefined) this.#deletions?.endSeen(this.#endOffset, batch.endOffsetAtMs);
  }

  #afterBatch(guard: SequenceGuard): void {
    this.#count(guard.counts);
    const offset = guard.openGapSince;
    if (offset === null) {
      this.#gapSince = null;
    } else if (this.#gapSince === null) {
      this.#gapSince = this.#options.clock.monotonic();
      this.#logger.warn({ offset }, 'a gap in the sequence: waiting for the next generation');
    }
  }

  #count(counts: Readonly<GuardCounts>): void {
    for (const verdict of VERDICTS) {
      const more = counts[verdict] - this.#counted[verdict];
      if (more === 0) continue;
      this.#counted[verdict] += more;
      this.#options.metrics.writer.verdicts.inc({ ...this.#labels, verdict }, more);
    }
  }

  /** Compaction may remove what is superseded, but a deletion only once it was kept for its time. */
  #onMissing(offset: number): boolean {
    const { deleteRetentionMs, clock } = this.#options;
    if (deleteRetentionMs === null || this.#deletions === null) return false;
    const since = this.#deletions.unreadSince(offset);
    if (clock.now() - since <= deleteRetentionMs) return false;
    if (offset < (this.#applier.lost?.until ?? 0)) return true;
    const message = `offsets from ${offset} on are gone; what lay there may have been stored as long ago as ${new Date(since).toISOString()}, and deletions are kept for ${deleteRetentionMs} ms only`;
    throw writerErrors.WRITER_TOMBSTONES_LOST({ message, where: { ...this.#where(), offset } });
  }

  #onApplied(nextOffset: number, newestMicros: number): void {
    this.#nextOffset = nextOffset;
    this.#deletions?.forget(nextOffset);
    if (nextOffset >= this.#endOffset) this.#lag.outstanding(null);
    // What comes next is not older than this.
    else if (newestMicros > 0) this.#lag.outstanding(newestMicros);
  }

  #where(): Readonly<Record<string, string | number>> {
    return { sink: this.#labels.sink, topic: this.#stream.topic, partition: this.#stream.partition };
  }

  /** Stops this partition until it is revoked (restart, rebalance), or until somebody moved its marker for it, saying why. */
  async #halt(error: unknown, revoked: AbortSignal): Promise<void> {
    this.#state = 'halted';
    this.#detail = isMysyncError(error) ? error.toString() : causeText(error);
    this.#options.metrics.writer.halted.set(this.#labels, 1);
    this.#logger.error({ error: errorForLog(error) }, 'partition halted');
    if (isMysyncError(error, 'WRITER_TOMBSTONES_LOST')) {
      await this.#untilMoved(Number(error.where.offset), revoked);
      if (revoked.aborted) return;
      this.#logger.info({}, 'the applied marker was moved: the partition is read from there');
      // By whoever let it go on, or by another that takes itself for the owner.
      await this.#committer.confirm();
      await this.#pause(revoked).catch(() => undefined);
      this.#options.metrics.writer.halted.set(this.#labels, 0);
      this.#state = 'starting';
    } else if (!revoked.aborted) {
      await new Promise<void>((resolve) => revoked.addEventListener('abort', () => resolve(), { once: true }));
    }
  }

  /** The marker says where and why the partition stands; whoever mends the sink says there that it may go on. */
  async #untilMoved(offset: number, revoked: AbortSignal): Promise<void> {
    const stopped = this.#detail;
    let noted = false;
    let told = '';
    while (!revoked.aborted) {
      try {
        if (noted ? await this.#applier.isDisplaced() : !(await this.#applier.noteStop(offset))) return;
        noted = true;
        told = '';
        this.#detail = stopped;
        await this.#options.clock.sleep(STOPPED_LOOK_MS, revoked);
      } catch (error) {
        if (revoked.aborted) return;
        const text = isMysyncError(error) ? error.toString() : causeText(error);
        this.#detail = `${stopped}\nthe applied marker cannot be looked at: ${text}`;
        const isNews = text !== told && !isRetriableError(error);
        const level = isNews ? 'error' : 'debug';
        told = text;
        this.#logger[level]({ error: errorForLog(error) }, 'the applied marker cannot be looked at, trying again');
        await this.#options.clock.sleep(STOPPED_LOOK_MS, revoked).catch(() => undefined);
      }
    }
  }
}
