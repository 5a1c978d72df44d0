/** Messages as JSON for people: exact, not fast. */
import { type ColumnValue, numberText, type TableSchema } from '@mysync/core';
import type { BaseMessage } from './message.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/**
 * A readable form for `mysync tail`. Integers beyond 2^53 are decimal digits in a string, bytes are `{ base64 }`, the
 * version stands as decimal digits and as 16 hex digits; a column that is absent from the image is left out.
 */
export function messageToJson(message: BaseMessage): { readonly [name: string]: Json } {
  const { delivery, source } = message;
  const head = {
    operation: message.operation,
    delivery: {
      epoch: delivery.epoch,
      generation: delivery.generation,
      base: delivery.base,
      sequence: delivery.sequence,
      version: String(delivery.version),
      versionHex: delivery.version.toString(16).padStart(16, '0'),
    },
    source: {
      name: source.name,
      serverUuid: source.serverUuid,
      gtid: source.change.gtid,
      transaction: `${source.change.file}:${source.change.offset}`,
      ordinal: source.change.ordinal,
      event: `${source.eventFile}:${source.eventOffset}`,
      commitTime: source.commitTimeMicros === 0 ? null : microsToIso(source.commitTimeMicros),
      lastInTransaction: message.lastInTransaction,
    },
  };
  switch (message.operation) {
    case 'heartbeat':
    case 'fence':
      return head;
    case 'truncate':
    case 'ddl':
    case 'sweep':
      return { ...head, database: message.table.database, table: message.table.table, statement: message.statement };
    default: {
      const { schema } = message;
      const row = (values: readonly ColumnValue[] | null) => (values === null ? null : imageToJson(schema, values));
      return {
        ...head,
        database: schema.database,
        table: schema.table,
        schema: schema.fingerprint,
        before: row(message.before),
        after: row(message.after),
      };
    }
  }
}

/** A row, or a key, as an object of its columns. */
export function rowToJson(names: readonly string[], values: readonly ColumnValue[]): { readonly [name: string]: Json } {
  const row: [string, Json][] = [];
  for (const [index, value] of values.entries()) {
    if (value !== undefined) row.push([names[index] ?? `#${index}`, valueToJson(value)]);
  }
  return Object.fromEntries(row);
}

/** A FLOAT as the shortest number that is the same 32 bits, so that 0.1 reads 0.1. */
function imageToJson(schema: TableSchema, values: readonly ColumnValue[]): { readonly [name: string]: Json } {
  const names = schema.columns.map((column) => column.name);
  const readable = values.map((value, index) =>
    typeof value === 'number' && schema.columns[index]?.kind === 'float' ? Number(numberText(value, true)) : value,
  );
  return rowToJson(names, readable);
}

function valueToJson(value: Exclude<ColumnValue, undefined>): Json {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
  return value;
}

function microsToIso(micros: number): string {
  const millis = Math.floor(micros / 1000);
  const date = new Date(millis);
  if (Number.isNaN(date.getTime())) return String(micros);
  return date.toISOString().replace('Z', `${String(micros - millis * 1000).padStart(3, '0')}Z`);
}
