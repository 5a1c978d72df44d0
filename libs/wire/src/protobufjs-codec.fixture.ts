/** The second opinion of the tests: protobufjs, driven by the definition itself. */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { ColumnValue, TableSchema } from '@mysync/core';
import protobuf from 'protobufjs';

export const PROTO_FILE = fileURLToPath(new URL('../../../proto/mysync/v1/message.proto', import.meta.url));

const root = protobuf.loadSync(PROTO_FILE);
export const BaseMessageType = root.lookupType('mysync.v1.BaseMessage');
export const TableSchemaType = root.lookupType('mysync.v1.TableSchema');

/** 64-bit numbers as decimal text, enums as names, nothing that was not sent. */
export function toPlain(payload: Uint8Array): Record<string, unknown> {
  // protobufjs gives bytes as pieces of what it reads: as Buffers only from one
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.length);
  return BaseMessageType.toObject(BaseMessageType.decode(bytes), { longs: String, enums: String });
}

export function encodePlain(type: protobuf.Type, plain: Record<string, unknown>): Uint8Array {
  return type.encode(type.fromObject(plain)).finish();
}

/** A schema as protobufjs takes it, with the fingerprint of the bytes that protobufjs writes for the rest. */
export function plainSchema(schema: TableSchema, type = TableSchemaType): Record<string, unknown> {
  const rest = {
    database: schema.database,
    table: schema.table,
    columns: schema.columns.map((column) => ({ ...column, kind: `COLUMN_KIND_${column.kind.toUpperCase()}` })),
    keyRule: `KEY_RULE_${schema.keyRule.toUpperCase().replace('-', '_')}`,
  };
  const digest = createHash('sha256').update(encodePlain(type, rest)).digest();
  return { ...rest, fingerprint: digest.readBigUInt64BE(0).toString() };
}

function plainValue(kind: string, value: ColumnValue): Record<string, unknown> {
  if (value === undefined) return {};
  if (value === null) return { null: true };
  return { [kind]: typeof value === 'bigint' || kind === 'int' || kind === 'uint' ? String(value) : value };
}

export function plainRow(schema: TableSchema, values: readonly ColumnValue[]): Record<string, unknown> {
  return { values: values.map((value, index) => plainValue(schema.columns[index]?.kind ?? '', value)) };
}
