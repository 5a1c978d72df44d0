/**
 * Rows by their keys, as they are now: surely not as they were before the transaction of the log that asks for them.
 *
 * 1. Never an older state: behind the barrier an ordinary read sees the transaction; where the barrier cannot tell, the rows are locked, which
 *    waits for whoever changed them.
 * 2. A row that is not found is gone: keys are compared as the bytes that the log holds, and what comes back counts only under the very
 *    name that was asked for.
 * 3. Values are converted by the columns that the result has: a table that was altered meanwhile is looked at again.
 * 4. Waiting for locks (rows, or a table that is being altered) goes on until it ends or the stream is stopped; no lock is waited for while another
 *    one is held, so nobody comes into a deadlock with us.
 */
import { type ColumnValue, causeText, formatTableRef, type TableRef } from '@mysync/core';
import { RowEncoder, type RowName, type RowValues, type TablePlan } from '@mysync/wire';
import type { ResolvedOptions } from '../options.ts';
import type { KnownTable } from '../schema/table-book.ts';
import { lockingClause, quoteName, quoteTable } from '../server/dialect.ts';
import { LazySession } from '../server/lazy-session.ts';
import { SERVER_ERRORS, serverErrorNumber } from '../server/mysql-error.ts';
import type { RawRow, RawRows, ServerSession } from '../server/session.ts';
import { describeTable, type TableReading } from '../snapshot/table-rows.ts';
import { selectExpression, textValue } from '../snapshot/text-values.ts';
import { CommitBarrier, type LoggedTransaction } from './commit-barrier.ts';
import { sameKeyColumns } from './key-columns.ts';

export interface RowLookupOptions {
  readonly source: Pick<ResolvedOptions, 'tableRule' | 'logger' | 'clock'>;
  /** A session with the server whose log is read. */
  openSession(): Promise<ServerSession>;
  readonly signal: AbortSignal;
}

export interface WantedRow {
  readonly name: RowName;
  /** Of the key's columns in the order of the table's. */
  readonly literals: readonly string[];
}

export interface FoundRows {
  /** Of the table as it is now. */
  readonly plan: TablePlan;
  /** By `nameText`. */
  readonly rows: ReadonlyMap<string, RowValues>;
}

/** There is no such table any more; or its rows have another key by now, by which nothing can be looked up that the log names. */
export type NothingFound = 'gone' | 'rekeyed';

/** Bytes of the rows of one question, about; and their number. */
const BATCH_BYTES = 4 << 20;
const BATCH_ROWS = 256;
/** For the locks of one try: a stop is noticed between tries. */
const LOCK_WAIT_SECONDS = 1;
const WARN_MS = 10_000;

/** What a table is, with what its results looked like when that was asked. */
interface Understood extends TableReading {
  readonly signature: string;
}

export class RowLookup {
  readonly #options: RowLookupOptions;
  readonly #session: LazySession;
  readonly #barrier: CommitBarrier;
  readonly #encoder = new RowEncoder();
  readonly #understood = new WeakMap<KnownTable, Understood>();
  readonly #untold = new WeakMap<KnownTable, ReadonlySet<string>>();
  readonly #batchRows = new WeakMap<KnownTable, number>();

  constructor(options: RowLookupOptions) {
    this.#options = options;
    this.#session = new LazySession(() => openExactSession(options));
    const { clock } = options.source;
    this.#barrier = new CommitBarrier({ session: this.#session, clock, signal: options.signal });
  }

  /** How many rows to ask for at once, so that the answer stays small. */
  batchRows(table: KnownTable): number {
    return this.#batchRows.get(table) ?? 1;
  }

