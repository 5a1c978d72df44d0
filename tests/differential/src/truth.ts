/**
 * What the server itself says is in a table: every value as its own text or hexadecimal digits, by its own casts. The comparison
 * brings what was read from the log to the same form, so that none of the decoder's work is used on this side.
 */
import type { ColumnValue, TableRef } from '@mysync/core';
import type { CatalogueColumn, CatalogueTable } from './catalogue.ts';
import type { Client } from './client.ts';
import { quoteName, quoteTable } from './sql-text.ts';

export type Show = (value: Exclude<ColumnValue, null | undefined>) => string;

interface Form {
  /** What to select, with the column's quoted name. */
  readonly ask: (name: string) => string;
  /** Our value in the form of the answer. */
  readonly show: Show;
  /** The answer in a form that has one spelling for a value; as it is when omitted. */
  readonly read?: (answer: string) => string;
}

export interface ExpectedColumn {
  readonly name: string;
  readonly type: string;
  readonly show: Show;
}

export interface ExpectedTable {
  readonly ref: TableRef;
  readonly columns: readonly ExpectedColumn[];
  /** Cells of each row; null for NULL. */
  readonly rows: readonly (readonly (string | null)[])[];
}

const plainText: Show = (value) => String(value);
const utf8Hex: Show = (value) => Buffer.from(String(value), 'utf8').toString('hex').toUpperCase();
const bytesHex: Show = (value) =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex').toUpperCase() : `not bytes: ${String(value)}`;

function number(text: string): string {
  const value = Number(text);
  return Object.is(value, -0) ? '-0' : String(value);
}

const INTEGER: Form = { ask: (name) => `CAST(${name} AS SIGNED)`, show: plainText };
const UNSIGNED: Form = { ask: (name) => `CAST(${name} AS UNSIGNED)`, show: plainText };
/** FLOAT is shown with six digits, FLOAT(M,D) and DOUBLE(M,D) with D: not what they hold. */
const REAL: Form = {
  ask: (name) => `${name} * 1e0`,
  show: (value) => (Object.is(value, -0) ? '-0' : String(value)),
  read: number,
};
const PLAIN: Form = { ask: (name) => `CAST(${name} AS CHAR)`, show: plainText };
const TEXT: Form = { ask: (name) => `HEX(CONVERT(${name} USING utf8mb4))`, show: utf8Hex };
const JSON_TEXT: Form = { ask: (name) => `HEX(CAST(${name} AS CHAR CHARACTER SET utf8mb4))`, show: utf8Hex };
const BYTES: Form = { ask: (name) => `HEX(${name})`, show: bytesHex };

function formOf({ base, unsigned, precision, scale }: CatalogueColumn): Form {
  switch (base) {
    case 'tinyint':
    case 'smallint':
    case 'mediumint':
    case 'int':
    case 'bigint':
      return unsigned ? UNSIGNED : INTEGER;
    case 'bit':
    case 'year':
      return UNSIGNED;
    case 'decimal':
      return { ask: (name) => `CAST(${name} AS DECIMAL(${precision},${scale}))`, show: plainText };
    case 'float':
    case 'double':
      return REAL;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
    case 'uuid':
    case 'inet4':
    case 'inet6':
      return PLAIN;
    case 'char':
    case 'varchar':
    case 'tinytext':
    case 'text':
    case 'mediumtext':
    case 'longtext':
    case 'enum':
    case 'set':
      return TEXT;
    case 'json':
      return JSON_TEXT;
    default:
      return BYTES;
  }
}

/** `client` is in utf8mb4, UTC, and without sql_mode. */
export async function readTruth(client: Client, table: CatalogueTable): Promise<ExpectedTable> {
  const forms = table.columns.map(formOf);
  const list = table.columns.map(({ name }, i) => (forms[i] as Form).ask(quoteName(name)));
  const rows = await client.rows(`SELECT ${list.join(', ')} FROM ${quoteTable(table.ref)}`);
  return {
    ref: table.ref,
    columns: table.columns.map(({ name, type }, i) => ({ name, type, show: (forms[i] as Form).show })),
    rows: rows.map((row) => row.map((cell, i) => (cell === null ? null : ((forms[i] as Form).read?.(cell) ?? cell)))),
  };
}
