/** Table schemas: their fingerprint and their bytes, which are the same in every message of one table version. */
import { createHash } from 'node:crypto';
import { type Column, formatTableRef, type KeyRule, type TableRef, type TableSchema } from '@mysync/core';
import { ByteWriter } from './byte-writer.ts';
import { wireErrors } from './errors.ts';
import { COLUMN, enumNumber, KEY_RULES, KINDS, MESSAGE, SCHEMA, TABLE_REF } from './wire-format.ts';

/** Bytes of the fingerprint field: its tag and eight bytes. */
const FINGERPRINT_BYTES = 9;

export interface TableSchemaOptions extends TableRef {
  readonly columns: readonly Column[];
  readonly keyRule: KeyRule;
}

/**
 * A schema with its fingerprint. Throws WIRE_SCHEMA_INVALID when the columns contradict each other or the key rule: no name or a
 * name twice, key positions that are not 1, 2, 3 …, a key rule without key columns.
 */
export function makeTableSchema(options: TableSchemaOptions): TableSchema {
  checkSchema(options);
  return {
    database: options.database,
    table: options.table,
    columns: options.columns,
    keyRule: options.keyRule,
    fingerprint: fingerprintOf(schemaBody(options)),
  };
}

/** 16 hex digits: the first 8 bytes of the SHA-256 over the schema's bytes. */
export function schemaFingerprint(options: TableSchemaOptions): string {
  return makeTableSchema(options).fingerprint;
}

export function fingerprintOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex').slice(0, 16);
}

/**
 * The schema as a field of a base message, tag and length included. Throws WIRE_SCHEMA_INVALID when the fingerprint is not
 * that of the rest.
 */
export function schemaBlock(schema: TableSchema): Uint8Array {
  checkSchema(schema);
  const body = schemaBody(schema);
  const fingerprint = fingerprintOf(body);
  if (fingerprint !== schema.fingerprint) {
    throw invalid(schema, `the fingerprint is ${schema.fingerprint}, but the columns give ${fingerprint}`);
  }
  const writer = new ByteWriter(body.length + 32);
  writer.byte(MESSAGE.schema);
  writer.varint(FINGERPRINT_BYTES + body.length);
  writer.byte(SCHEMA.fingerprint);
  writer.raw(Uint8Array.from(Buffer.from(fingerprint, 'hex')).reverse());
  writer.raw(body);
  return writer.take();
}

/** The table alone, as a field of a base message. */
export function tableRefBlock(table: TableRef): Uint8Array {
  const inner = new ByteWriter(256);
  text(inner, TABLE_REF.database, table.database, table);
  text(inner, TABLE_REF.table, table.table, table);
  const bytes = inner.take();
  const writer = new ByteWriter(bytes.length + 16);
  writer.byte(MESSAGE.table);
  writer.varint(bytes.length);
  writer.raw(bytes);
  return writer.take();
}

/** Everything of the sub-message but the fingerprint. */
function schemaBody(schema: TableSchemaOptions): Uint8Array {
  const writer = new ByteWriter(4096);
  const inner = new ByteWriter(1024);
  text(writer, SCHEMA.database, schema.database, schema);
  text(writer, SCHEMA.table, schema.table, schema);
  for (const column of schema.columns) {
    const bytes = columnBytes(inner, column, schema);
    writer.byte(SCHEMA.columns);
    writer.varint(bytes.length);
    writer.raw(bytes);
  }
  number(writer, SCHEMA.keyRule, enumNumber(KEY_RULES, schema.keyRule));
  return writer.take();
}

function columnBytes(writer: ByteWriter, column: Column, table: TableRef): Uint8Array {
  text(writer, COLUMN.name, column.name, table);
  text(writer, COLUMN.type, column.type, table);
  number(writer, COLUMN.kind, enumNumber(KINDS, column.kind));
  number(writer, COLUMN.keyPosition, column.keyPosition);
  number(writer, COLUMN.nullable, column.nullable ? 1 : 0);
  text(writer, COLUMN.charset, column.charset, table);
  // An empty member is one too: repeated fields have no default.
  for (const member of column.members) field(writer, COLUMN.members, member, table);
  return writer.take();
}

/** Like every proto3 encoder, writes no empty text and no 0. */
function text(writer: ByteWriter, tag: number, value: string, table: TableRef): void {
  if (value !== '') field(writer, tag, value, table);
}

function field(writer: ByteWriter, tag: number, value: string, table: TableRef): void {
  writer.byte(tag);
  if (!writer.lengthAndText(value)) throw invalid(table, `'${value}' is not well-formed Unicode`);
}

function number(writer: ByteWriter, tag: number, value: number): void {
  if (value === 0) return;
  writer.byte(tag);
  writer.varint(value);
}

function checkSchema(schema: TableSchemaOptions): void {
  const fault = schemaFault(schema);
  if (fault !== null) throw invalid(schema, fault);
}

/** What contradicts itself in a schema; null when nothing does. */
export function schemaFault(schema: TableSchemaOptions): string | null {
  const names = new Set<string>();
  const positions: number[] = [];
  for (const column of schema.columns) {
    if (column.name === '') return 'a column has no name';
    if (names.has(column.name)) return `two columns are named '${column.name}'`;
    names.add(column.name);
    if (column.keyPosition !== 0) positions.push(column.keyPosition);
    if (!KINDS.includes(column.kind)) return `column '${column.name}' has the kind '${column.kind}'`;
  }
  if (names.size === 0) return 'it has no columns';
  if (!KEY_RULES.includes(schema.keyRule)) return `'${schema.keyRule}' is no key rule`;
  positions.sort((a, b) => a - b);
  if (positions.some((position, index) => position !== index + 1)) {
    return `key positions are ${positions.join(', ')} and not 1, 2, 3 and so on`;
  }
  if (schema.keyRule === 'row-hash' ? positions.length > 0 : positions.length === 0) {
    return `the key rule is '${schema.keyRule}', but ${positions.length} columns have a key position`;
  }
  return null;
}

function invalid(table: TableRef, message: string): Error {
  return wireErrors.WIRE_SCHEMA_INVALID({ message, where: { table: formatTableRef(table) } });
}
