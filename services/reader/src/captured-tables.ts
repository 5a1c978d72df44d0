import {
  type ChangeId,
  causeText,
  formatBinlogPosition,
  formatTableRef,
  type Logger,
  type MysyncError,
  type TableRef,
  tableRefKey,
} from '@mysync/core';
import {
  type SourceTableChange,
  type SourceUnseenChange,
  sourceErrors,
  type TableFate,
  type UnseenCause,
} from '@mysync/source-mysql';
import type { Metrics } from '@mysync/telemetry';
import { CompleteTables } from './complete-tables.ts';
import { readerErrors } from './errors.ts';
import { leftTables, uncertainTable } from './known-table-warnings.ts';
import { KnownTables } from './known-tables.ts';
import type { ReaderOptions } from './options.ts';
import type { ResyncCause, TableResync } from './table-resync.ts';

export interface CapturedTablesOptions extends Pick<ReaderOptions, 'sourceName' | 'onUnseenChange' | 'onAlter'> {
  /** Tables that the log holds completely, by the checkpoint. */
  readonly complete: readonly string[];
  /** Tables that consumers may hold rows of, by the checkpoint. */
  readonly known: readonly TableRef[];
  readonly resync: TableResync;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const UNSEEN: Record<UnseenCause, string> = {
  statement: 'by a statement that is logged as text: its session has another binlog_format than ROW',
  partition: 'they came or went with a partition or tablespace',
  cascade: 'by a foreign key, with those of a parent table',
  rename: 'another table took its name',
  'partial-row': 'by a row event that lacks what names the row',
  versioning: 'the table was system-versioned then, and is so no more or otherwise',
};

/** What the log holds of each captured table, and what is done about that which it does not hold: the policy. */
export class CapturedTables {
  readonly #options: CapturedTablesOptions;
  readonly known: KnownTables;
  #complete: CompleteTables;
  /**
   * By name: tables that consumers hold rows of, by the checkpoint, while the log did not hold all that happened to them since. What was dropped and is made anew may
   * leave rows of before.
   */
  readonly #stale: Set<string>;

  constructor(options: CapturedTablesOptions) {
    this.#options = options;
    this.known = new KnownTables(options.known);
    this.#complete = new CompleteTables(options.complete);
    const complete = new Set(options.complete);
    this.#stale = new Set(options.known.map(formatTableRef).filter((name) => !complete.has(name)));
  }

  /** Names of the tables that the log holds completely. */
  get complete(): readonly string[] {
    return this.#complete.names;
  }

  /** Names of the tables of which it lacks rows for good. */
  get missing(): readonly string[] {
    return this.#complete.missing;
  }

  /** No captured table lacks rows, as far as known. */
  get isWhole(): boolean {
    return this.#complete.isWhole;
  }

  /** A first snapshot read these, and no others. */
  allRead(tables: readonly TableRef[]): void {
    this.#complete = new CompleteTables(tables.map(formatTableRef));
    for (const table of tables) this.known.add(table);
  }

  /** All of that is acked. `gone`: consumers were told so; `unlisted`: there is no such table to be read, and no proof that there is none. */
  readAgain(table: TableRef, found: 'there' | 'gone' | 'unlisted'): void {
    if (found === 'there') this.#complete.hold(table);
    else this.#complete.drop(table);
    if (found === 'gone') this.known.forget(table);
    if (found !== 'unlisted') this.#stale.delete(formatTableRef(table));
  }

  /** Tables that consumers may hold rows of, which are not among those captured now. */
  absentFrom(captured: readonly TableRef[]): readonly TableRef[] {
    const keys = new Set(captured.map(tableRefKey));
    return this.known.all.filter((table) => !keys.has(tableRefKey(table)));
  }

  /**
   * At a start: what became of those. One that is gone is told as such at the place of a view, unless the log shows it before. Whatever the policy says of reading
   * tables again: nothing is left to be read.
   */
  findGone(fates: readonly TableFate[]): void {
    const { resync, logger } = this.#options;
    const left: string[] = [];
    for (const found of fates) {
      const name = formatTableRef(found.table);
      if (found.fate === 'left') left.push(name);
      else if (found.fate === 'gone') {
        this.#complete.awaitRows(found.table);
        resync.want(found.table, 'gone');
        logger.info({ table: name }, 'the table is gone: consumers are told, where the log does not do so before');
      } else if (found.fate === 'uncertain') {
        this.#warn(uncertainTable(found));
      }
    }
    if (left.length > 0) this.#warn(leftTables(left), { tables: left });
  }

