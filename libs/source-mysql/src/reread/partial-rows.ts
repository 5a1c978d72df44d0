/**
 * Rows events whose images lack columns, as records of whole rows.
 *
 * 1. What the images of an event hold together is used as it is: an update whose image after it is whole, alone or with what the one before
 *    tells, stays an update; a deletion needs the key only.
 * 2. Every other row is read again and becomes a `read` under the change's own name; when it is gone, a deletion. Its later changes
 *    follow in the log and put right what was read too new.
 * 3. A change takes as many ordinals as its images say (2 when it moves the row to another key, else 1), whatever is found: reading the log
 *    again counts alike.
 * 4. A change whose images do not hold what names the row and chooses its partition takes no ordinal and no record: its table is told as one
 *    whose rows have changed unseen. So is a table whose rows have another key by now, which cannot be looked up; the old key is deleted.
 */
import { coreErrors, formatTableRef, isMysyncError, type TableRef } from '@mysync/core';
import { type EncodedRow, type RowChange, RowEncoder, type RowValues, type TransactionBlock } from '@mysync/wire';
import type { HeldColumns, RowsEvent } from '../binlog/rows-event.ts';
import { sourceErrors } from '../errors.ts';
import type { ResolvedOptions } from '../options.ts';
import type { KnownTable } from '../schema/table-book.ts';
import { currentChange } from '../transcribe/current-rows.ts';
import type { LoggedTransaction } from './commit-barrier.ts';
import { type PartialChange, readPartialRows } from './partial-images.ts';
import { type FoundRows, type NothingFound, nameText, type RowLookup, type WantedRow } from './row-lookup.ts';

export interface PartialRowsOptions extends Pick<ResolvedOptions, 'tableRule' | 'logger' | 'observer'> {
  readonly lookup: RowLookup;
}

export interface PartialEvent {
  readonly table: KnownTable;
  readonly rows: RowsEvent;
  readonly held: HeldColumns;
  readonly transaction: LoggedTransaction & {
    readonly block: TransactionBlock;
    unseen(table: TableRef, cause: 'partial-row'): void;
  };
  /** Of the event; '' for that of the transaction. */
  readonly file: string;
  readonly offset: number;
  /** File and offset, for errors. */
  readonly place: string;
  /** Of the event's first row. */
  readonly ordinal: number;
}

interface Wanted extends WantedRow {
  readonly ordinal: number;
  /** Columns that name the row and choose its partition, as an image. */
  readonly image: RowValues;
}

/** A record that is ready, or a row that is to be read. */
type Step = { readonly record: EncodedRow; readonly wanted?: undefined } | { readonly wanted: Wanted };

export class PartialRows {
  readonly #options: PartialRowsOptions;
  readonly #encoder = new RowEncoder();
  readonly #warned = new Set<string>();

  constructor(options: PartialRowsOptions) {
    this.#options = options;
  }

