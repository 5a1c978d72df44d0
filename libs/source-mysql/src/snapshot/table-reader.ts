/**
 * Rows of one table as they are now, as `read` messages: for comparing and mending, beside the stream and its snapshot.
 *
 * 1. Chunks in key order, each a statement of its own: no view is held open, no lock is kept, memory is bounded. The server compares the
 *    borders, by the collation of the columns. Rows that come or go meanwhile may be in it or not; every row that stays is, once.
 * 2. Keys that cannot be cut (ENUM and SET are ordered by another value than the one that they are compared by; tables named by the hash of
 *    their rows) are read in one statement.
 * 3. Rows by key wait for whoever changes them: what is read is not older than any position told before, although the log is told of a
 *    transaction before the engines commit it.
 */
import { NO_CHANGE, type RowKey, type TableRef, type TableSchema } from '@mysync/core';
import { decodeKey, type EncodedRow, encodeTransaction, type TransactionBlock } from '@mysync/wire';
import type { ResolvedOptions } from '../options.ts';
import type { SourceRow, TableReader } from '../port.ts';
import { keyLiteral } from '../reread/key-literal.ts';
import type { ColumnShape } from '../schema/column-shape.ts';
import { quoteName } from '../server/dialect.ts';
import { READING_SESSION } from '../server/reading-session.ts';
import type { ServerSession } from '../server/session.ts';
import { estimateRows } from './estimate.ts';
import { readTableRows, type TableReading, understandTable } from './table-rows.ts';

export interface TableReaderOptions {
  readonly source: ResolvedOptions;
  readonly session: ServerSession;
  readonly table: TableRef;
  readonly chunkRows: number;
  readonly signal: AbortSignal;
}

/** Keys in one statement. */
const KEYS_AT_ONCE = 200;

export async function openTableReader(options: TableReaderOptions): Promise<TableReader> {
  const { session, table, source } = options;
  await session.query(READING_SESSION);
  // a lock on a gap would hold up inserts of others
  await session.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  const reading = await understandTable(session, table, source);
  return new SessionTableReader({ ...options, reading, estimatedRows: await estimateRows(session, table) });
}

class SessionTableReader implements TableReader {
  readonly #options: TableReaderOptions & { readonly reading: TableReading };
  readonly #transaction: TransactionBlock;
  readonly #keyShapes: readonly ColumnShape[];
  readonly estimatedRows: number;

  constructor(options: TableReaderOptions & { readonly reading: TableReading; readonly estimatedRows: number }) {
    this.#options = options;
    this.estimatedRows = options.estimatedRows;
    const { source, session, reading } = options;
    this.#transaction = encodeTransaction({
      source: source.name,
      serverUuid: session.facts.uuid,
      id: NO_CHANGE,
      commitTimeMicros: source.clock.now() * 1000,
    });
    const { columns } = reading.plan.schema;
    this.#keyShapes = columns
      .map((column, i) => ({ position: column.keyPosition, shape: reading.shapes[i] as ColumnShape }))
      .filter(({ position }) => position > 0)
      .sort((a, b) => a.position - b.position)
      .map(({ shape }) => shape);
  }

  get table(): TableRef {
    return this.#options.table;
  }

  get schema(): TableSchema {
    return this.#options.reading.plan.schema;
  }

  get isCut(): boolean {
    return this.#keyShapes.length > 0 && this.#keyShapes.every(isOrderedByValue);
  }

  async *chunks(behind?: RowKey): AsyncGenerator<readonly SourceRow[]> {
    if (!this.isCut) {
      yield* this.#select('');
      return;
    }
    const order = this.#keyShapes.map(({ name }) => quoteName(name)).join(', ');
    const { chunkRows } = this.#options;
    for (let after = behind === undefined ? '' : this.#whereBehind(behind); ; ) {
      const rows: EncodedRow[] = [];
      for await (const part of this.#select(`${after} ORDER BY ${order} LIMIT ${chunkRows}`)) rows.push(...part);
      if (rows.length > 0) yield rows;
      if (rows.length < chunkRows) return;
      after = this.#whereBehind(keyOf(rows[rows.length - 1] as EncodedRow));
    }
  }

  async rows(keys: readonly RowKey[]): Promise<readonly SourceRow[]> {
    const found: EncodedRow[] = [];
    if (this.#keyShapes.length === 0) {
      const wanted = new Set(keys.map(hashOf));
      for await (const part of this.#select('')) found.push(...part.filter((row) => wanted.has(hashOf(keyOf(row)))));
      return found;
    }
    for (let from = 0; from < keys.length; from += KEYS_AT_ONCE) {
      const condition = keys.slice(from, from + KEYS_AT_ONCE).map((key) => `(${this.#equals(key)})`);
      const select = this.#select(` WHERE ${condition.join(' OR ')} LOCK IN SHARE MODE`);
      for await (const part of select) found.push(...part);
    }
    return found;
  }

  close(): Promise<void> {
    this.#options.session.close();
    return Promise.resolve();
  }

  #select(tail: string): AsyncGenerator<readonly EncodedRow[]> {
    const { session, reading, source, signal } = this.#options;
    return readTableRows({
      reader: session,
      control: session,
      reading,
      transaction: this.#transaction,
      source,
      tail,
      signal,
    });
  }

  #whereBehind(key: RowKey): string {
    return ` WHERE ${this.#behind(key)}`;
  }

  /** (a, b) behind (x, y), in a form that the servers answer from the key. */
  #behind(key: RowKey): string {
    const terms = this.#terms(key);
    const cases = terms.map((term, last) =>
      [...terms.slice(0, last).map(equal), `${term.name} > ${term.literal}`].join(' AND '),
    );
    const [first] = terms;
    return first === undefined || terms.length === 1
      ? (cases[0] ?? 'TRUE')
      : `${first.name} >= ${first.literal} AND (${cases.map((each) => `(${each})`).join(' OR ')})`;
  }

  #equals(key: RowKey): string {
    return this.#terms(key).map(equal).join(' AND ');
  }

  #terms(key: RowKey): readonly Term[] {
    return this.#keyShapes.map((shape, i) => ({
      name: quoteName(shape.name),
      literal: keyLiteral(shape, key.values[i]),
    }));
  }
}

interface Term {
  readonly name: string;
  readonly literal: string;
}

function equal({ name, literal }: Term): string {
  return `${name} = ${literal}`;
}

function isOrderedByValue({ base }: ColumnShape): boolean {
  return base !== 'enum' && base !== 'set';
}

function keyOf(row: EncodedRow): RowKey {
  const decoded = decodeKey(row.key);
  if (decoded.kind !== 'row') throw new TypeError('the key of a row is no row key');
  return decoded.row;
}

function hashOf(key: RowKey): string {
  return key.values.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : '')).join();
}
