/** Keys of records back into what they name: the only thing left of a deleted row after compaction. */
import { type ColumnValue, isMysyncError, type RowKey, type TableRef } from '@mysync/core';
import { ByteReader } from './byte-reader.ts';
import { wireErrors } from './errors.ts';
import {
  type ControlKind,
  KEY_BYTES,
  KEY_INTEGER,
  KEY_KINDS,
  KEY_NULL,
  KEY_REAL,
  KEY_ROW_HASH,
  KEY_TEXT,
  KEY_VERSION,
  ROW_HASH_BYTES,
  ROW_HASH_COLUMN,
} from './key-format.ts';

/** A decoded key. A control key of a kind that has no table has null. */
export type DecodedKey =
  | { readonly kind: 'row'; readonly row: RowKey }
  | { readonly kind: ControlKind; readonly table: TableRef | null };

/** Throws WIRE_KEY_INVALID for anything that no encoder of this version wrote. */
export function decodeKey(key: Uint8Array): DecodedKey {
  try {
    return read(key);
  } catch (error) {
    if (!isMysyncError(error, 'WIRE_MESSAGE_INVALID')) throw error;
    throw wireErrors.WIRE_KEY_INVALID({
      message: `the record key is not one of ours: ${error.message}`,
      where: error.where,
    });
  }
}

function read(key: Uint8Array): DecodedKey {
  const reader = new ByteReader();
  reader.open(key);
  const end = key.length;
  const version = key[reader.fixed(1, end)];
  if (version !== KEY_VERSION) throw reader.fault(`its version is ${version}`, 0);
  const kind = KEY_KINDS[key[reader.fixed(1, end)] as number];
  if (kind === undefined) throw reader.fault('its kind is not known', 1);
  if (kind === 'heartbeat' || kind === 'fence') {
    if (reader.position !== end) throw reader.fault('it goes on behind its end');
    return { kind, table: null };
  }
  const database = text(reader, end);
  const table = text(reader, end);
  if (kind !== 'row') {
    if (reader.position !== end) throw reader.fault('it goes on behind its end');
    return { kind, table: { database, table } };
  }
  const columns: string[] = [];
  const values: ColumnValue[] = [];
  while (reader.position < end) {
    const at = reader.position;
    const name = text(reader, end);
    const tag = key[reader.fixed(1, end)] as number;
    if ((name === '') !== (tag === KEY_ROW_HASH)) throw reader.fault('a column has no name', at);
    if (tag === KEY_ROW_HASH && (columns.length > 0 || values.length > 0))
      throw reader.fault('a hash is not alone', at);
    columns.push(tag === KEY_ROW_HASH ? ROW_HASH_COLUMN : name);
    values.push(value(reader, tag, end));
    if (tag === KEY_ROW_HASH && reader.position !== end) throw reader.fault('it goes on behind its end');
  }
  if (columns.length === 0) throw reader.fault('it names no column');
  return { kind, row: { database, table, columns, values } };
}

function value(reader: ByteReader, tag: number, end: number): ColumnValue {
  const at = reader.position;
  switch (tag) {
    case KEY_NULL:
      return null;
    case KEY_INTEGER:
      return integer(reader, text(reader, end), at);
    case KEY_REAL: {
      const from = bytes(reader, end, 8);
      const real = reader.buffer.readDoubleBE(from);
      if (!Number.isFinite(real) || Object.is(real, -0)) throw reader.fault('a number is not finite, or is -0', at);
      return real;
    }
    case KEY_TEXT:
      return text(reader, end);
    case KEY_BYTES:
      minimal(reader, end);
      return Uint8Array.from(reader.bytes(end));
    case KEY_ROW_HASH: {
      const from = bytes(reader, end, ROW_HASH_BYTES);
      return Uint8Array.from(reader.buffer.subarray(from, from + ROW_HASH_BYTES));
    }
    default:
      throw reader.fault(`a value has the type ${tag}`, at - 1);
  }
}

function integer(reader: ByteReader, digits: string, at: number): number | bigint {
  if (!/^(0|-?[1-9]\d{0,19})$/.test(digits)) throw reader.fault('an integer is not in its shortest form', at);
  const exact = BigInt(digits);
  if (exact < -(2n ** 63n) || exact >= 2n ** 64n) throw reader.fault('an integer has more than 64 bits', at);
  const number = Number(digits);
  return Number.isSafeInteger(number) ? number : exact;
}

/** Where the bytes begin, which must be `length` many. */
function bytes(reader: ByteReader, end: number, length: number): number {
  const stop = reader.until(end);
  const from = reader.position;
  if (stop - from !== length) throw reader.fault(`a length is ${stop - from} and not ${length}`);
  reader.position = stop;
  return from;
}

function text(reader: ByteReader, end: number): string {
  minimal(reader, end);
  return reader.text(end);
}

/** One key has one form: a length in more bytes than it needs would be a second one. */
function minimal(reader: ByteReader, end: number): void {
  const from = reader.position;
  reader.varint(end);
  const size = reader.position - from;
  if (size > 1 && reader.buffer[reader.position - 1] === 0)
    throw reader.fault('a length is not in its shortest form', from);
  reader.position = from;
}
