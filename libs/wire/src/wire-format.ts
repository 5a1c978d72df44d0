/**
 * Field tags (number << 3 | wire type) of proto/mysync/v1/message.proto, and the fixed places of the layout rules. The
 * hand-written codec and the definition are held together by tests that read the same bytes with protobufjs.
 */
import type { ColumnKind, KeyRule, Operation } from '@mysync/core';

export const WIRE_VARINT = 0;
export const WIRE_FIXED64 = 1;
export const WIRE_BYTES = 2;
export const WIRE_FIXED32 = 5;

export const MESSAGE = {
  delivery: 0x0a,
  operation: 0x10,
  source: 0x1a,
  schema: 0x22,
  before: 0x2a,
  after: 0x32,
  table: 0x3a,
  statement: 0x42,
  lastInTransaction: 0x78,
} as const;

export const SOURCE = { transaction: 0x0a, eventOffset: 0x10, eventFile: 0x1a, ordinal: 0x20 } as const;

export const TRANSACTION = {
  source: 0x0a,
  serverUuid: 0x12,
  gtid: 0x1a,
  file: 0x22,
  offset: 0x28,
  commitTimeMicros: 0x30,
} as const;

export const TABLE_REF = { database: 0x0a, table: 0x12 } as const;

export const SCHEMA = { fingerprint: 0x09, database: 0x12, table: 0x1a, columns: 0x22, keyRule: 0x28 } as const;

export const COLUMN = {
  name: 0x0a,
  type: 0x12,
  kind: 0x18,
  keyPosition: 0x20,
  nullable: 0x28,
  charset: 0x32,
  members: 0x3a,
} as const;

export const ROW_VALUES = 0x0a;

export const VALUE_NULL = 0x08;
export const VALUE_INT = 0x10;
export const VALUE_UINT = 0x18;
export const VALUE_FLOAT = 0x25;
export const VALUE_DOUBLE = 0x29;
export const VALUE_TEXT = 0x32;
export const VALUE_BYTES = 0x3a;

/** Place in the list = number in the enum; 0 is "unspecified" and never written. */
export const OPERATIONS: readonly (Operation | undefined)[] = [
  undefined,
  'insert',
  'update',
  'delete',
  'read',
  'sweep',
  'truncate',
  'ddl',
  'heartbeat',
  'fence',
  'withheld',
];
export const KEY_RULES: readonly (KeyRule | undefined)[] = [undefined, 'primary', 'unique', 'row-hash'];
export const KINDS: readonly (ColumnKind | undefined)[] = [
  undefined,
  'int',
  'uint',
  'float',
  'double',
  'text',
  'bytes',
];

/** The tag in Value by number of the column kind. */
export const KIND_TAGS: readonly number[] = [
  0,
  VALUE_INT,
  VALUE_UINT,
  VALUE_FLOAT,
  VALUE_DOUBLE,
  VALUE_TEXT,
  VALUE_BYTES,
];

/** Places of the delivery numbers in every payload: each a tag byte before its fixed-width number. */
export const DELIVERY_LENGTH = 37;
export const EPOCH_AT = 3;
export const GENERATION_AT = 8;
export const BASE_AT = 13;
export const SEQUENCE_AT = 22;
export const VERSION_AT = 31;
/** Where the fields behind the delivery begin. */
export const DELIVERY_END = 39;

/** The first bytes of a new payload: the delivery with all its numbers 0. */
export const EMPTY_DELIVERY: Uint8Array = (() => {
  const bytes = new Uint8Array(DELIVERY_END);
  bytes[0] = MESSAGE.delivery;
  bytes[1] = DELIVERY_LENGTH;
  bytes[EPOCH_AT - 1] = 0x0d;
  bytes[GENERATION_AT - 1] = 0x15;
  bytes[BASE_AT - 1] = 0x19;
  bytes[SEQUENCE_AT - 1] = 0x21;
  bytes[VERSION_AT - 1] = 0x29;
  return bytes;
})();

export function enumNumber<T extends string>(names: readonly (T | undefined)[], name: T): number {
  const at = names.indexOf(name);
  if (at <= 0) throw new TypeError(`'${name}' is not one of ${names.slice(1).join(', ')}`);
  return at;
}
