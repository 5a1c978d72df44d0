/**
 * What foreign keys do to captured tables, for the place where the log is read: asked from the catalogue when it is first needed, and again after DDL.
 *
 * 1. Between two statements on definitions, as far as they stand in the log when it is asked, the answer is that of the place read.
 * 2. A statement is in an answer only once it is committed: the log is sent before that. Until then each question asks again.
 * 3. A statement that stood in the log before an answer may have taken away a key that the answer lacks: what it names, and what is below, is told as
 *    changed unseen there, since nobody knows what the key did before (`isPast`, `mayHaveMissed`).
 */
import { type BinlogPosition, compareBinlogPositions, type TableRef } from '@mysync/core';
import { foldRef } from '../history/ddl-horizon.ts';
import { quoteTable } from '../server/dialect.ts';
import type { LazySession } from '../server/lazy-session.ts';
import { currentPosition } from '../server/log-state.ts';
import { SERVER_ERRORS, serverErrorNumber } from '../server/mysql-error.ts';
import type { ServerSession } from '../server/session.ts';
import { CascadeReach } from './cascade-reach.ts';
import { readForeignKeys } from './foreign-keys.ts';

/** Shared by all connections of a stream. */
export interface CascadeLog {
  /** The server changes rows by foreign keys without logging them: it says so, or did once in what was read. */
  hidesRows: boolean;
}

export interface CascadeBookOptions {
  readonly session: LazySession;
  readonly log: CascadeLog;
  /** The end of the log when reading began. */
  readonly logEnd: BinlogPosition;
  readonly foldsNames: boolean;
  captures(ref: TableRef): boolean;
}

/** A statement on definitions that may not be in the catalogue yet. */
export interface LoggedDdl {
  readonly gtid: string;
  readonly tables: readonly TableRef[];
}

export class CascadeBook {
  readonly #options: CascadeBookOptions;
  readonly log: CascadeLog;
  #reach: CascadeReach | undefined;
  /** That may not be in `#reach`. */
  #since: LoggedDdl[] = [];
  /** The latest end of the log that an answer was of. */
  #asOf: BinlogPosition;

  constructor(options: CascadeBookOptions) {
    this.#options = options;
    this.log = options.log;
    this.#asOf = options.logEnd;
  }

  /** undefined: `ask` first. */
  get current(): CascadeReach | undefined {
    return this.#since.length === 0 ? this.#reach : undefined;
  }

  /** The newest answer there is. */
  get latest(): CascadeReach | undefined {
    return this.#reach;
  }

  noteDdl(ddl: LoggedDdl): void {
    this.#since.push(ddl);
    if (this.#since.length > MOST_SINCE) this.#since.shift();
  }

  /** The newest answer is that of this place, column by column. */
  isOf(place: BinlogPosition): boolean {
    return this.#since.length === 0 && compareBinlogPositions(place, this.#asOf) >= 0;
  }

  /** A key that a statement at this place took away may be missing from what was asked. */
  mayHaveMissed(place: BinlogPosition): boolean {
    return this.log.hidesRows && compareBinlogPositions(place, this.#asOf) < 0;
  }

  async ask(): Promise<CascadeReach> {
    const { session, foldsNames, captures } = this.#options;
    const since = this.#since;
    const asked = await session.use(async (open) => {
      const isSettled = await areCommitted(open, since);
      return { isSettled, keys: await readForeignKeys(open), end: await currentPosition(open) };
    });
    if (compareBinlogPositions(asked.end, this.#asOf) > 0) this.#asOf = asked.end;
    if (asked.isSettled) this.#since = [];
    this.#reach = new CascadeReach({ keys: asked.keys, captures, fold: (ref) => foldRef(ref, foldsNames) });
    return this.#reach;
  }
}

/** So many statements later one is surely committed. */
const MOST_SINCE = 1000;

/** Whether everybody sees the outcome of the statements; waits shortly. */
async function areCommitted(session: ServerSession, statements: readonly LoggedDdl[]): Promise<boolean> {
  if (statements.length === 0) return true;
  const gtids = statements.map(({ gtid }) => gtid);
  if (session.facts.flavor === 'mysql' && !gtids.includes('')) {
    const row = await session.first('SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1) AS late', [gtids.join(',')]);
    return row?.['late'] === '0';
  }
  // who opens a table waits for the statement that changes it
  await session.query('SET SESSION lock_wait_timeout = 1');
  try {
    for (const table of new Map(
      statements.flatMap(({ tables }) => tables.map((ref) => [quoteTable(ref), ref])),
    ).keys()) {
      if (!(await isFree(session, table))) return false;
    }
    return true;
  } finally {
    await session.query('SET SESSION lock_wait_timeout = DEFAULT');
  }
}

async function isFree(session: ServerSession, table: string): Promise<boolean> {
  try {
    await session.query(`SELECT 1 FROM ${table} LIMIT 0`);
  } catch (error) {
    const number = serverErrorNumber(error);
    if (number === 0) throw error;
    // gone, or not for us to see: so are its keys
    return number !== SERVER_ERRORS.LOCK_WAIT_TIMEOUT;
  }
  return true;
}
