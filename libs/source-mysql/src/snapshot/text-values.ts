/**
 * Values of a result in text form to the same JavaScript values that the row reader makes of the log.
 * The session's results are in utf8mb4 and its time zone is UTC.
 */
import type { ColumnValue } from '@mysync/core';
import { type ColumnShape, kindOf } from '../schema/column-shape.ts';
import { quoteName } from '../server/dialect.ts';

/**
 * What to select for a column. FLOAT is printed with six digits, FLOAT(M,D) and DOUBLE(M,D) with D behind the point, whatever they hold:
 * so each is made a DOUBLE without digits of the same value. (A sum would take the sign from a zero.)
 */
export function selectExpression(shape: ColumnShape): string {
  const name = quoteName(shape.name);
  return shape.base === 'float' || shape.base === 'double' ? `(${name} * 1e0)` : name;
}

export type TextValue = (bytes: Buffer) => ColumnValue;

export function textValue(shape: ColumnShape): TextValue {
  switch (shape.base) {
    case 'bit':
      return bits;
    case 'float':
      return (bytes) => Math.fround(Number(latin1(bytes)));
    case 'double':
      return (bytes) => Number(latin1(bytes));
    case 'decimal':
      return decimal;
    case 'date':
    case 'time':
    case 'datetime':
    case 'timestamp':
      return latin1;
    default:
  }
  switch (kindOf(shape)) {
    case 'int':
    case 'uint':
      return integer;
    case 'bytes':
      return (bytes) => bytes;
    default:
      return (bytes) => bytes.toString('utf8');
  }
}

function latin1(bytes: Buffer): string {
  return bytes.toString('latin1');
}

/** ZEROFILL prints leading zeros, which are not part of the number. */
function integer(bytes: Buffer): number | bigint {
  const text = latin1(bytes);
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

function decimal(bytes: Buffer): string {
  return latin1(bytes).replace(/^(-?)0+(?=\d)/, '$1');
}

/** BIT comes as its bytes, big-endian. */
function bits(bytes: Buffer): number | bigint {
  if (bytes.length <= 6) return bytes.readUIntBE(0, bytes.length);
  const value = BigInt(`0x${bytes.toString('hex')}`);
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}
