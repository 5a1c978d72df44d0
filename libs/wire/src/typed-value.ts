/** A JavaScript value as the value of a row: exact, or an error that names the column. */
import type { ColumnValue } from '@mysync/core';
import type { ByteWriter } from './byte-writer.ts';
import { type TablePlan, valueInvalid } from './table-plan.ts';
import {
  ROW_VALUES,
  VALUE_BYTES,
  VALUE_DOUBLE,
  VALUE_FLOAT,
  VALUE_INT,
  VALUE_NULL,
  VALUE_TEXT,
  VALUE_UINT,
} from './wire-format.ts';

const TWO_32 = 4294967296;

/** Appends the value of a column. undefined is absent. Throws WIRE_VALUE_INVALID. */
export function writeValue(writer: ByteWriter, plan: TablePlan, column: number, value: ColumnValue): void {
  if (typeof value === 'string') {
    if (plan.kinds[column] !== 5) throw valueInvalid(plan, column, value);
    if (!writer.framedText(ROW_VALUES, VALUE_TEXT, value)) {
      throw valueInvalid(plan, column, value, 'not well-formed Unicode');
    }
    return;
  }
  writer.ensure(16);
  if (value === null) {
    const { buffer, position } = writer;
    buffer[position] = ROW_VALUES;
    buffer[position + 1] = 2;
    buffer[position + 2] = VALUE_NULL;
    buffer[position + 3] = 1;
    writer.position = position + 4;
  } else if (value === undefined) {
    writer.buffer[writer.position] = ROW_VALUES;
    writer.buffer[writer.position + 1] = 0;
    writer.position += 2;
  } else if (typeof value === 'number') {
    writeNumber(writer, plan, column, value);
  } else if (typeof value === 'bigint') {
    writeBigint(writer, plan, column, value);
  } else if (value instanceof Uint8Array) {
    if (plan.kinds[column] !== 6) throw valueInvalid(plan, column, value);
    writer.framedHead(ROW_VALUES, VALUE_BYTES, value.length);
    writer.buffer.set(value, writer.position);
    writer.position += value.length;
  } else {
    throw valueInvalid(plan, column, value);
  }
}

/** The caller has made room for 16 bytes. */
function writeNumber(writer: ByteWriter, plan: TablePlan, column: number, value: number): void {
  const buffer = writer.buffer;
  const at = writer.position;
  buffer[at] = ROW_VALUES;
  switch (plan.kinds[column]) {
    case 1:
      buffer[at + 2] = VALUE_INT;
      writer.position = at + 3;
      if ((value | 0) === value) writer.varint64(((value << 1) ^ (value >> 31)) >>> 0, 0);
      else if (Number.isSafeInteger(value)) zigzag(writer, value);
      else throw valueInvalid(plan, column, value, 'not a safe integer');
      buffer[at + 1] = writer.position - at - 2;
      return;
    case 2:
      buffer[at + 2] = VALUE_UINT;
      writer.position = at + 3;
      if (!(Number.isSafeInteger(value) && value >= 0)) {
        throw valueInvalid(plan, column, value, value < 0 ? 'negative' : 'not a safe integer');
      }
      writer.varint64(value >>> 0, value < TWO_32 ? 0 : (value / TWO_32) >>> 0);
      buffer[at + 1] = writer.position - at - 2;
      return;
    case 3:
      if (!Number.isFinite(Math.fround(value))) throw valueInvalid(plan, column, value, 'not a finite 32-bit number');
      buffer[at + 1] = 5;
      buffer[at + 2] = VALUE_FLOAT;
      buffer.writeFloatLE(value, at + 3);
      writer.position = at + 7;
      return;
    case 4:
      if (!Number.isFinite(value)) throw valueInvalid(plan, column, value, 'not a finite number');
      buffer[at + 1] = 9;
      buffer[at + 2] = VALUE_DOUBLE;
      buffer.writeDoubleLE(value, at + 3);
      writer.position = at + 11;
      return;
    default:
      throw valueInvalid(plan, column, value);
  }
}

/** A safe integer beyond 32 bits: twice it may no longer be safe, so it is shifted in halves. */
function zigzag(writer: ByteWriter, value: number): void {
  const sign = value < 0 ? 1 : 0;
  const magnitude = value < 0 ? -(value + 1) : value;
  const low = magnitude >>> 0;
  const high = (magnitude / TWO_32) >>> 0;
  writer.varint64(((low << 1) | sign) >>> 0, ((high << 1) | (low >>> 31)) >>> 0);
}

function writeBigint(writer: ByteWriter, plan: TablePlan, column: number, value: bigint): void {
  const kind = plan.kinds[column];
  let bits: bigint;
  if (kind === 1) {
    if (BigInt.asIntN(64, value) !== value) throw valueInvalid(plan, column, value, 'beyond 64 bits');
    bits = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
  } else if (kind === 2) {
    if (BigInt.asUintN(64, value) !== value) throw valueInvalid(plan, column, value, 'negative or beyond 64 bits');
    bits = value;
  } else {
    throw valueInvalid(plan, column, value);
  }
  const at = writer.position;
  writer.buffer[at] = ROW_VALUES;
  writer.buffer[at + 2] = kind === 1 ? VALUE_INT : VALUE_UINT;
  writer.position = at + 3;
  writer.varint64(Number(bits & 0xffffffffn), Number(bits >> 32n));
  writer.buffer[at + 1] = writer.position - at - 2;
}
