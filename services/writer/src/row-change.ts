/** From a row's message to the change that a sink is given. */
import { type ColumnValue, coreErrors, type RowKey, type TableSchema } from '@mysync/core';
import type { DeleteChange, PutChange } from '@mysync/sink';
import type { IncomingRecord } from '@mysync/transport';
import { decodeKey, type RowMessage } from '@mysync/wire';

/** A row that changed and whose message is too large for the log: no sink can be given it. */
export interface WithheldChange {
  readonly kind: 'withheld';
  readonly schema: TableSchema;
  readonly key: RowKey;
  readonly version: bigint;
  readonly offset: number;
}

/** A change that a sink can be given. */
export type AppliedChange = PutChange | DeleteChange;
export type RowStateChange = AppliedChange | WithheldChange;

/** What is left in the sink once it is applied: a row, or none. */
export function operationOf({ kind }: RowStateChange): 'put' | 'delete' {
  return kind === 'delete' ? 'delete' : 'put';
}

/** All that is known of a row when only its key is. */
export function rowOfKey(schema: TableSchema, key: RowKey): readonly ColumnValue[] {
  return schema.columns.map(({ name }) => key.values[key.columns.indexOf(name)]);
}

/** Where a schema's key and its bytes stand. */
export interface SchemaPlan {
  readonly keyNames: readonly string[];
  readonly keyIndexes: readonly number[];
  readonly byteIndexes: readonly number[];
}

export function planOf(schema: TableSchema): SchemaPlan {
  const keys = schema.columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => column.keyPosition > 0)
    .sort((a, b) => a.column.keyPosition - b.column.keyPosition);
  const byteIndexes = schema.columns.flatMap((column, index) => (column.kind === 'bytes' ? [index] : []));
  return {
    keyNames: keys.map((key) => key.column.name),
    keyIndexes: keys.map((key) => key.index),
    byteIndexes,
  };
}

/** The change that a row's message makes. Its bytes are copied. */
export function rowChange(message: RowMessage, record: IncomingRecord, plan: SchemaPlan): RowStateChange {
  const { schema, operation, before, after } = message;
  const { version } = message.delivery;
  const row = operation === 'delete' ? before : after;
  if (row === null) return { kind: 'withheld', schema, key: rowKeyOf(record), version, offset: record.offset };
  if (plan.byteIndexes.length > 0) copyBytes(row as ColumnValue[], plan.byteIndexes);
  const key = schema.keyRule === 'row-hash' ? rowKeyOf(record) : keyFromRow(schema, plan, row);
  return { kind: operation === 'delete' ? 'delete' : 'put', schema, key, row, version, offset: record.offset };
}

/**
 * Bytes are views into the batch, which is gone once the next one is asked for, while its changes are still applied. In place: the decoder
 * made the image for this one message.
 */
function copyBytes(image: ColumnValue[], byteIndexes: readonly number[]): void {
  for (const index of byteIndexes) {
    const value = image[index];
    if (value instanceof Uint8Array) image[index] = Buffer.from(value);
  }
}

/** As the record's key says, less the columns of `partitionBy`, but cheaper: an image always holds the key's columns. */
function keyFromRow(schema: TableSchema, plan: SchemaPlan, row: readonly ColumnValue[]): RowKey {
  const values: ColumnValue[] = [];
  for (const index of plan.keyIndexes) values.push(row[index]);
  return { database: schema.database, table: schema.table, columns: plan.keyNames, values };
}

function rowKeyOf(record: IncomingRecord): RowKey {
  const key = decodeKey(record.key);
  if (key.kind !== 'row') {
    throw coreErrors.INTERNAL({
      message: `a row's message has a key of kind ${key.kind}`,
      where: { offset: record.offset },
    });
  }
  return key.row;
}

/** Bytes as a text that a map can be keyed by. */
export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