  /** `counter`: of the transaction that holds it. */
  note(item: SourceTableChange, counter: number): void {
    if (item.kind === 'sweep') return;
    const { resync, onAlter } = this.#options;
    const turn = this.#complete.note(item);
    if (turn === 'gone') this.known.gone(item.table, counter);
    else this.known.add(item.table);
    if (turn === null) return;
    const table = formatTableRef(item.table);
    if (item.kind === 'truncate') this.#stale.delete(table);
    if (turn === 'begins' && this.#stale.has(table) && resync.wants(item.table)) this.#complete.awaitRows(item.table);
    else if (turn !== 'reshaped') resync.forget(item.table);
    else if (onAlter === 'resync') this.#want(item.table, 'alter', item.statement);
    else {
      const message =
        'the table changed its shape: rows keep the shape they were written with in the sinks until they change again';
      this.#warn(readerErrors.READER_TABLE_RESHAPED({ message, where: { table, statement: item.statement } }));
    }
  }

  /** `transaction`: the one that holds it. Throws READER_CHANGE_UNSEEN where the table's policy is to stop. */
  noteUnseen({ table, cause, statement }: SourceUnseenChange, transaction: ChangeId): void {
    const { metrics, sourceName: source, onUnseenChange } = this.#options;
    const name = formatTableRef(table);
    this.known.add(table);
    metrics.reader.unseenChanges.inc({ source, table: name, cause });
    switch (onUnseenChange(table)) {
      case 'resync':
        this.#want(table, cause, statement);
        return;
      case 'warn':
        this.#complete.lack(table);
        this.#warn(
          readerErrors.READER_CHANGE_UNSEEN({
            message: 'rows of the table may have changed: the log does not show how',
            where: { table: name, cause, statement },
          }),
        );
        return;
      case 'stop':
        throw readerErrors.READER_CHANGE_UNSEEN({
          message: `rows of ${name} may have changed (${UNSEEN[cause]}), and the log does not show how`,
          where: { table: name, cause, position: formatBinlogPosition(transaction), statement },
        });
    }
  }

  /** At a start: those that an earlier life wanted to read again and did not. */
  resume(wanted: readonly TableRef[]): void {
    const { onUnseenChange } = this.#options;
    for (const table of wanted) {
      if (onUnseenChange(table) !== 'warn') this.#want(table, 'unfinished', '');
      else {
        this.#complete.lack(table);
        const message = 'rows of the table may have changed: it is not read again';
        this.#warn(readerErrors.READER_CHANGE_UNSEEN({ message, where: { table: formatTableRef(table) } }));
      }
    }
  }

  /** At a start: those captured that were not read from their beginning, since they were added to the configuration later. */
  findLacking(captured: readonly TableRef[], tookSnapshot: boolean): void {
    const { sourceName: source, onUnseenChange } = this.#options;
    const left: string[] = [];
    if (captured.length === 0) {
      const message =
        'no captured table is there: the log is read for what those that are gone held, and for those made later';
      this.#warn(sourceErrors.SOURCE_TABLES_NONE({ message, where: { source } }));
    }
    this.#complete.keepOnly(captured);
    for (const table of captured) this.known.add(table);
    for (const table of this.#complete.lackingOf(captured)) {
      // who did not ask for the existing rows at first does not get them by and by
      if (tookSnapshot && onUnseenChange(table) === 'resync') {
        this.#want(table, 'captured', '');
        continue;
      }
      this.#complete.lack(table);
      left.push(formatTableRef(table));
    }
    if (left.length === 0) return;
    const message =
      'these tables are captured, but the log does not hold their earlier rows: only what changes from now on comes';
    this.#warn(readerErrors.READER_ROWS_MISSING({ message }), { tables: left });
  }

  #want(table: TableRef, cause: ResyncCause, statement: string): void {
    const { resync } = this.#options;
    this.#complete.awaitRows(table);
    if (!resync.want(table, cause)) return;
    const where = { table: formatTableRef(table), cause, ...(statement === '' ? {} : { statement }) };
    const message = 'the log does not hold all rows of the table as they are: it is read again';
    this.#warn(readerErrors.READER_TABLE_REREAD({ message, where }));
  }

  /** With code, place and remedy; nothing stops. */
  #warn({ code, message, where, remedy, cause }: MysyncError, more: Readonly<Record<string, unknown>> = {}): void {
    const why = cause === undefined ? {} : { cause: causeText(cause) };
    this.#options.logger.warn({ code, ...where, ...more, ...why, remedy }, message);
  }
}
