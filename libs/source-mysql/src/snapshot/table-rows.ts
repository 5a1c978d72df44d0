/** The rows of one table, as the view sees them, encoded as `read` messages in bounded memory. */
import type { Readable } from 'node:stream';
import { type ColumnValue, formatTableRef, isMysyncError, type TableRef } from '@mysync/core';
import { compileTable, type EncodedRow, RowEncoder, type TablePlan, type TransactionBlock } from '@mysync/wire';
import { sourceErrors } from '../errors.ts';
import type { ResolvedOptions } from '../options.ts';
import type { ColumnShape } from '../schema/column-shape.ts';
import { readColumnShapes } from '../schema/info-schema.ts';
import { buildSchema, chooseKey } from '../schema/key-choice.ts';
import { readTableFacts } from '../schema/table-facts.ts';
import { quoteTable } from '../server/dialect.ts';
import { isTransient, mysqlErrorFields, SERVER_ERRORS } from '../server/mysql-error.ts';
import type { ServerSession } from '../server/session.ts';
import { selectExpression, textValue } from './text-values.ts';

const BATCH_ROWS = 512;
const BATCH_BYTES = 1 << 20;
/** Rows that mysql2 holds for us before it pauses the socket. */
const BUFFERED_ROWS = 256;

/** What a table was when it was looked at. */
export interface TableReading {
  readonly table: TableRef;
  readonly plan: TablePlan;
  readonly shapes: readonly ColumnShape[];
}

export interface TableRowsOptions {
  readonly reader: ServerSession;
  readonly control: ServerSession;
  readonly reading: TableReading;
  readonly transaction: TransactionBlock;
  readonly source: Pick<ResolvedOptions, 'tableRule'>;
  /** What follows the table's name in the SELECT; all rows when omitted. */
  readonly tail?: string;
  readonly signal: AbortSignal;
}

export async function* readTableRows(options: TableRowsOptions): AsyncGenerator<readonly EncodedRow[]> {
  const { reader, control, reading, transaction, source } = options;
  const { table, plan, shapes } = reading;
  // an instant ALTER goes unnoticed by the view itself
  const now = await understandTable(control, table, source);
  if (now.plan.schema.fingerprint !== plan.schema.fingerprint) throw changed(table, undefined);
  const columns = shapes.map(selectExpression).join(', ');
  const convert = shapes.map(textValue);
  const encoder = new RowEncoder();
  const rows = streamRows(reader, `SELECT ${columns} FROM ${quoteTable(table)}${options.tail ?? ''}`);
  const stop = (): void => {
    rows.destroy(new Error('aborted'));
  };
  options.signal.addEventListener('abort', stop, { once: true });
  let batch: EncodedRow[] = [];
  let bytes = 0;
  try {
    for await (const row of rows) {
      const after = (row as (Buffer | null)[]).map((value, i): ColumnValue => {
        return value === null ? null : (convert[i] as (bytes: Buffer) => ColumnValue)(value);
      });
      const change = { operation: 'read', eventFile: '', eventOffset: 0, ordinal: 0, before: null, after } as const;
      const encoded = encoder.encode(plan, transaction, change);
      batch.push(encoded);
      bytes += encoded.bytes;
      if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
      yield batch;
      batch = [];
      bytes = 0;
    }
  } catch (error) {
    options.signal.throwIfAborted();
    throw readError(error, table);
  } finally {
    options.signal.removeEventListener('abort', stop);
  }
  if (batch.length > 0) yield batch;
}

/** Throws SOURCE_SNAPSHOT_RESTART when the table is gone meanwhile. */
export async function understandTable(
  session: ServerSession,
  table: TableRef,
  source: Pick<ResolvedOptions, 'tableRule'>,
): Promise<TableReading> {
  const reading = await describeTable(session, table, source);
  if (reading === undefined) throw changed(table, undefined);
  return reading;
}

/** undefined when there is no such table. Throws where its rows cannot be read exactly. */
export async function describeTable(
  session: ServerSession,
  table: TableRef,
  source: Pick<ResolvedOptions, 'tableRule'>,
): Promise<TableReading | undefined> {
  const facts = await readTableFacts(session, table);
  if (facts === undefined) return undefined;
  const { shapes, unsupported } = await readColumnShapes(session, table);
  if (unsupported !== undefined) {
    throw sourceErrors.SOURCE_TYPE_UNSUPPORTED({
      message: `column ${formatTableRef(table)}.${unsupported.column} has the type ${unsupported.type}, which is not known`,
      where: { table: formatTableRef(table), column: unsupported.column },
    });
  }
  const rule = source.tableRule(table);
  const schema = buildSchema(table, shapes, chooseKey(shapes, facts.primaryKey, facts.uniqueKeys), rule);
  const plan = compileTable({ schema, ...(rule.partitionBy === undefined ? {} : { partitionBy: rule.partitionBy }) });
  return { table, plan, shapes };
}

interface StreamingConnection {
  query(options: object): { stream(options: { highWaterMark: number }): Readable };
}

/** Each row as an array of the bytes of its values. */
function streamRows(session: ServerSession, sql: string): Readable {
  const connection = (session.connection as unknown as { connection: StreamingConnection }).connection;
  return connection.query({ sql, rowsAsArray: true, typeCast: false }).stream({ highWaterMark: BUFFERED_ROWS });
}

const CHANGED: ReadonlySet<number> = new Set([
  SERVER_ERRORS.TABLE_DEF_CHANGED,
  SERVER_ERRORS.NO_SUCH_TABLE,
  SERVER_ERRORS.BAD_FIELD,
  SERVER_ERRORS.NO_SUCH_DATABASE,
  SERVER_ERRORS.TABLESPACE_DISCARDED,
]);

function readError(error: unknown, table: TableRef): unknown {
  if (isMysyncError(error)) return error;
  const fields = mysqlErrorFields(error);
  if (CHANGED.has(fields.errno)) return changed(table, error);
  const where = { table: formatTableRef(table) };
  if (fields.errno === 0 && fields.code === '') return error;
  if (isTransient(fields)) {
    return sourceErrors.SOURCE_CONNECTION_LOST({
      message: `the connection broke off while reading ${where.table}`,
      where,
      cause: error,
    });
  }
  return sourceErrors.SOURCE_QUERY_FAILED({ message: `${where.table} cannot be read`, where, cause: error });
}

function changed(table: TableRef, cause: unknown): Error {
  return sourceErrors.SOURCE_SNAPSHOT_RESTART({
    message: `table ${formatTableRef(table)} was changed by DDL after the snapshot began`,
    where: { table: formatTableRef(table) },
    ...(cause === undefined ? {} : { cause }),
  });
}
