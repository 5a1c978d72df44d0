import { randomUUID } from 'node:crypto';
import { type Clock, formatTableRef, isMysyncError, type Logger, NO_CHANGE, type TableSchema } from '@mysync/core';
import { initialGuardState } from '@mysync/flow';
import type { ApplyOutcome, ClearChange, Sink, SinkChange, StreamRef } from '@mysync/sink';
import type { Metrics } from '@mysync/telemetry';
import type { TopicDescription } from '@mysync/transport';
import { type EarlierPlace, EarlierPlaces } from './earlier-places.ts';
import { rowWithheld, writerErrors } from './errors.ts';
import { carriedOn, type LostDeletions } from './lost-deletions.ts';
import { type AppliedMarker, formatMarker, parseMarker } from './marker.ts';
import type { KeyedChange, ParkedKey } from './parked-keys.ts';
import { PoisonHandler, type PoisonHandlerOptions, type RefusedChange } from './poison-handler.ts';
import type { AppliedChange, RowStateChange } from './row-change.ts';
import type { ApplyUnit, Progress } from './unit-builder.ts';

export interface SinkApplierOptions {
  readonly sink: Sink;
  readonly stream: StreamRef;
  readonly topic: TopicDescription;
  /** Of the log: where a sink without a marker begins. */
  readonly earliest: number;
  /** Random name of the loop, for the marker. */
  readonly owner: string;
  /** Its policy, its letters, and where it looks for newer states. */
  readonly poison: Pick<PoisonHandlerOptions, 'onPoison' | 'maxParkedKeys' | 'deadLetters' | 'newestStates'>;
  /** What was applied in this long before is applied again when other servers hold the sink's data; for sinks that tell who does. */
  readonly replayMs: number;
  /** True once the group has committed an offset: then a sink without a marker was lost. */
  readonly hasCommitted: () => boolean;
  /** Whether the log was made anew after a loss, so that a sink filled from it alone would miss rows. */
  readonly isLogIncomplete: () => Promise<boolean>;
  readonly unreadSinceMs: (nextOffset: number) => number;
  /** Calls until it succeeds, or fails for good. */
  readonly retrying: <T>(call: () => Promise<T>) => Promise<T>;
  /** Given to each apply. */
  readonly abandon: AbortSignal;
  readonly labels: { readonly sink: string; readonly source: string; readonly partition: string };
  readonly where: Readonly<Record<string, string | number>>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/**
 * Brings units to the sink and moves the applied marker with them.
 *
 * 1. The marker moves with the changes, by compare-and-set, never before them.
 * 2. A change that the sink can never take is set aside, put away, or halts the partition, as its table's rule says; its neighbours
 *    are applied in the same step that moves the marker.
 * 3. A key that is set aside stands in the marker, in the step that passes its change: no crash and no other owner can lose it. Its
 *    later changes take its place there and are not applied.
 *    What the sink holds of them outlives a sweep: it is old, but the row is there.
 * 4. A dead letter is stored before the marker passes its change.
 * 5. Where other servers hold the data than when the marker was written, rows may be gone that lie before it: the marker goes back
 *    by a span, keys that are set aside stay so.
 * 6. A step that passes what may have been deletions says so in the marker (`LostDeletions`), which says it until the sink was mended.
 *
 * Spec: docs/spec/poison.md.
 */
export class SinkApplier {
  readonly #options: SinkApplierOptions;
  /** Tables whose rows the sink can never take as they are, by the schema. */
  #unfit = new Map<TableSchema, Error>();
  #markerText: string | null = null;
  #progress: Progress | null = null;
  readonly #poison: PoisonHandler;
  #holders: string | undefined;
  #earlier: EarlierPlaces;
  #lost: LostDeletions | null = null;

