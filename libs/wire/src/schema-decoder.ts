/** Reads table schemas, each once: a schema whose fingerprint is known is skipped. */
import type { Column, KeyRule, TableSchema } from '@mysync/core';
import type { ByteReader } from './byte-reader.ts';
import { fingerprintOf, schemaFault } from './table-schema.ts';
import { COLUMN, KEY_RULES, KIND_TAGS, KINDS, SCHEMA } from './wire-format.ts';

/** Schemas kept; the oldest goes first. */
const MOST_KEPT = 1024;

export interface KnownSchema {
  readonly low: number;
  readonly high: number;
  readonly schema: TableSchema;
  /** The tag that a value of each column has. */
  readonly tags: Uint8Array;
}

export class SchemaDecoder {
  #last: KnownSchema | null = null;
  /** By the fingerprint's low half; a second schema with the same half takes the place of the first. */
  readonly #known = new Map<number, KnownSchema>();

  /** Schemas kept now. */
  get size(): number {
    return this.#known.size;
  }

  /** Reads the sub-message from the reader's position to `end`. */
  decode(reader: ByteReader, end: number): KnownSchema {
    const from = reader.position;
    if (end - from < 9 || reader.buffer[from] !== SCHEMA.fingerprint) {
      throw reader.fault('the table schema does not begin with its fingerprint');
    }
    const low = reader.buffer.readInt32LE(from + 1);
    const high = reader.buffer.readInt32LE(from + 5);
    reader.position = end;
    const last = this.#last;
    if (last !== null && last.low === low && last.high === high) return last;
    let known = this.#known.get(low);
    if (known === undefined || known.high !== high) {
      reader.position = from + 9;
      known = readSchema(reader, end, low, high);
      this.#known.set(low, known);
      if (this.#known.size > MOST_KEPT) {
        const oldest = this.#known.keys().next();
        if (oldest.done !== true) this.#known.delete(oldest.value);
      }
    }
    this.#last = known;
    return known;
  }
}

function readSchema(reader: ByteReader, end: number, low: number, high: number): KnownSchema {
  const from = reader.position;
  const fingerprint = half(high) + half(low);
  if (fingerprintOf(reader.buffer.subarray(from, end)) !== fingerprint) {
    throw reader.fault('the table schema does not have the fingerprint that stands before it', from);
  }
  let database = '';
  let table = '';
  let keyRule: KeyRule | undefined;
  const columns: Column[] = [];
  while (reader.position < end) {
    const tag = reader.varint(end);
    if (tag === SCHEMA.database) database = reader.text(end);
    else if (tag === SCHEMA.table) table = reader.text(end);
    else if (tag === SCHEMA.columns) columns.push(readColumn(reader, reader.until(end)));
    else if (tag === SCHEMA.keyRule) keyRule = KEY_RULES[reader.varint(end)];
    else reader.skip(tag, end);
  }
  if (keyRule === undefined) throw reader.fault('the table schema has an unknown key rule', from);
  const schema: TableSchema = { database, table, columns, keyRule, fingerprint };
  const fault = schemaFault(schema);
  if (fault !== null) throw reader.fault(`the table schema contradicts itself: ${fault}`, from);
  const tags = Uint8Array.from(columns, (column) => KIND_TAGS[KINDS.indexOf(column.kind)] as number);
  return { low, high, schema, tags };
}

function readColumn(reader: ByteReader, end: number): Column {
  const from = reader.position;
  const column = {
    name: '',
    type: '',
    kind: KINDS[0],
    keyPosition: 0,
    nullable: false,
    charset: '',
    members: [] as string[],
  };
  while (reader.position < end) {
    const tag = reader.varint(end);
    if (tag === COLUMN.name) column.name = reader.text(end);
    else if (tag === COLUMN.type) column.type = reader.text(end);
    else if (tag === COLUMN.kind) column.kind = KINDS[reader.varint(end)];
    else if (tag === COLUMN.keyPosition) column.keyPosition = reader.varint(end);
    else if (tag === COLUMN.nullable) column.nullable = reader.varint(end) !== 0;
    else if (tag === COLUMN.charset) column.charset = reader.text(end);
    else if (tag === COLUMN.members) column.members.push(reader.text(end));
    else reader.skip(tag, end);
  }
  const { kind } = column;
  if (kind === undefined) throw reader.fault('a column has an unknown kind', from);
  return { ...column, kind };
}

function half(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0');
}
