/**
 * What DDL the log holds beyond the place of reading: the catalogue tells of now, and what it tells holds back to a place of the log only
 * where no statement between there and now changed the table.
 *
 * 1. The log is read once: each time from where it was read to, up to its end then.
 * 2. A server shows a changed definition to others only after the statement stands in its log: what was read from the catalogue before the
 *    log was read to its end is covered.
 */
import { type BinlogPosition, compareBinlogPositions, type TableRef, tableRefKey } from '@mysync/core';
import { isMadeUp, type LogEvent } from '../binlog/log-event.ts';
import type { BinlogConnection } from '../connection/binlog-connection.ts';
import { atLogEnd } from '../connection/log-end.ts';
import { LogCursor } from '../stream/log-position.ts';
import { ddlTargets } from './ddl/targets.ts';

export interface DdlHorizonOptions {
  readonly signal: AbortSignal;
  readonly foldsNames: boolean;
  /** A dump that stops at the log's end. */
  open(from: BinlogPosition): Promise<BinlogConnection>;
}

interface Seen {
  readonly position: BinlogPosition;
  /** Keys of tables. */
  readonly tables: ReadonlySet<string>;
  readonly database: string;
}

export class DdlHorizon {
  readonly #options: DdlHorizonOptions;
  #seen: Seen[] = [];
  #end: BinlogPosition | undefined;

  constructor(options: DdlHorizonOptions) {
    this.#options = options;
  }

  /** Whether a statement that was seen behind `after` changed the table, or its whole database. */
  touches(ref: TableRef, after: BinlogPosition): boolean {
    const key = tableRefKey(ref);
    return this.#seen.some(
      (seen) =>
        (seen.tables.has(key) || seen.database === ref.database) && compareBinlogPositions(seen.position, after) > 0,
    );
  }

  touchesDatabase(database: string, after: BinlogPosition): boolean {
    return this.#seen.some((seen) => seen.database === database && compareBinlogPositions(seen.position, after) > 0);
  }

  /** Reads up to where the log ends now. `from` is a boundary of transactions at or before everything that is asked for. */
  async extend(from: BinlogPosition): Promise<void> {
    if (this.#end === undefined || compareBinlogPositions(this.#end, from) < 0) {
      this.#seen = [];
      this.#end = from;
    } else if (this.#seen.length > 0) {
      this.#seen = this.#seen.filter((seen) => compareBinlogPositions(seen.position, from) >= 0);
    }
    const cursor = new LogCursor(this.#end.file, this.#end.offset);
    const connection = await this.#options.open(this.#end);
    try {
      for (;;) {
        for (let event = connection.next(); event !== undefined; event = connection.next()) this.#read(event, cursor);
        this.#end = { file: cursor.file, offset: cursor.offset };
        if (await atLogEnd(connection, this.#options.signal)) return;
      }
    } finally {
      await connection.close();
    }
  }

  #read(event: LogEvent, cursor: LogCursor): void {
    const { control } = event;
    if (control.kind === 'rotate') {
      cursor.moveTo(control.file, control.offset);
      return;
    }
    if (isMadeUp(event)) return;
    const at = cursor.pass(event.length, event.nextOffset);
    if (control.kind !== 'query') return;
    const { tables, database } = ddlTargets(control.statement, control.database);
    if (tables.length === 0 && database === '') return;
    this.#seen.push({
      position: { file: cursor.file, offset: at },
      tables: new Set(tables.map((ref) => tableRefKey(foldRef(ref, this.#options.foldsNames)))),
      database: this.#options.foldsNames ? database.toLowerCase() : database,
    });
  }
}

export function foldRef(ref: TableRef, folds: boolean): TableRef {
  return folds ? { database: ref.database.toLowerCase(), table: ref.table.toLowerCase() } : ref;
}
