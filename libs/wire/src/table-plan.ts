/** What is computed once per table version, so that a row costs only its values. */
import { type ColumnValue, formatTableRef, type TableSchema } from '@mysync/core';
import { ByteWriter } from './byte-writer.ts';
import { wireErrors } from './errors.ts';
import { KEY_KINDS, KEY_VERSION } from './key-format.ts';
import { HASH_SEED, hashBytes } from './partition.ts';
import { schemaBlock } from './table-schema.ts';
import { enumNumber, KINDS } from './wire-format.ts';

/** Made by `compileTable`; read by what encodes rows: here, and where a source does it from bytes. */
export interface TablePlan {
  readonly schema: TableSchema;
  /** The schema as a field of a message. */
  readonly block: Uint8Array;
  /** Number of the kind of each column. */
  readonly kinds: Uint8Array;
  /**
   * Columns that name a row's record: those of the key in key order, then those of `partitionBy` that are not among them; empty when the key
   * is the hash of the row.
   */
  readonly keyColumns: readonly number[];
  /** Names of these columns with their lengths, as they stand in a key. */
  readonly keyNames: readonly Uint8Array[];
  /** What every key of the table begins with. */
  readonly keyPrefix: Uint8Array;
  /** Columns whose values choose the partition; null: the key's. */
  readonly partitionColumns: readonly number[] | null;
  /** State of the partition hash after database and table. */
  readonly hashSeed: number;
}

export interface CompileOptions {
  readonly schema: TableSchema;
  /** Columns whose values choose the partition in place of the key's, in this order. */
  readonly partitionBy?: readonly string[];
}

/** Throws WIRE_SCHEMA_INVALID for a schema that does not hold together, and for a `partitionBy` column it lacks. */
export function compileTable(options: CompileOptions): TablePlan {
  const { schema } = options;
  const partitionedBy = partitionColumns(schema, options.partitionBy);
  const keyed = recordColumns(schema, partitionedBy);
  const block = schemaBlock(schema);
  const writer = new ByteWriter(1024);
  writer.lengthAndText(schema.database);
  writer.lengthAndText(schema.table);
  const names = writer.take();
  writer.byte(KEY_VERSION);
  writer.byte(KEY_KINDS.indexOf('row'));
  writer.raw(names);
  const keyPrefix = writer.take();
  const keyNames = keyed.map((index) => {
    writer.lengthAndText(schema.columns[index]?.name ?? '');
    return writer.take();
  });
  return {
    schema,
    block,
    kinds: Uint8Array.from(schema.columns, (column) => enumNumber(KINDS, column.kind)),
    keyColumns: keyed,
    keyNames,
    keyPrefix,
    partitionColumns: partitionedBy,
    hashSeed: hashBytes(HASH_SEED, names, 0, names.length),
  };
}

/** Of each record key; none where it is the hash of the row. */
function recordColumns(schema: TableSchema, partitionedBy: readonly number[] | null): readonly number[] {
  const keyed = schema.columns
    .map(({ keyPosition }, index) => ({ index, keyPosition }))
    .filter(({ keyPosition }) => keyPosition > 0)
    .sort((a, b) => a.keyPosition - b.keyPosition)
    .map(({ index }) => index);
  return keyed.length === 0 ? keyed : [...new Set([...keyed, ...(partitionedBy ?? [])])];
}

function partitionColumns(schema: TableSchema, names: readonly string[] | undefined): readonly number[] | null {
  if (names === undefined || names.length === 0) return null;
  return names.map((name) => {
    const at = schema.columns.findIndex((column) => column.name === name);
    if (at < 0) {
      throw wireErrors.WIRE_SCHEMA_INVALID({
        message: `partitionBy names the column '${name}', which the table does not have`,
        where: { table: formatTableRef(schema) },
      });
    }
    return at;
  });
}

/** The error for a value that does not fit its column. The value itself is not in it: rows may hold secrets. */
export function valueInvalid(plan: TablePlan, column: number, value: ColumnValue, why?: string): Error {
  const { name, type, kind } = plan.schema.columns[column] ?? { name: `#${column}`, type: '?', kind: '?' };
  const what = value instanceof Uint8Array ? 'bytes' : typeof value;
  return wireErrors.WIRE_VALUE_INVALID({
    message: `column '${name}' (${type}) holds ${kind} values, and this is ${why ?? `of type ${what}`}`,
    where: { table: formatTableRef(plan.schema), column: name },
  });
}
