/** For tests: a database of one's own on a shared server, and the stream and the snapshot as lists. */
import {
  type ColumnValue,
  compareBinlogPositions,
  type SourcePosition,
  type TableRef,
  type TableSchema,
} from '@mysync/core';
import { randomName, sharedServer, type TestServer } from '@mysync/harness';
import { type BaseMessage, MessageDecoder, type RowMessage } from '@mysync/wire';
import { type Connection, createConnection } from 'mysql2/promise';
import type { LogEvent } from './binlog/log-event.ts';
import type { MysqlSourceOptions } from './options.ts';
import type { BinlogSource, SourceItem } from './port.ts';
import { createMysqlSource } from './source.ts';
import { holdToReference } from './transcribe/held-to-reference.fixture.ts';

holdToReference();

export const FLAVORS = ['mariadb', 'mysql'] as const;
export type Flavor = (typeof FLAVORS)[number];

export class TestDatabase {
  readonly server: TestServer;
  readonly name: string;
  /** `mysync`, an administrator, in the database; statements may be several at once; results are text. */
  readonly sql: Connection;

  private constructor(server: TestServer, name: string, sql: Connection) {
    this.server = server;
    this.name = name;
    this.sql = sql;
  }

  static async create(flavor: Flavor, server?: TestServer): Promise<TestDatabase> {
    const used = server ?? (await sharedServer(flavor));
    const name = randomName('src');
    const sql = await connect(used);
    await sql.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
    await sql.query(`USE ${name}`);
    return new TestDatabase(used, name, sql);
  }

  get port(): number {
    return Number(this.server.get('MYSQL_PORT'));
  }

  async run(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.sql.query(statement);
  }

  /** Rows as arrays of text. */
  async select(sql: string): Promise<(string | null)[][]> {
    const [rows] = await this.sql.query({ sql, rowsAsArray: true });
    return rows as unknown as (string | null)[][];
  }

  source(more: Partial<MysqlSourceOptions> = {}): BinlogSource {
    return createMysqlSource(this.sourceOptions(more));
  }

  sourceOptions(more: Partial<MysqlSourceOptions> = {}): MysqlSourceOptions {
    return {
      name: 'test',
      hosts: [{ host: '127.0.0.1', port: this.port }],
      user: 'mysync',
      password: 'mysync',
      captures: (ref) => ref.database === this.name,
      tableRule: () => ({ noKey: 'row-hash' }),
      heartbeatMs: 1000,
      ...more,
    };
  }

  async close(): Promise<void> {
    await this.sql.query(`DROP DATABASE IF EXISTS ${this.name}`);
    await this.sql.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

export async function connect(server: TestServer): Promise<Connection> {
  return await createConnection({
    host: '127.0.0.1',
    port: Number(server.get('MYSQL_PORT')),
    user: 'mysync',
    password: 'mysync',
    multipleStatements: true,
    charset: 'utf8mb4_general_ci',
    typeCast: (field) => field.string('utf8'),
  });
}

const decoder = new MessageDecoder();

export interface DecodedRow {
  readonly operation: string;
  readonly table: string;
  readonly before: Readonly<Record<string, ColumnValue>> | null;
  readonly after: Readonly<Record<string, ColumnValue>> | null;
  readonly schema: TableSchema;
  readonly ordinal: number;
  readonly last: boolean;
  readonly key: string;
}

function decodeRow(item: Extract<SourceItem, { kind: 'row' }>): DecodedRow {
  const message: BaseMessage = decoder.decode(item.payload);
  const { schema, before, after } = message as RowMessage;
  const named = (values: readonly ColumnValue[] | null): Record<string, ColumnValue> | null =>
    values === null ? null : Object.fromEntries(schema.columns.map((column, i) => [column.name, values[i]]));
  return {
    operation: message.operation,
    table: schema.table,
    before: named(before),
    after: named(after),
    schema,
    ordinal: item.ordinal,
    last: message.lastInTransaction,
    key: Buffer.from(item.key).toString('hex'),
  };
}

/** Everything from a position up to where the log ends now. */
export async function readItems(
  source: BinlogSource,
  from: SourcePosition,
  to?: SourcePosition,
  knownTables: readonly TableRef[] = [],
): Promise<SourceItem[]> {
  const target = to ?? (await source.currentPosition());
  const stop = new AbortController();
  const items: SourceItem[] = [];
  for await (const batch of source.stream({ from, signal: stop.signal, knownTables })) {
    for (const item of batch) {
      items.push(item);
      if ((item.kind === 'commit' || item.kind === 'keepalive') && compareBinlogPositions(item.position, target) >= 0) {
        stop.abort();
      }
    }
  }
  return items;
}

/** What items say, in a form to be compared; keepalives come as they may, since others write on the same server. */
export function saidBy(items: readonly SourceItem[]): unknown[] {
  return items
    .filter((item) => item.kind !== 'keepalive')
    .map((item) => {
      if (item.kind !== 'row') return item;
      const { kind, deletes, ordinal, partitionHash, key, payload } = item;
      return { kind, deletes, ordinal, partitionHash, key: Buffer.from(key), payload: Buffer.from(payload) };
    });
}

export function rowsOf(items: readonly SourceItem[]): DecodedRow[] {
  return items.flatMap((item) => (item.kind === 'row' ? [decodeRow(item)] : []));
}

export async function readSnapshot(source: BinlogSource): Promise<{ position: SourcePosition; items: SourceItem[] }> {
  const snapshot = await source.snapshot({ onProgress: () => undefined, signal: new AbortController().signal });
  const items: SourceItem[] = [];
  for await (const batch of snapshot.items) items.push(...batch);
  await snapshot.close();
  return { position: snapshot.position, items };
}

/** The state that the items lead to: rows by key, from nothing or from a former state. */
export function replay(items: readonly SourceItem[], state = new Map<string, DecodedRow>()): Map<string, DecodedRow> {
  for (const item of items) {
    if (item.kind === 'truncate') {
      for (const [key, row] of state) if (isOf(row, item.table)) state.delete(key);
    } else if (item.kind === 'row') {
      const row = decodeRow(item);
      if (item.deletes) state.delete(row.key);
      else state.set(row.key, row);
    }
  }
  return state;
}

function isOf(row: DecodedRow, table: TableRef): boolean {
  return row.table === table.table && row.schema.database === table.database;
}

export async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}

/** A connection's event is valid until the next one is asked for. */
export function keptEvent(event: LogEvent): LogEvent {
  const { buffer, control } = event;
  const isBare = control.kind !== 'query' || control.bytes === null;
  return {
    ...event,
    buffer: Buffer.from(buffer),
    control: isBare ? control : { ...control, bytes: Buffer.from(control.bytes) },
  };
}
