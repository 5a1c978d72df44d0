/**
 * The change of a row as Debezium's MariaDB connector writes it with the JSON converter and its default settings, to compare sizes: fields
 * and forms as its documentation gives them ("Data change events", "Data type mappings"). For the columns of the measured table.
 */
import type { Column, ColumnValue, RowKey } from '@mysync/core';
import type { RowMessage } from '@mysync/wire';

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const SERVER = 'bench';

/** Bytes of key and value: bare (`schemas.enable=false`), and each with its schema (the converter's default). */
export interface DebeziumBytes {
  readonly bare: number;
  readonly withSchema: number;
}

/** Of an insert. */
export function debeziumBytes(message: RowMessage, key: RowKey): DebeziumBytes {
  const { schema, after } = message;
  const keyColumns = schema.columns.filter((column) => column.keyPosition > 0);
  const keyValue = image(keyColumns, key.values);
  const value = envelope(message, image(schema.columns, after ?? []));
  const name = `${SERVER}.${schema.database}.${schema.table}`;
  const keySchema = { ...struct(keyColumns.map(columnSchema), `${name}.Key`), optional: false };
  return {
    bare: bytesOf(keyValue) + bytesOf(value),
    withSchema:
      bytesOf({ schema: keySchema, payload: keyValue }) +
      bytesOf({ schema: envelopeSchema(name, schema.columns), payload: value }),
  };
}

function bytesOf(json: Json): number {
  return Buffer.byteLength(JSON.stringify(json));
}

function envelope(message: RowMessage, after: Json): Json {
  const { source, schema } = message;
  const micros = source.commitTimeMicros;
  // beyond 2^53 the last digits are not exact: as many as they are
  const times = { ts_ms: Math.floor(micros / 1000), ts_us: micros, ts_ns: micros * 1000 };
  return {
    before: null,
    after,
    source: {
      version: '3.5.0.Final',
      connector: 'mariadb',
      name: SERVER,
      ts_ms: times.ts_ms,
      snapshot: 'false',
      db: schema.database,
      sequence: null,
      ts_us: times.ts_us,
      ts_ns: times.ts_ns,
      table: schema.table,
      server_id: 223_344,
      gtid: source.change.gtid,
      file: source.change.file,
      pos: source.eventOffset,
      row: 0,
      thread: null,
      query: null,
    },
    transaction: null,
    op: 'c',
    ...times,
  };
}

function image(columns: readonly Column[], values: readonly ColumnValue[]): Json {
  return Object.fromEntries(columns.map((column, i) => [column.name, valueJson(column, values[i])]));
}

function valueJson(column: Column, value: ColumnValue): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value === 'number') return value;
  if (column.type.startsWith('decimal')) return unscaled(value);
  if (column.type.startsWith('datetime')) return Date.parse(`${value.replace(' ', 'T')}Z`);
  return value;
}

/** The number without its point, in big-endian bytes of a two's complement. */
function unscaled(decimal: string): string {
  const number = BigInt(decimal.replace('.', ''));
  let bytes = 1;
  while (BigInt.asIntN(bytes * 8, number) !== number) bytes += 1;
  const hex = BigInt.asUintN(bytes * 8, number)
    .toString(16)
    .padStart(bytes * 2, '0');
  return Buffer.from(hex, 'hex').toString('base64');
}

function struct(fields: readonly Json[], name: string): { readonly [name: string]: Json } {
  return { type: 'struct', fields, name };
}

function field(type: string, name: string, optional = false): Json {
  return { type, optional, field: name };
}

function envelopeSchema(name: string, columns: readonly Column[]): Json {
  const row = { ...struct(columns.map(columnSchema), `${name}.Value`), optional: true };
  const source = [
    ...['version', 'connector', 'name'].map((each) => field('string', each)),
    field('int64', 'ts_ms'),
    {
      type: 'string',
      optional: true,
      name: 'io.debezium.data.Enum',
      version: 1,
      parameters: { allowed: 'true,first,first_in_data_collection,last_in_data_collection,last,false,incremental' },
      default: 'false',
      field: 'snapshot',
    },
    field('string', 'db'),
    field('string', 'sequence', true),
    field('int64', 'ts_us', true),
    field('int64', 'ts_ns', true),
    field('string', 'table', true),
    field('int64', 'server_id'),
    field('string', 'gtid', true),
    field('string', 'file'),
    field('int64', 'pos'),
    field('int32', 'row'),
    field('int64', 'thread', true),
    field('string', 'query', true),
  ];
  const transaction = [field('string', 'id'), field('int64', 'total_order'), field('int64', 'data_collection_order')];
  const fields = [
    { ...row, field: 'before' },
    { ...row, field: 'after' },
    { ...struct(source, 'io.debezium.connector.mariadb.Source'), optional: false, version: 1, field: 'source' },
    { ...struct(transaction, 'event.block'), optional: true, version: 1, field: 'transaction' },
    field('string', 'op'),
    ...['ts_ms', 'ts_us', 'ts_ns'].map((each) => field('int64', each, true)),
  ];
  return { ...struct(fields, `${name}.Envelope`), optional: false, version: 2 };
}

function columnSchema(column: Column): Json {
  const base = { optional: column.nullable, field: column.name };
  const logical = (type: string, name: string, parameters?: Json): Json => ({
    type,
    ...base,
    name,
    version: 1,
    ...(parameters === undefined ? {} : { parameters }),
  });
  const numbers = /\((\d+)(?:,(\d+))?\)/.exec(column.type);
  switch (/^\w+/.exec(column.type)?.[0]) {
    case 'decimal':
      return logical('bytes', 'org.apache.kafka.connect.data.Decimal', {
        scale: numbers?.[2] ?? '0',
        'connect.decimal.precision': numbers?.[1] ?? '10',
      });
    case 'datetime':
      return logical('int64', 'io.debezium.time.Timestamp');
    case 'enum':
      return logical('string', 'io.debezium.data.Enum', { allowed: column.members.join(',') });
    case 'tinyint':
      return { type: 'int16', ...base };
    case 'int':
      return { type: 'int32', ...base };
    case 'bigint':
      return { type: 'int64', ...base };
    case 'double':
      return { type: 'double', ...base };
    case 'varbinary':
      return { type: 'bytes', ...base };
    default:
      return { type: 'string', ...base };
  }
}
