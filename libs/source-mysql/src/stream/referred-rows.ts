/**
 * Rows of tables that foreign keys refer to, on MySQL: what the server does then to captured tables without logging it. Before 9.6, and with
 * innodb_native_foreign_keys later, the log holds the parent's rows only; each rows event says of itself which it is.
 *
 * Looked at are updates and deletions of such tables alone, an event at a time; of updates whose maps are at hand the bytes of the columns referred to.
 */
import { parseBinlogPosition, type TableRef } from '@mysync/core';
import { changesColumns } from '../binlog/changed-columns.ts';
import type { LogEvent } from '../binlog/log-event.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import { type BareColumn, readTableMap } from '../binlog/table-map.ts';
import type { CascadeBook } from '../schema/cascade-book.ts';
import type { CascadeReach, ReferredTable } from '../schema/cascade-reach.ts';
import type { ReferredColumn } from '../schema/foreign-keys.ts';

/** A mapped table that foreign keys refer to. */
export interface Referred {
  readonly byDelete: readonly TableRef[];
  readonly byUpdate: readonly {
    /** Of the columns referred to, in the map; undefined: that is not known. */
    readonly indexes: ReadonlySet<number> | undefined;
    readonly tables: readonly TableRef[];
  }[];
  /** Of the map. */
  readonly columns: readonly BareColumn[];
}

/** What was made of a table's map. */
interface Page {
  readonly reach: CascadeReach;
  readonly isOfNow: boolean;
  /** The map's bytes behind the table id. */
  readonly identity: Buffer;
  readonly referred: Referred;
}

/** Flags of rows events: MySQL, libs/mysql/binlog/event/rows_event.h, enum_flag; the last seen on 9.7 in every event of a server that follows keys itself. */
const NO_FOREIGN_KEY_CHECKS = 2;
const USE_SQL_FOREIGN_KEY = 16;
const TABLE_ID_BYTES = 6;

export class ReferredRows {
  readonly #book: CascadeBook;
  readonly #pages = new Map<string, Page>();
  #lastRef: TableRef | undefined;
  #lastReach: CascadeReach | undefined;
  #last: ReferredTable | undefined;

  constructor(book: CascadeBook) {
    this.#book = book;
  }

  /** `ask` before a map is looked at. */
  get mustAsk(): boolean {
    return this.#book.log.hidesRows && this.#book.current === undefined;
  }

  async ask(): Promise<void> {
    await this.#book.ask();
  }

  /** Of the table of a map; null: no foreign key matters. undefined: nobody looked, since the log has shown every row so far. */
  find(ref: TableRef, { buffer, start, end }: LogEvent, spot: { readonly place: string }): Referred | null | undefined {
    const reach = this.#book.latest;
    if (!this.#book.log.hidesRows || reach === undefined) return undefined;
    const table = this.#tableOf(ref, reach);
    if (table === undefined) return null;
    const { byDelete, byUpdate } = table;
    if (byUpdate.length === 0) return { byDelete, byUpdate: [], columns: [] };
    const isOfNow = this.#book.isOf(parseBinlogPosition(spot.place));
    const name = `${ref.database}\0${ref.table}`;
    const page = this.#pages.get(name);
    const from = start + TABLE_ID_BYTES;
    if (
      page?.reach === reach &&
      page.isOfNow === isOfNow &&
      buffer.compare(page.identity, 0, page.identity.length, from, end) === 0
    ) {
      return page.referred;
    }
    const map = readTableMap(buffer, start, end, 'mysql');
    const names = map.columns?.map((column) => column.name.toLowerCase());
    const referred = {
      byDelete,
      byUpdate: byUpdate.map(({ columns, tables }) => ({ indexes: indexesOf(columns, names, isOfNow), tables })),
      columns: map.columns ?? map.bareColumns,
    };
    this.#pages.set(name, { reach, isOfNow, identity: Buffer.from(buffer.subarray(from, end)), referred });
    return referred;
  }

  /** The same without its map. */
  findUnmapped(ref: TableRef): Referred | null {
    const table = this.#book.latest?.of(ref);
    if (table === undefined) return null;
    const byUpdate = table.byUpdate.map(({ tables }) => ({ indexes: undefined, tables }));
    return { byDelete: table.byDelete, byUpdate, columns: [] };
  }

  /** Whether foreign keys may have done what the log does not show. `flags` are the event's. */
  concerns(operation: RowsEvent['operation'], flags: number): boolean {
    if (operation === 'insert') return false;
    if ((flags & USE_SQL_FOREIGN_KEY) !== 0) return false;
    this.#book.log.hidesRows = true;
    return (flags & NO_FOREIGN_KEY_CHECKS) === 0;
  }

  /** Tells the tables that the event changed unseen. */
  judge(event: LogEvent, operation: RowsEvent['operation'], referred: Referred, tell: (table: TableRef) => void): void {
    if (operation === 'delete') {
      for (const table of referred.byDelete) tell(table);
      return;
    }
    for (const { indexes, tables } of referred.byUpdate) {
      if (indexes === undefined || mayChange(event, referred.columns, indexes)) for (const table of tables) tell(table);
    }
  }

  /** One table is changed many times in a row, under the same object. */
  #tableOf(ref: TableRef, reach: CascadeReach): ReferredTable | undefined {
    if (reach.isEmpty) return undefined;
    if (ref === this.#lastRef && reach === this.#lastReach) return this.#last;
    this.#lastRef = ref;
    this.#lastReach = reach;
    this.#last = reach.of(ref);
    return this.#last;
  }
}

/** undefined: which they are in the map is not known. */
function indexesOf(
  columns: readonly ReferredColumn[],
  names: readonly string[] | undefined,
  isOfNow: boolean,
): ReadonlySet<number> | undefined {
  const indexes = new Set<number>();
  for (const { name, index } of columns) {
    const found = names?.indexOf(name) ?? (isOfNow ? index : undefined);
    if (found === undefined || found < 0) return undefined;
    indexes.add(found);
  }
  return indexes.size === 0 ? undefined : indexes;
}

function mayChange(event: LogEvent, columns: readonly BareColumn[], indexes: ReadonlySet<number>): boolean {
  try {
    return changesColumns(event, columns, indexes);
  } catch (error) {
    // what it cannot follow it cannot tell; where the rows matter, whoever reads them says so
    if (error instanceof RangeError) return true;
    throw error;
  }
}
