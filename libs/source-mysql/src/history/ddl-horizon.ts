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
import { readQueryContext } from '../binlog/query-context.ts';
import type { BinlogConnection } from '../connection/binlog-connection.ts';
import { atLogEnd } from '../connection/log-end.ts';
import { LogCursor } from '../stream/log-position.ts';
import { alteringWords, ddlTargets } from './ddl/targets.ts';

export interface DdlHorizonOptions {
  readonly signal: AbortSignal;
  readonly foldsNames: boolean;
  /** A statement that is not ASCII as its client wrote it. */
  statementText(bytes: Buffer, collationId: number): Promise<string>;
  /** A dump that stops at the log's end. */
  open(from: BinlogPosition): Promise<BinlogConnection>;
}

interface Seen {
  readonly position: BinlogPosition;
  /** Keys of tables. */
  readonly tables: ReadonlySet<string>;
  readonly database: string;
  /** The words of an ALTER of this one table, in lower case; undefined for other statements, which may do anything. */
  readonly altering: ReadonlySet<string> | undefined;
}

/** Longer statements may do anything: what the log holds ahead is kept in memory. */
const LONGEST_ALTER = 4096;

export class DdlHorizon {
  readonly #options: DdlHorizonOptions;
  #seen: Seen[] = [];
  #end: BinlogPosition | undefined;

  constructor(options: DdlHorizonOptions) {
    this.#options = options;
  }

  /** Whether a statement that was seen behind `after` changed the table, or its whole database; but for an ALTER whose words are of no matter. */
  touches(
    ref: TableRef,
    after: BinlogPosition,
    isNoMatter: (words: ReadonlySet<string>) => boolean = () => false,
  ): boolean {
    const key = tableRefKey(ref);
    return this.#seen.some(
      ({ tables, database, position, altering }) =>
        (tables.has(key) || database === ref.database) &&
        compareBinlogPositions(position, after) > 0 &&
        !(altering !== undefined && isNoMatter(altering)),
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
        for (let event = connection.next(); event !== undefined; event = connection.next()) {
          const text = this.#read(event, cursor);
          if (text !== undefined) await text;
        }
        this.#end = { file: cursor.file, offset: cursor.offset };
        if (await atLogEnd(connection, this.#options.signal)) return;
      }
    } finally {
      await connection.close();
    }
  }

  /** A promise only where the statement is to be decoded. */
  #read(event: LogEvent, cursor: LogCursor): Promise<void> | undefined {
    const { control } = event;
    if (control.kind === 'rotate') {
      cursor.moveTo(control.file, control.offset);
      return undefined;
    }
    if (isMadeUp(event)) return undefined;
    const at = cursor.pass(event.length, event.nextOffset);
    if (control.kind !== 'query') return undefined;
    const { database, bytes } = control;
    const position = { file: cursor.file, offset: at };
    if (bytes === null) {
      this.#see(position, control.statement, database);
      return undefined;
    }
    const { clientCollation } = readQueryContext(event.buffer, event.start, event.end);
    return this.#options.statementText(bytes, clientCollation).then((text) => this.#see(position, text, database));
  }

  #see(position: BinlogPosition, statement: string, sessionDatabase: string): void {
    const { tables, database } = ddlTargets(statement, sessionDatabase);
    if (tables.length === 0 && database === '') return;
    this.#seen.push({
      position,
      tables: new Set(tables.map((ref) => tableRefKey(foldRef(ref, this.#options.foldsNames)))),
      database: this.#options.foldsNames ? database.toLowerCase() : database,
      altering: statement.length > LONGEST_ALTER ? undefined : alteringWords(statement, sessionDatabase),
    });
  }
}

export function foldRef(ref: TableRef, folds: boolean): TableRef {
  return folds ? { database: ref.database.toLowerCase(), table: ref.table.toLowerCase() } : ref;
}
