import { type Clock, formatTableRef, isMysyncError, type Logger, type TableRef } from '@mysync/core';
import type { ClearChange, InspectedRow } from '@mysync/sink';
import type { Metrics } from '@mysync/telemetry';
import type { DeadLetters } from './dead-letters.ts';
import { PARK_WITHHELD_REMEDY, SKIP_WITHHELD_REMEDY, writerErrors } from './errors.ts';
import type { KeyState } from './key-history.ts';
import { causeOf, isWithheld, type KeyedChange, type ParkedKey, ParkedKeys, valueText } from './parked-keys.ts';
import { type RowStateChange, rowOfKey } from './row-change.ts';

/** What happens to a change that the sink can never take. */
export type PoisonPolicy = 'halt' | 'park' | 'dead-letter';

export interface PoisonHandlerOptions {
  readonly onPoison: (table: TableRef) => PoisonPolicy;
  /** Most keys that are set aside; one more halts the partition. */
  readonly maxParkedKeys: number;
  readonly deadLetters: DeadLetters;
  /** Where the sink stores a row; throws when it can be stored nowhere. */
  readonly targetOf: (row: InspectedRow) => string;
  /** What the log says of the keys (latin1), from the offsets on to its end. */
  readonly newestStates: (wanted: ReadonlyMap<string, number>) => Promise<ReadonlyMap<string, KeyState | 'cleared'>>;
  readonly labels: { readonly sink: string; readonly source: string; readonly partition: string };
  readonly where: Readonly<Record<string, string | number>>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const TARGET_LENGTH = 500;

/** A change that the sink can never take, and why. */
export interface RefusedChange {
  readonly keyed: KeyedChange;
  readonly error: unknown;
}

/**
 * What becomes of the changes that a sink can never take, as their tables' rules say; and the keys that are set aside.
 *
 * 1. What halts the partition is thrown before anything of the step was set aside or put away.
 * 2. Keys are set aside for good by the step that moves the marker (`saved`); a step that fails takes back what it did (`restore`).
 * 3. A withheld row halts nothing when the log holds a later whole state of its key: that one is going to be applied, and is all there is to apply.
 */
export class PoisonHandler {
  readonly #options: PoisonHandlerOptions;
  #parked = new ParkedKeys();
  /** Set aside in this step, by code. */
  #counts = new Map<string, number>();

  constructor(options: PoisonHandlerOptions) {
    this.#options = options;
  }

  get parked(): ParkedKeys {
    return this.#parked;
  }

  /** With what the marker says. */
  begin(entries: readonly ParkedKey[] | undefined): void {
    this.#parked = new ParkedKeys(entries);
    this.#counts.clear();
  }