  async find(
    table: KnownTable,
    wanted: readonly WantedRow[],
    transaction: LoggedTransaction,
  ): Promise<FoundRows | NothingFound> {
    const isVisible = await this.#barrier.passed(transaction);
    return await this.#patiently(table, async (session) => {
      for (;;) {
        const known = this.#understood.get(table) ?? (await understand(session, table, this.#options.source));
        if (known === 'gone' || known === 'rekeyed') return known;
        this.#understood.set(table, known);
        const rows = isVisible
          ? await this.#select(session, table, known, wanted, '')
          : await this.#selectLocked(session, table, known, wanted);
        if (rows !== undefined) return { plan: known.plan, rows };
        this.#understood.delete(table);
        this.#options.signal.throwIfAborted();
      }
    });
  }

  /**
   * Columns of which an image before an update does not tell what the row holds after it, when the image after lacks them: MariaDB leaves
   * generated columns out though they changed (10.11 virtual ones with MINIMAL; 11.8 all of them, of updates and deletions, whatever the image).
   */
  async untoldColumns(table: KnownTable): Promise<ReadonlySet<string>> {
    let columns = this.#untold.get(table);
    if (columns === undefined) {
      columns = new Set(await this.#session.use((session) => readGeneratedColumns(session, table.ref)));
      this.#untold.set(table, columns);
    }
    return columns;
  }

  close(): void {
    this.#session.close();
  }

  /** First those that nobody holds, then the others one by one. */
  async #selectLocked(
    session: ServerSession,
    table: KnownTable,
    known: Understood,
    wanted: readonly WantedRow[],
  ): Promise<ReadonlyMap<string, RowValues> | undefined> {
    const clause = lockingClause(session.facts);
    const all = new Map<string, RowValues>();
    if (wanted.length > 1 && clause.skipping !== undefined) {
      const free = await this.#select(session, table, known, wanted, clause.skipping);
      if (free === undefined) return undefined;
      for (const [name, values] of free) all.set(name, values);
    }
    for (const row of wanted) {
      if (all.has(nameText(row.name))) continue;
      const one = await this.#select(session, table, known, [row], clause.waiting);
      if (one === undefined) return undefined;
      for (const [name, values] of one) all.set(name, values);
    }
    return all;
  }

  /** undefined when the table is not what it was. */
  async #select(
    session: ServerSession,
    table: KnownTable,
    known: Understood,
    wanted: readonly WantedRow[],
    locking: string,
  ): Promise<ReadonlyMap<string, RowValues> | undefined> {
    let answer: RawRows;
    try {
      answer = await session.raw(`${selection(session, known)} WHERE ${condition(table, wanted)}${locking}`);
    } catch (error) {
      if (CHANGED.has(serverErrorNumber(error))) return undefined;
      throw error;
    }
    if (answer.signature !== known.signature) return undefined;
    const convert = known.shapes.map(textValue);
    const rows = new Map<string, RowValues>();
    let bytes = 0;
    for (const raw of answer.rows) {
      bytes += raw.reduce((sum, value) => sum + (value?.length ?? 0), 0);
      const values = raw.map((value, i): ColumnValue => {
        return value === null ? null : (convert[i] as (bytes: Buffer) => ColumnValue)(value);
      });
      rows.set(nameText(this.#encoder.keyOf(known.plan, values)), values);
    }
    this.#learnSize(table, answer.rows, bytes);
    return rows;
  }

  #learnSize(table: KnownTable, rows: readonly RawRow[], bytes: number): void {
    if (rows.length === 0) return;
    const fitting = Math.floor(BATCH_BYTES / Math.max(1, bytes / rows.length));
    this.#batchRows.set(table, Math.max(1, Math.min(BATCH_ROWS, fitting, this.batchRows(table) * 8)));
  }

  /** Again and again while others hold locks. */
  async #patiently<T>(table: KnownTable, question: (session: ServerSession) => Promise<T>): Promise<T> {
    const { source, signal } = this.#options;
    let warnAt = source.clock.monotonic() + WARN_MS;
    for (;;) {
      const answer = await this.#session.use(async (session) => {
        try {
          return { done: true, value: await question(session) } as const;
        } catch (error) {
          if (!LOCKED.has(serverErrorNumber(error))) throw error;
          return { done: false, error } as const;
        }
      });
      if (answer.done) return answer.value;
      signal.throwIfAborted();
      if (source.clock.monotonic() < warnAt) continue;
      warnAt = source.clock.monotonic() + WARN_MS;
      source.logger.warn(
        { table: formatTableRef(table.ref), cause: causeText(answer.error) },
        'reading a row again waits for a lock that somebody holds',
      );
    }
  }
}