  constructor(options: SinkApplierOptions) {
    this.#options = options;
    this.#earlier = new EarlierPlaces(options.replayMs);
    const { poison, labels, where, clock, logger, metrics } = options;
    this.#poison = new PoisonHandler({
      ...poison,
      targetOf: (row) => options.sink.inspector.targetOf(row),
      labels,
      where,
      clock,
      logger,
      metrics,
    });
  }

  /** How many keys are set aside. */
  get parkedKeys(): number {
    return this.#poison.parked.size;
  }

  /** The same by table. */
  get parkedByTable(): Readonly<Record<string, number>> {
    return this.#poison.parked.byTable();
  }

  /** Deletions that the log had forgotten, while rows of them may stand in the sink. */
  get lost(): LostDeletions | null {
    return this.#lost;
  }

  /** The marker to resume from, with the loop's name put into it; null when another writer was faster. */
  async takeOver(): Promise<(AppliedMarker & { readonly unreadSinceMs: number }) | null> {
    const { sink, stream, topic, earliest, owner, retrying, where, clock } = this.#options;
    const text = await retrying(() => sink.readMarker(stream));
    const stored = text === null ? null : parseMarker(text, where);
    this.#check(stored);
    if (stored === null && (await retrying(() => this.#options.isLogIncomplete()))) {
      const message = 'the log was lost and made anew: it does not hold the rows that were there before';
      throw writerErrors.WRITER_LOG_INCOMPLETE({ message, where });
    }
    const place = {
      nextOffset: stored?.nextOffset ?? earliest,
      // Not the first offset: on a log whose head was cut off, sequences do not begin at 1 either.
      guard: stored?.guard ?? initialGuardState(0),
      version: stored?.version ?? '0',
      change: stored?.change ?? NO_CHANGE,
      unreadSinceMs: stored?.unreadSinceMs ?? clock.now(),
    };
    const marker = {
      topicId: topic.id,
      partitions: topic.partitions,
      owner,
      ...place,
      ...(await this.#held(stored, place)),
      ...(stored?.parked === undefined ? {} : { parked: stored.parked }),
      ...lostPart(carriedOn(stored?.lost)),
    };
    this.#markerText = text;
    this.#lost = carriedOn(stored?.lost);
    this.#unfit = new Map();
    this.#poison.begin(stored?.parked);
    this.#progress = {
      nextOffset: marker.nextOffset,
      guard: marker.guard,
      version: BigInt(marker.version),
      change: marker.change,
    };
    const next = formatMarker(marker);
    const outcome = await this.#send([], next);
    return this.#moved(outcome, next) ? marker : null;
  }

  /** Who holds the data now, and the place to go back to when others did. Nothing for sinks that do not tell. */
  async #held(stored: AppliedMarker | null, place: Omit<EarlierPlace, 'atMs'>): Promise<Partial<AppliedMarker>> {
    const { sink, stream, retrying, replayMs, earliest, clock, logger } = this.#options;
    if (sink.holders === undefined) return {};
    const holders = await retrying(async () => await sink.holders?.(stream));
    if (holders === undefined) return {};
    this.#holders = holders;
    this.#earlier = new EarlierPlaces(replayMs, stored?.earlier);
    let back: Partial<AppliedMarker> = {};
    if (stored?.holders !== undefined && stored.holders !== holders) {
      // A backup that comes back is as old as its marker says: a span before that, and not before now.
      const found = this.#earlier.goBack(Math.min(clock.now(), stored.heldAtMs ?? Infinity), earliest);
      const records = found === null ? 0 : Math.max(0, place.nextOffset - found.nextOffset);
      logger.warn(
        { records },
        'other servers hold the data of the sink (a failover, a restored backup): what was applied last is applied again; if slots were moved right before, or the backup took longer than that, run mysync verify --repair',
      );
      if (found !== null && records > 0) {
        const { atMs: _, ...earlier } = found;
        back = earlier;
      }
    }
    this.#earlier.note({ ...place, ...back }, clock.now());
    return { ...back, ...this.#heldPart(holders) };
  }

  /** True when there is something that the marker does not say yet. */
  needs(unit: ApplyUnit): boolean {
    return unit.changes.length > 0 || unit.passesLost || this.#poison.parked.changed;
  }

  /** The marker says that the partition stands before a stretch that deletions may have been in. False: another writer moved it. */
  async noteStop(offset: number): Promise<boolean> {
    const { sink, stream, clock, abandon } = this.#options;
    if (this.#progress === null) return false;
    const { until } = this.#lost ?? {};
    this.#lost = {
      id: randomUUID(),
      foundMs: this.#lost?.foundMs ?? clock.now(),
      ...(until === undefined ? {} : { until }),
      stoppedAt: offset,
    };
    const next = this.#format(this.#progress);
    const batch = { stream, changes: [], marker: { expected: this.#markerText, next } };
    return this.#moved(await sink.apply(batch, abandon), next);
  }

  /** Whether the marker is another one than this writer wrote last. */
  async isDisplaced(): Promise<boolean> {
    return (await this.#options.sink.readMarker(this.#options.stream)) !== this.#markerText;
  }

  /** False when another writer moved the marker: the caller resumes from it. */
  async apply(unit: ApplyUnit): Promise<boolean> {
    try {
      return await this.#apply(unit);
    } catch (error) {
      this.#poison.restore();
      throw error;
    }
  }

  async #apply(unit: ApplyUnit): Promise<boolean> {
    const progress = unit.progress ?? this.#progress;
    if (progress === null) return false;
    if (unit.passesLost && this.#lost !== null) this.#lost = { ...this.#lost, id: randomUUID() };
    const [first] = unit.changes;
    if (first?.kind === 'clear') {
      this.#poison.parked.clear(first.table, first.version);
      const keep = unit.isSweep ? this.#poison.parked.targets(first.table) : null;
      return await this.#applyClear(keep === null ? first : { ...first, keep }, progress);
    }
    let changes: readonly SinkChange[];
    let keys = unit.keys;
    if (this.#poison.parked.size === 0 && this.#unfit.size === 0 && areHere(unit.changes)) {
      changes = unit.changes;
    } else {
      const keyed = await this.#setAside(keyedChanges(unit));
      if (keyed === null) return false;
      changes = keyed.map(({ change }) => change);
      keys = keyed.map(({ key }) => key);
    }
    for (;;) {
      const next = this.#textOf(progress);
      const outcome = await this.#send(changes, next);
      if (outcome.status !== 'refused') return this.#moved(outcome, next, progress);
      const errors = new Map(outcome.refusals.map(({ index, error }) => [index, error]));
      const left: KeyedChange<AppliedChange>[] = [];
      const refused: RefusedChange[] = [];
      for (const [index, keyed] of keyedChanges({ changes, keys, mergedFrom: unit.mergedFrom }).entries()) {
        if (errors.has(index)) refused.push({ keyed, error: errors.get(index) });
        else left.push(keyed);
      }
      // Answers that refuse nothing that was sent would come again for ever.
      if (refused.length === 0) throw this.#poison.refusal(undefined, undefined, outcome.refusals.length);
      if (!(await this.#poison.take(refused, this.#behind()))) return false;
      changes = left.map(({ change }) => change);
      keys = left.map(({ key }) => key);
    }
  }

  /** Throws what cannot be met by setting rows aside one by one. */
  async prepare(schema: TableSchema): Promise<void> {
    const { sink, retrying, poison, logger } = this.#options;
    try {
      await retrying(() => sink.prepare(schema));
    } catch (error) {
      if (!isMysyncError(error) || error.scope !== 'table' || poison.onPoison(schema) === 'halt') throw error;
      logger.error(
        { table: formatTableRef(schema), error: error.toJSON() },
        'the sink cannot take the rows of a table',
      );
      this.#unfit.set(schema, error);
    }
  }

  async #applyClear(change: SinkChange, progress: Progress): Promise<boolean> {
    const next = this.#textOf(progress);
    const outcome = await this.#send([change], next);
    if (outcome.status === 'refused') {
      throw this.#poison.refusal(change, outcome.refusals[0]?.error, outcome.refusals.length);
    }
    return this.#moved(outcome, next, progress);
  }

  /** What is left to apply (null: another writer acts in our place): changes of keys that are set aside wait there, rows of unfit tables and withheld ones are refused unsent. */
  async #setAside(changes: readonly KeyedChange[]): Promise<readonly KeyedChange<AppliedChange>[] | null> {
    const left: KeyedChange<AppliedChange>[] = [];
    const refused: RefusedChange[] = [];
    const behind = this.#behind();
    for (const keyed of changes) {
      if (this.#poison.parked.wait(keyed, behind)) continue;
      const { change } = keyed;
      const error = change.kind === 'withheld' ? rowWithheld() : this.#unfit.get(change.schema);
      if (error !== undefined) refused.push({ keyed, error });
      else if (change.kind !== 'withheld') left.push({ ...keyed, change });
    }
    return (await this.#poison.take(refused, behind)) ? left : null;
  }

  /** What the marker names: everything that is applied now lies behind it. */
  #behind(): ParkedKey['behind'] {
    return { version: String(this.#progress?.version ?? 0n), change: this.#progress?.change ?? NO_CHANGE };
  }

  async #send(changes: readonly SinkChange[], next: string): Promise<ApplyOutcome> {
    const { sink, stream, retrying, abandon } = this.#options;
    const batch = { stream, changes, marker: { expected: this.#markerText, next } };
    return await retrying(() => sink.apply(batch, abandon));
  }

  #moved(outcome: ApplyOutcome, next: string, progress?: Progress): boolean {
    const { metrics, labels, logger } = this.#options;
    if (outcome.status === 'applied') {
      this.#markerText = next;
      if (progress !== undefined) this.#progress = progress;
      this.#poison.saved();
      metrics.writer.stale.inc(labels, outcome.stale);
      return true;
    }
    logger.warn({}, 'another writer moved the applied marker: reading it again');
    return false;
  }

  #textOf(progress: Progress): string {
    // A unit that does not move the marker leaves its text as it is: unless there is more to say.
    if (progress === this.#progress && !this.#poison.parked.changed && this.#markerText !== null)
      return this.#markerText;
    return this.#format(progress);
  }

  #format(progress: Progress): string {
    const { topic, owner, clock } = this.#options;
    const parked = this.#poison.parked.size === 0 ? {} : { parked: this.#poison.parked.entries() };
    if (this.#holders !== undefined && this.#progress !== null) {
      this.#earlier.note(this.#placeOf(this.#progress), clock.now());
    }
    const held = this.#holders === undefined ? {} : this.#heldPart(this.#holders);
    return formatMarker({
      topicId: topic.id,
      partitions: topic.partitions,
      owner,
      ...this.#placeOf(progress),
      ...held,
      ...parked,
      ...lostPart(this.#lost),
    });
  }

  #heldPart(holders: string): Partial<AppliedMarker> {
    return { holders, heldAtMs: this.#options.clock.now(), earlier: this.#earlier.entries() };
  }

  #placeOf({ nextOffset, guard, version, change }: Progress): Omit<EarlierPlace, 'atMs'> {
    const unreadSinceMs = this.#options.unreadSinceMs(nextOffset);
    return { nextOffset, guard, version: version.toString(), change, unreadSinceMs };
  }

  #check(stored: AppliedMarker | null): void {
    const { topic, hasCommitted, where } = this.#options;
    if (stored === null) {
      if (!hasCommitted() && this.#markerText === null) return;
      const message = 'the sink holds no applied marker, though it was filled before';
      throw writerErrors.WRITER_SINK_LOST({ message, where });
    }
    if (stored.topicId !== topic.id || stored.partitions !== topic.partitions) {
      const message = `the sink was filled from topic id ${stored.topicId} with ${stored.partitions} partitions; now it is ${topic.id} with ${topic.partitions}`;
      throw writerErrors.WRITER_TOPIC_CHANGED({ message, where });
    }
  }
}

function lostPart(lost: LostDeletions | null): Pick<AppliedMarker, 'lost'> {
  return lost === null ? {} : { lost };
}

function keyedChanges<Change extends RowStateChange>({
  changes,
  keys,
  mergedFrom,
}: Pick<ApplyUnit, 'keys' | 'mergedFrom'> & {
  readonly changes: readonly (Change | ClearChange)[];
}): readonly KeyedChange<Change>[] {
  const keyed: KeyedChange<Change>[] = [];
  for (const [index, key] of keys.entries()) {
    const change = changes[index];
    if (change === undefined || isClear(change)) continue;
    keyed.push({ key, change, mergedFrom: mergedFrom.get(key) });
  }
  return keyed;
}

function isClear(change: RowStateChange | ClearChange): change is ClearChange {
  return change.kind === 'clear';
}

function areHere(changes: ApplyUnit['changes']): changes is readonly SinkChange[] {
  for (const change of changes) if (change.kind === 'withheld') return false;
  return true;
}