  /** The marker was moved. */
  saved(): void {
    if (!this.#parked.changed) return;
    this.#parked.saved();
    const { metrics, labels } = this.#options;
    for (const [code, rows] of this.#counts) metrics.writer.parkedChanges.inc({ ...labels, code }, rows);
    this.#counts.clear();
  }

  /** The step failed. */
  restore(): void {
    this.#parked.restore();
    this.#counts.clear();
  }

  /** False when another writer puts dead letters away in our place. Throws what halts the partition. */
  async take(refused: readonly RefusedChange[], behind: ParkedKey['behind']): Promise<boolean> {
    if (refused.length === 0) return true;
    const { onPoison, labels, metrics, clock, deadLetters } = this.#options;
    const toPark = refused.filter(({ keyed }) => onPoison(keyed.change.schema) === 'park');
    const toPutAway = refused.filter(({ keyed }) => onPoison(keyed.change.schema) === 'dead-letter');
    await this.#halt(refused.filter(({ keyed }) => onPoison(keyed.change.schema) === 'halt'));
    this.#requireRoom(toPark);
    for (const { keyed, error } of toPutAway) {
      if (!(await deadLetters.put(keyed, error))) return false;
      metrics.writer.deadLetters.inc({ ...labels, code: causeOf(error).code });
    }
    for (const { keyed, error } of toPark) {
      const { code } = this.#parked.park(keyed, error, { sinceMs: clock.now(), behind, ...this.#targetOf(keyed) });
      this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
    }
    this.#tell(toPutAway, 'dead letter: the sink can never take this change');
    this.#tell(toPark, 'key set aside: the sink can never take this change');
    return true;
  }

  /** Ends the partition's work with a change: its error says which, why, and what to do. */
  refusal(change: RowStateChange | ClearChange | undefined, cause: unknown, count: number): Error {
    const where = { ...this.#options.where, ...(change === undefined ? {} : describe(change)) };
    const message = `the sink refused ${count === 1 ? 'a change' : `${count} changes`} for good`;
    if (!isMysyncError(cause)) return writerErrors.WRITER_CHANGE_REFUSED({ message, where, cause });
    const remedy = isWithheld(cause) ? SKIP_WITHHELD_REMEDY : cause.remedy;
    return writerErrors.WRITER_CHANGE_REFUSED({ message, where, cause, remedy });
  }

  async #halt(refused: readonly RefusedChange[]): Promise<void> {
    const left = await this.#notSuperseded(refused);
    const [first] = left;
    if (first !== undefined) throw this.refusal(first.keyed.change, first.error, left.length);
  }

  /**
   * Without the withheld rows of which the log tells a later state. The version alone decides: whoever sent that state, the source holds it,
   * so it lies in the log, or is going to.
   */
  async #notSuperseded(refused: readonly RefusedChange[]): Promise<readonly RefusedChange[]> {
    const wanted = new Map<string, number>();
    for (const { keyed } of refused) if (keyed.change.kind === 'withheld') wanted.set(keyed.key, keyed.change.offset);
    if (wanted.size === 0) return refused;
    const states = await this.#options.newestStates(wanted);
    return refused.filter(({ keyed }) => {
      const state = wanted.has(keyed.key) ? states.get(keyed.key) : undefined;
      if (state === undefined || state === 'cleared') return state === undefined;
      return !state.whole || state.change.kind === 'withheld' || state.change.version <= keyed.change.version;
    });
  }

  #requireRoom(toPark: readonly RefusedChange[]): void {
    const { maxParkedKeys, where } = this.#options;
    const { size } = this.#parked;
    const over = toPark[maxParkedKeys - size];
    if (over === undefined) return;
    const { code, reason } = causeOf(over.error);
    const more = toPark.length === 1 ? 'another one' : `${toPark.length} more`;
    throw writerErrors.WRITER_PARKED_FULL({
      message: `${size} keys are set aside, and ${more} would have to be: ${code}: ${reason}`,
      where: { ...where, ...describe(over.keyed.change) },
      cause: over.error,
      ...(isWithheld({ code }) ? { remedy: PARK_WITHHELD_REMEDY } : {}),
    });
  }

  /** Nothing where it has none, or one that is too long for a marker. */
  #targetOf({ change }: KeyedChange): Pick<ParkedKey, 'target'> {
    const { schema, key } = change;
    const row = change.kind === 'withheld' ? rowOfKey(schema, key) : change.row;
    try {
      const target = this.#options.targetOf({ schema, key, row });
      return target.length > TARGET_LENGTH ? {} : { target };
    } catch (error) {
      if (isMysyncError(error)) return {};
      throw error;
    }
  }

  /** One line for each cause, however many rows. */
  #tell(refused: readonly RefusedChange[], message: string): void {
    const byCode = new Map<string, RefusedChange[]>();
    for (const each of refused) {
      const { code } = causeOf(each.error);
      const same = byCode.get(code);
      if (same === undefined) byCode.set(code, [each]);
      else same.push(each);
    }
    for (const [first, ...others] of byCode.values()) {
      if (first === undefined) continue;
      const fields = { ...describe(first.keyed.change), ...causeOf(first.error) };
      this.#options.logger.error({ ...fields, ...(others.length === 0 ? {} : { others: others.length }) }, message);
    }
  }
}

function describe(change: RowStateChange | ClearChange): Record<string, string | number> {
  const table = formatTableRef(change.kind === 'clear' ? change.table : change.schema);
  const place = { offset: change.offset, table };
  return change.kind === 'clear' ? place : { ...place, key: change.key.values.map(valueText).join(',') };
}