/** The name as a key of maps. */
export function nameText(name: RowName): string {
  return `${name.partitionHash}:${Buffer.from(name.key.buffer, name.key.byteOffset, name.key.length).toString('latin1')}`;
}

const CHANGED: ReadonlySet<number> = new Set([
  SERVER_ERRORS.TABLE_DEF_CHANGED,
  SERVER_ERRORS.NO_SUCH_TABLE,
  SERVER_ERRORS.NO_SUCH_DATABASE,
  SERVER_ERRORS.BAD_FIELD,
]);
const LOCKED: ReadonlySet<number> = new Set([SERVER_ERRORS.LOCK_WAIT_TIMEOUT, SERVER_ERRORS.LOCK_DEADLOCK]);

async function openExactSession(options: RowLookupOptions): Promise<ServerSession> {
  const session = await options.openSession();
  try {
    await session.query(
      `SET SESSION time_zone = '+00:00', SESSION sql_mode = '', SESSION lock_wait_timeout = ${LOCK_WAIT_SECONDS}, SESSION innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS}`,
    );
    // a lock on a gap would hold up inserts of others
    await session.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
    return session;
  } catch (error) {
    session.close();
    throw error;
  }
}

async function readGeneratedColumns(session: ServerSession, ref: TableRef): Promise<string[]> {
  if (session.facts.flavor === 'mysql') return [];
  const rows = await session.query(
    `SELECT COLUMN_NAME AS name FROM information_schema.COLUMNS
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND IS_GENERATED = 'ALWAYS'`,
    [ref.database, ref.table],
  );
  return rows.map((row) => row['name'] ?? '');
}

function selection(session: ServerSession, reading: TableReading): string {
  // MariaDB may answer with what it has kept from before a commit
  const select = session.facts.flavor === 'mariadb' ? 'SELECT SQL_NO_CACHE' : 'SELECT';
  return `${select} ${reading.shapes.map(selectExpression).join(', ')} FROM ${quoteTable(reading.table)}`;
}

function condition(table: KnownTable, wanted: readonly WantedRow[]): string {
  const names = table.plan.schema.columns.filter((column) => column.keyPosition > 0).map(({ name }) => quoteName(name));
  const distinct = new Map(wanted.map((row) => [nameText(row.name), row.literals]));
  const [name] = names;
  if (names.length === 1) return `${name} IN (${[...distinct.values()].flat().join(', ')})`;
  return [...distinct.values()]
    .map((literals) => `(${literals.map((literal, i) => `${names[i]} = ${literal}`).join(' AND ')})`)
    .join(' OR ');
}

/**
 * The table's columns, and what a result with them looks like, asked while an open transaction keeps DDL off.
 */
async function understand(
  session: ServerSession,
  table: KnownTable,
  source: RowLookupOptions['source'],
): Promise<Understood | NothingFound> {
  for (;;) {
    const reading = await describeTable(session, table.ref, source);
    if (reading === undefined) return 'gone';
    await session.query('START TRANSACTION');
    try {
      const { signature } = await session.raw(`${selection(session, reading)} LIMIT 0`);
      const now = await describeTable(session, table.ref, source);
      if (now?.plan.schema.fingerprint !== reading.plan.schema.fingerprint) continue;
      return sameKeyColumns(table.plan.schema, reading.plan.schema) ? { ...reading, signature } : 'rekeyed';
    } catch (error) {
      if (!CHANGED.has(serverErrorNumber(error))) throw error;
    } finally {
      await session.query('COMMIT');
    }
  }
}
