/** Tables, columns and values as every room speaks of them. */

export interface TableRef {
  readonly database: string;
  readonly table: string;
}

/** For messages and logs. Not reversible when a name holds a dot: never use it as a key. */
export function formatTableRef(ref: TableRef): string {
  return `${ref.database}.${ref.table}`;
}

/** A key for maps: reversible, since no MySQL name holds a NUL. */
export function tableRefKey(ref: TableRef): string {
  return `${ref.database}\0${ref.table}`;
}

/**
 * How a value of a column travels and which JavaScript values stand for it:
 * `int`/`uint` a number when safe, else a bigint · `float`/`double` a number · `text` a string (also DECIMAL, all dates and
 * times, ENUM, SET, JSON: exact text as the server prints it; TIMESTAMP in UTC) · `bytes` a Uint8Array
 * (BINARY, BLOB, GEOMETRY as SRID and WKB, VECTOR). BIT and YEAR are `uint`. NULL is null, a column that is
 * absent from the row image is undefined.
 */
export type ColumnKind = 'int' | 'uint' | 'float' | 'double' | 'text' | 'bytes';

export type ColumnValue = number | bigint | string | Uint8Array | null | undefined;

export interface Column {
  readonly name: string;
  /** As MySQL spells it, for example `bigint unsigned`, `decimal(10,2)`, `enum('a','b')`. */
  readonly type: string;
  readonly kind: ColumnKind;
  /** Place in the key, from 1; 0 when the column is no part of it. */
  readonly keyPosition: number;
  readonly nullable: boolean;
  /** The column's charset for text, `binary` for bytes, '' for the rest. */
  readonly charset: string;
  /** Members of an ENUM or SET, in order; empty for the rest. */
  readonly members: readonly string[];
}

/** How rows of a table are named: by primary key, by a NOT NULL unique key, or by the hash of the whole row. */
export type KeyRule = 'primary' | 'unique' | 'row-hash';

/** One version of a table: what its rows look like until the next DDL. */
export interface TableSchema extends TableRef {
  readonly columns: readonly Column[];
  readonly keyRule: KeyRule;
  /** 16 hex digits over all of the above: the same for equal schemas, on every machine. */
  readonly fingerprint: string;
}

/** The name of a row: what a record's key says. Decoded from the key's bytes alone. */
export interface RowKey extends TableRef {
  readonly columns: readonly string[];
  readonly values: readonly ColumnValue[];
}
