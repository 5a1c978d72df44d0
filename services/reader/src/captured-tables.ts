import { type ChangeId, formatBinlogPosition, formatTableRef, type Logger, type TableRef } from '@mysync/core';
import type { SourceTableChange, SourceUnseenChange, UnseenCause } from '@mysync/source-mysql';
import type { Metrics } from '@mysync/telemetry';
import { CompleteTables } from './complete-tables.ts';
import { readerErrors } from './errors.ts';
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

  constructor(options: CapturedTablesOptions) {
    this.#options = options;
    this.known = new KnownTables(options.known);
    this.#complete = new CompleteTables(options.complete);
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

  /** `isThere`: it was read again; else it was gone. */
  readAgain(table: TableRef, isThere: boolean): void {
    if (isThere) this.#complete.hold(table);
    else this.#complete.drop(table);
  }

  /** `counter`: of the transaction that holds it. */
  note(item: SourceTableChange, counter: number): void {
    if (item.kind === 'sweep') return;
    const { resync, onAlter, logger } = this.#options;
    const turn = this.#complete.note(item);
    if (turn === 'gone') this.known.gone(item.table, counter);
    else this.known.add(item.table);
    if (turn === null) return;
    if (turn !== 'reshaped') resync.forget(item.table);
    else if (onAlter === 'resync') this.#want(item.table, 'alter', item.statement);
    else {
      const message =
        'the table changed its shape: rows keep the shape they were written with in the sinks until they change again';
      logger.warn({ table: formatTableRef(item.table), statement: item.statement }, message);
    }
  }

  /** `transaction`: the one that holds it. Throws READER_CHANGE_UNSEEN where the table's policy is to stop. */
  noteUnseen({ table, cause, statement }: SourceUnseenChange, transaction: ChangeId): void {
    const { metrics, sourceName: source, onUnseenChange, logger } = this.#options;
    const name = formatTableRef(table);
    this.known.add(table);
    metrics.reader.unseenChanges.inc({ source, table: name, cause });
    switch (onUnseenChange(table)) {
      case 'resync':
        this.#want(table, cause, statement);
        return;
      case 'warn':
        this.#complete.lack(table);
        logger.warn({ table: name, cause, statement }, 'rows of the table may have changed: the log does not show how');
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
    const { onUnseenChange, logger } = this.#options;
    for (const table of wanted) {
      if (onUnseenChange(table) !== 'warn') this.#want(table, 'unfinished', '');
      else {
        this.#complete.lack(table);
        logger.warn({ table: formatTableRef(table) }, 'rows of the table may have changed: it is not read again');
      }
    }
  }

  /** At a start: those captured that were not read from their beginning, since they were added to the configuration later. */
  findLacking(captured: readonly TableRef[], tookSnapshot: boolean): void {
    const { onUnseenChange, logger } = this.#options;
    const left: string[] = [];
    if (captured.length === 0) {
      logger.warn(
        {},
        'no captured table is there: the log is read for what those that are gone held, and for those made later',
      );
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
    logger.warn({ tables: left }, message);
  }

  #want(table: TableRef, cause: ResyncCause, statement: string): void {
    const { resync, logger } = this.#options;
    this.#complete.awaitRows(table);
    if (!resync.want(table, cause)) return;
    const words = { table: formatTableRef(table), cause, ...(statement === '' ? {} : { statement }) };
    logger.warn(words, 'the log does not hold all rows of the table as they are: it is read again');
  }
}
