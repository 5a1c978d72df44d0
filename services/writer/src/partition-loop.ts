import { randomUUID } from 'node:crypto';
import { type Clock, causeText, errorForLog, isMysyncError, type Logger, type TableRef } from '@mysync/core';
import { Backoff, isRetriableError, SequenceGuard, unlessAborted } from '@mysync/flow';
import type { Sink, StreamRef } from '@mysync/sink';
import { LagTracker, type Metrics } from '@mysync/telemetry';
import type { AssignedPartition, RecordBatch, Transport } from '@mysync/transport';
import { MessageDecoder } from '@mysync/wire';
import { ApplyLine } from './apply-line.ts';
import { Committer } from './committer.ts';
import type { DeadLetters } from './dead-letters.ts';
import { DeletionWatch } from './deletion-watch.ts';
import { writerErrors } from './errors.ts';
import { GuardWatch } from './guard-watch.ts';
import { newestStates } from './key-history.ts';
import { LookAhead } from './look-ahead.ts';
import { PartitionOutages } from './partition-outages.ts';
import type { PartitionStatus } from './partition-status.ts';
import type { PoisonPolicy } from './poison-handler.ts';
import { Retries } from './retries.ts';
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

/**
 * One assigned partition of one sink: batch → guard → map → collapse → apply → commit.
 *
 * 1. Strict order: one apply at a time; the next unit is built meanwhile, never sent (`ApplyLine`).
 * 2. The marker in the sink says where to resume, even below the committed offset; it moves with the apply, never before.
 * 3. On start the loop puts its own name into the marker, which refuses every later apply of a predecessor.
 * 4. Transient failures are retried for ever; a change that can never succeed is set aside, put away, or halts this partition loudly
 *    while others go on, as the table's rule says (`SinkApplier`).
 * 5. Offsets are committed behind the applies. When the partition is revoked, the apply in flight is finished first.
 * 6. Two that hold each other for displaced pause longer and longer, and ask the group who owns the partition (ADR 0101).
 * 7. While the sink or the log does not answer, it says since when; lag begins with the first change that waits, read or not (`LookAhead`, ADRs 0205 and 0206).
 * 8. Deletions that the log may have forgotten before they were read halt the partition (ADR 0100), until the marker says that it may pass them
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
  readonly #retries: Retries;
  readonly #outages: PartitionOutages;
  readonly #guardWatch: GuardWatch;
  #ahead: LookAhead | null = null;
  #state: Exclude<PartitionStatus['state'], 'retrying'> = 'starting';
  #detail = '';
  #nextOffset = 0;
  #endOffset = 0;
  readonly #abandon = new AbortController();
  /** Ends the reading of batches, so that a failure or a doubt is met at once and not at the next batch. */
  #interrupt = new AbortController();
  #markerMovedAt = 0;
  #takenOverAt = 0;
  #deletions: DeletionWatch | null = null;
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
    const { clock, metrics } = options;
    const told = { labels: this.#labels, clock, logger: this.#logger, metrics };
    this.#retries = new Retries({ ...told, signal: assigned.revoked, onRetry: () => this.#ahead?.begin() });
    this.#outages = new PartitionOutages({ assigned, retries: this.#retries, clock });
    this.#guardWatch = new GuardWatch(told);
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
      isLogIncomplete: () => unlessAborted(options.isLogIncomplete(), assigned.revoked),
      unreadSinceMs: (nextOffset) => this.#deletions?.unreadSince(nextOffset) ?? this.#assignedAtMs,
      retrying: (call) => this.#retries.call(call),
      abandon: this.#abandon.signal,
      where: this.#where(),
      ...told,
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
      const { lag, backlog, stalledSeconds, gapSeconds, halted, parkedKeys, deletionsLost } =
        this.#options.metrics.writer;
      for (const gauge of [lag, backlog, stalledSeconds, gapSeconds, halted, parkedKeys, deletionsLost])
        gauge.remove(this.#labels);
      await this.#options.deadLetters.close();
    }
  }

  status(): PartitionStatus {
    const outage = this.#outages.current;
    const retries = outage !== null && (this.#state === 'starting' || this.#state === 'running');
    return {
      partition: this.#stream.partition,
      state: retries ? 'retrying' : this.#state,
      nextOffset: this.#nextOffset,
      endOffset: this.#endOffset,
      lagSeconds: Math.max(this.#lag.current(), this.#outages.unreadSeconds()),
      stalledSeconds: retries ? this.#outages.seconds(outage) : 0,
      parkedKeys: this.#applier.parkedKeys,
      parkedByTable: this.#applier.parkedByTable,
      deletionsLostSinceMs: this.#applier.lost?.foundMs ?? null,
      detail: retries ? outage.cause : this.#detail,
    };
  }

  /** Sets the gauges that are computed on demand. */
  refresh(): void {
    const { writer } = this.#options.metrics;
    writer.lag.set(this.#labels, Math.max(this.#lag.peak(), this.#outages.unreadSeconds()));
    writer.stalledSeconds.set(this.#labels, this.status().stalledSeconds);
    writer.backlog.set(this.#labels, Math.max(0, this.#endOffset - this.#nextOffset));
    writer.gapSeconds.set(this.#labels, this.#guardWatch.gapSeconds());
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
      this.#outages.turnFailed(error);
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
    const marker = await this.#takeOver();
    if (marker === null) return false;
    this.#takenOverAt = this.#options.clock.monotonic();
    this.#nextOffset = marker.nextOffset;
    if (marker.nextOffset >= this.#endOffset) this.#lag.outstanding(null);
    this.#deletions = new DeletionWatch(marker.nextOffset, marker.unreadSinceMs);
    this.#deletions.endSeen(this.#options.assigned.range.end, this.#assignedAtMs);
    const guard = new SequenceGuard(marker.guard);
    this.#guardWatch.begin();
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
    this.#outages.follows();
    const line = new ApplyLine({ apply: (unit) => this.#apply(unit), onBroken: () => interrupt.abort() });
    try {
      for await (const batch of this.#batches(marker.nextOffset, interrupt.signal)) {
        this.#onBatch(batch);
        for (const unit of builder.units(batch)) {
          // now, and not once it is its turn: what is before it may be tried for ever
          if (unit.oldestMicros > 0) this.#lag.waits(unit.oldestMicros);
          if (!(await line.take(unit)) || interrupt.signal.aborted) return await line.end();
        }
        this.#guardWatch.look(guard);
        if (this.#committer.lost) break;
      }
    } finally {
      // Its failure is thrown also where the reading has ended by itself.
      await line.end();
      this.#guardWatch.count(guard.counts);
    }
    return await line.end();
  }

  /** The marker, once the sink tells it. Meanwhile what waits in the log is looked for, where nothing is known to. */
  async #takeOver(): ReturnType<SinkApplier['takeOver']> {
    const ahead = new LookAhead({
      assigned: this.#options.assigned,
      from: this.#endOffset,
      onEnd: (offset) => {
        this.#endOffset = Math.max(this.#endOffset, offset);
      },
      onChange: (micros) => this.#lag.waits(micros),
      clock: this.#options.clock,
    });
    this.#ahead = this.#lag.isOutstanding ? null : ahead;
    try {
      return await this.#applier.takeOver();
    } finally {
      this.#ahead = null;
      await ahead.end();
    }
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
    const ranges = await unlessAborted(log.offsetRanges(this.#stream.topic), assigned.revoked);
    const until = ranges[this.#stream.partition]?.end ?? 0;
    return await newestStates(wanted, { log, ...this.#stream, until, signal: assigned.revoked });
  }

  #onBatch(batch: RecordBatch): void {
    this.#endOffset = Math.max(batch.endOffset, batch.nextOffset);
    if (batch.endOffsetAtMs !== undefined) this.#deletions?.endSeen(this.#endOffset, batch.endOffsetAtMs);
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
    this.#outages.applied();
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
