/** What the parts of the conformance suite share: tables, changes, batches. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Column, ColumnKind, ColumnValue, RowKey, TableRef, TableSchema } from '@mysync/core';
import type { ApplyOutcome, DeleteChange, PutChange, Sink, SinkChange, StreamRef } from './port.ts';

/** A store's document as an independent client reads it: column name → value. */
export type StoredDocument = Readonly<Record<string, unknown>>;

/** One private part of a store (a key prefix, an index prefix), with the sinks on it. */
export interface SinkBench {
  /** Opens a sink; a test opens several at a time on the same data. The suite closes them. */
  createSink(): Promise<Sink>;
  /** Every document of the table, read by a client that is not the sink's. Order does not matter. */
  readAll(table: TableRef): Promise<readonly StoredDocument[]>;
  /** How `readAll` shows a value of a column; undefined when it does not show it at all. */
  show(value: Exclude<ColumnValue, undefined>, column: Column): unknown;
  /** Makes the store refuse puts of the `items` row with this id for good (a foreign value at its key, a mapping …). */
  spoil(schema: TableSchema, id: number): Promise<void>;
  /** Takes the reason away again. */
  mend(schema: TableSchema, id: number): Promise<void>;
  /** A sink whose store cannot be reached; its calls must settle within a few seconds. */
  createUnreachableSink(): Promise<Sink>;
  /** Frees what the bench holds. */
  close(): Promise<void>;
}

export interface SinkConformanceOptions {
  readonly name: string;
  /** Called for each test. The tables of a test have a random database name. */
  open(): Promise<SinkBench>;
  /** False when the sink refuses rows with absent columns instead of merging them. Default true. */
  readonly mergesPartialRows?: boolean;
}

/** A running test: the bench, and sinks that are closed at its end. */
export class Trial {
  readonly bench: SinkBench;
  readonly database = `conf_${randomBytes(4).toString('hex')}`;
  readonly stream: StreamRef = { topic: `topic_${randomBytes(4).toString('hex')}`, partition: 0 };
  readonly #sinks: Sink[] = [];

  constructor(bench: SinkBench) {
    this.bench = bench;
  }

  async sink(...schemas: readonly TableSchema[]): Promise<Sink> {
    const sink = await this.bench.createSink();
    this.#sinks.push(sink);
    for (const schema of schemas) await sink.prepare(schema);
    return sink;
  }

  async unreachableSink(): Promise<Sink> {
    const sink = await this.bench.createUnreachableSink();
    this.#sinks.push(sink);
    return sink;
  }