  /** Hands over the event's records in pieces and returns how many ordinals they took. */
  async transcribe(event: PartialEvent, receive: (records: readonly EncodedRow[]) => void): Promise<number> {
    const { table, held, rows } = event;
    const { lookup } = this.#options;
    let { ordinal } = event;
    let steps: Step[] = [];
    let wanted = 0;
    const untold = takesOver(table, held) ? await lookup.untoldColumns(table) : NONE;
    for (const change of readPartialRows(rows, { table, held, untold })) {
      ordinal += this.#begin(event, change, ordinal, steps);
      if (steps.at(-1)?.wanted !== undefined) wanted += 1;
      if (wanted < lookup.batchRows(table) && steps.length < MAX_STEPS) continue;
      receive(await this.#complete(event, steps));
      steps = [];
      wanted = 0;
    }
    if (steps.length > 0) receive(await this.#complete(event, steps));
    return ordinal - event.ordinal;
  }

  /** Appends what becomes of a change, a row to be read last, and returns its number of ordinals. */
  #begin(event: PartialEvent, change: PartialChange, ordinal: number, steps: Step[]): number {
    const { keyLiterals } = change;
    const { table, rows, transaction } = event;
    const { plan, period } = table;
    const logged = { operation: rows.operation, before: change.before, after: change.after };
    if (period !== null && logged.after !== null && logged.after[period.end] === undefined) {
      this.#permit(event);
      transaction.unseen(table.ref, 'partial-row');
      return 0;
    }
    const current = period === null ? logged : currentChange(period, logged);
    if (current === null) return 0;
    const { operation, before, after } = current;
    try {
      if (after === null || !after.includes(undefined)) {
        const records: EncodedRow[] = [];
        const whole = { ...placeOf(event, ordinal), operation, before, after };
        const taken = this.#encoder.rowChange(plan, transaction.block, whole, records);
        for (const record of records) steps.push({ record });
        return taken;
      }
      const moves = before !== null && !this.#encoder.keepsKey(plan, before, after);
      // first what may fail: a change without a name leaves no record, or two changes would have one ordinal
      const name = this.#encoder.keyOf(plan, after);
      if (moves) steps.push({ record: this.#deletion(event, ordinal, before) });
      if (keyLiterals === undefined) throw coreErrors.INTERNAL({ message: 'a row has a key without literals' });
      this.#permit(event);
      const last = moves ? ordinal + 1 : ordinal;
      steps.push({ wanted: { name, literals: keyLiterals, ordinal: last, image: this.#nameImage(table, after) } });
      return last + 1 - ordinal;
    } catch (error) {
      if (!isMysyncError(error, 'WIRE_KEY_INCOMPLETE')) throw error;
      this.#permit(event);
      transaction.unseen(table.ref, 'partial-row');
      return 0;
    }
  }

  #nameImage(table: KnownTable, values: RowValues): RowValues {
    const { partitionBy = [] } = this.#options.tableRule(table.ref);
    const { columns } = table.plan.schema;
    return columns.map(({ name, keyPosition }, i) =>
      keyPosition > 0 || partitionBy.includes(name) ? values[i] : undefined,
    );
  }

  /** Throws where the table's rule is to halt; says once for a table that its rows are read again. */
  #permit(event: PartialEvent): void {
    const { tableRule, logger } = this.#options;
    const { ref } = event.table;
    const table = formatTableRef(ref);
    const where = { table, position: event.place };
    if (tableRule(ref).onPartialRow === 'halt') {
      throw sourceErrors.SOURCE_ROW_IMAGE_PARTIAL({
        message: `a row event of ${table} does not hold all columns`,
        where,
      });
    }
    if (this.#warned.has(table)) return;
    this.#warned.add(table);
    logger.warn(
      { code: 'SOURCE_ROW_IMAGE_PARTIAL', ...where },
      `a row event of ${table} does not hold all columns: such rows are read again, which costs a query for each event, and the whole table where it does not tell which row`,
    );
  }

  async #complete(event: PartialEvent, steps: readonly Step[]): Promise<readonly EncodedRow[]> {
    const { table, transaction } = event;
    const wanted = steps.flatMap((step) => step.wanted ?? []);
    const found = wanted.length === 0 ? 'gone' : await this.#options.lookup.find(table, wanted, transaction);
    if (wanted.length > 0) this.#options.observer.rowsReread?.(table.ref, wanted.length);
    if (found === 'rekeyed') transaction.unseen(table.ref, 'partial-row');
    return steps.map((step) => (step.wanted === undefined ? step.record : this.#completed(event, step.wanted, found)));
  }

  #completed(event: PartialEvent, wanted: Wanted, found: FoundRows | NothingFound): EncodedRow {
    const after = typeof found === 'string' ? undefined : found.rows.get(nameText(wanted.name));
    if (typeof found === 'string' || after === undefined) return this.#deletion(event, wanted.ordinal, wanted.image);
    const change = { ...placeOf(event, wanted.ordinal), operation: 'read', before: null, after } as const;
    return this.#encoder.encode(found.plan, event.transaction.block, change);
  }

  #deletion(event: PartialEvent, ordinal: number, before: RowValues): EncodedRow {
    const change = { ...placeOf(event, ordinal), operation: 'delete', before, after: null } as const;
    return this.#encoder.encode(event.table.plan, event.transaction.block, change);
  }
}

const NONE: ReadonlySet<string> = new Set();
/** Records of deletions and whole updates of an event that are handed over at once. */
const MAX_STEPS = 1024;

function placeOf(event: PartialEvent, ordinal: number): Pick<RowChange, 'eventFile' | 'eventOffset' | 'ordinal'> {
  return { eventFile: event.file, eventOffset: event.offset, ordinal };
}

/** Whether an update's row takes other columns than those of the key from the image before it. */
function takesOver(table: KnownTable, { before, after }: HeldColumns): boolean {
  const { columns } = table.plan.schema;
  return columns.some(({ keyPosition }, i) => keyPosition === 0 && before?.[i] === true && after?.[i] === false);
}