  /** Asserts that the store holds exactly these rows of the table. */
  async assertRows(schema: TableSchema, rows: readonly (readonly ColumnValue[])[]): Promise<void> {
    const actual = await this.bench.readAll(schema);
    assert.deepEqual(sorted(actual), sorted(rows.map((row) => this.#shown(schema, row))));
  }

  #shown(schema: TableSchema, row: readonly ColumnValue[]): StoredDocument {
    const document: Record<string, unknown> = {};
    schema.columns.forEach((column, index) => {
      const value = row[index];
      const shown = value === undefined ? undefined : this.bench.show(value, column);
      if (shown !== undefined) document[column.name] = shown;
    });
    return document;
  }

  async close(): Promise<void> {
    for (const sink of this.#sinks) await sink.close();
    await this.bench.close();
  }
}

function sorted(documents: readonly StoredDocument[]): readonly unknown[] {
  const text = (document: StoredDocument): string =>
    JSON.stringify(
      Object.entries(document).sort(([a], [b]) => (a < b ? -1 : 1)),
      (_, value) => (typeof value === 'bigint' ? `${value}n` : value),
    );
  return documents
    .map((document) => [text(document), { ...document }] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

function column(name: string, type: string, kind: ColumnKind, keyPosition = 0): Column {
  const charset = kind === 'text' ? 'utf8mb4' : kind === 'bytes' ? 'binary' : '';
  return { name, type, kind, keyPosition, nullable: keyPosition === 0, charset, members: [] };
}

const ITEM_COLUMNS: readonly Column[] = [
  column('id', 'bigint', 'int', 1),
  column('name', 'varchar(200)', 'text'),
  column('amount', 'bigint unsigned', 'uint'),
  column('price', 'decimal(30,10)', 'text'),
  column('ratio', 'double', 'double'),
  column('data', 'longblob', 'bytes'),
  column('note', 'longtext', 'text'),
];

function schemaOf(database: string, table: string, columns: readonly Column[]): TableSchema {
  const fingerprint = Buffer.from(`${table}${columns.length}`.padEnd(8)).toString('hex').slice(0, 16);
  return { database, table, columns, keyRule: 'primary', fingerprint };
}

/** `items`: one-column key, a column of every kind. */
export function items(database: string, table = 'items'): TableSchema {
  return schemaOf(database, table, ITEM_COLUMNS);
}

/** `items` after an ALTER TABLE … ADD COLUMN extra INT. */
export function itemsWithExtra(database: string): TableSchema {
  return schemaOf(database, 'items', [...ITEM_COLUMNS, column('extra', 'int', 'int')]);
}

/** `pairs`: key of two texts. */
export function pairs(database: string): TableSchema {
  const columns = [
    column('a', 'varchar(40)', 'text', 1),
    column('b', 'varchar(40)', 'text', 2),
    column('v', 'int', 'int'),
  ];
  return schemaOf(database, 'pairs', columns);
}

export function itemRow(id: number | bigint, name: string | null = `name ${id}`): ColumnValue[] {
  return [
    id,
    name,
    18446744073709551615n,
    '12345678901234567890.0123456789',
    0.1,
    new Uint8Array([0, 1, 255]),
    'a note',
  ];
}

function keyOf(schema: TableSchema, row: readonly ColumnValue[]): RowKey {
  const parts = schema.columns
    .map((each, index) => ({ name: each.name, position: each.keyPosition, value: row[index] }))
    .filter((part) => part.position > 0)
    .sort((a, b) => a.position - b.position);
  const { database, table } = schema;
  return { database, table, columns: parts.map((part) => part.name), values: parts.map((part) => part.value) };
}

export function put(schema: TableSchema, row: readonly ColumnValue[], version: number | bigint): PutChange {
  return { kind: 'put', schema, key: keyOf(schema, row), row, version: BigInt(version), offset: Number(version) };
}

export function del(schema: TableSchema, row: readonly ColumnValue[], version: number | bigint): DeleteChange {
  return { kind: 'delete', schema, key: keyOf(schema, row), row, version: BigInt(version), offset: Number(version) };
}

/** A writer as the suite needs it: knows the marker and moves it with each batch. */
export class TrialWriter {
  readonly sink: Sink;
  readonly stream: StreamRef;
  marker: string | null;
  #moves = 0;
  readonly #name = randomBytes(4).toString('hex');

  private constructor(sink: Sink, stream: StreamRef, marker: string | null) {
    this.sink = sink;
    this.stream = stream;
    this.marker = marker;
  }

  static async start(sink: Sink, stream: StreamRef): Promise<TrialWriter> {
    return new TrialWriter(sink, stream, await sink.readMarker(stream));
  }

  /** Applies a batch; on success the marker is the new one. */
  async apply(...changes: readonly SinkChange[]): Promise<ApplyOutcome> {
    const next = JSON.stringify({ by: this.#name, moves: ++this.#moves, text: `"{}:\n日本` });
    const batch = { stream: this.stream, changes, marker: { expected: this.marker, next } };
    const outcome = await this.sink.apply(batch, new AbortController().signal);
    if (outcome.status === 'applied') this.marker = next;
    return outcome;
  }

  /** Applies a batch that must succeed with this many refused as stale. */
  async applied(stale: number, ...changes: readonly SinkChange[]): Promise<void> {
    assert.deepEqual(await this.apply(...changes), { status: 'applied', stale });
  }
}
