/**
 * Row changes into records: key, partition hash and payload, in one pass over the values.
 *
 * 1. Exact or not at all: a value of another JavaScript type than its column's kind, or out of its range, is an error
 *    that names the column; nothing is rounded, cut or written as 0.
 * 2. What `encode` returns belongs to the caller: nobody writes to those bytes again. Key and payload lie behind each other
 *    in a slab of 64 KiB that lives as long as any of its records.
 * 3. An error leaves no half-written record behind: the next call starts clean.
 */
import { type ColumnValue, coreErrors, formatTableRef } from '@mysync/core';
import { ByteWriter } from './byte-writer.ts';
import { wireErrors } from './errors.ts';
import { sameKey, writeRowKey } from './row-key.ts';
import { type TablePlan, valueInvalid } from './table-plan.ts';
import { type TransactionBlock, writeSource } from './transaction-block.ts';
import {
  EMPTY_DELIVERY,
  MESSAGE,
  ROW_VALUES,
  VALUE_BYTES,
  VALUE_DOUBLE,
  VALUE_FLOAT,
  VALUE_INT,
  VALUE_NULL,
  VALUE_TEXT,
  VALUE_UINT,
} from './wire-format.ts';

export type RowOperation = 'insert' | 'update' | 'delete' | 'read';
export type RowValues = readonly ColumnValue[];

export interface RowChange {
  readonly operation: RowOperation;
  /** Binlog file of the event; '' where it is the transaction's. */
  readonly eventFile: string;
  /** Byte offset of the event; 0 where there is none. */
  readonly eventOffset: number;
  /** Of the change within its transaction; of a key change the first of two. */
  readonly ordinal: number;
  /** In the order of the schema's columns. Of updates and deletes. */
  readonly before: RowValues | null;
  /** Of inserts, updates and reads. */
  readonly after: RowValues | null;
}

/** One record, its delivery numbers zero and not marked as the last of its transaction. */
export interface EncodedRow {
  readonly kind: 'row';
  /** The record's value is to be null, with the payload in a header. */
  readonly deletes: boolean;
  readonly key: Uint8Array;
  /** Unsigned, 32 bits. */
  readonly partitionHash: number;
  readonly payload: Uint8Array;
  readonly ordinal: number;
}

const TWO_32 = 4294967296;
const OPERATION_NUMBERS = { insert: 1, update: 2, delete: 3, read: 4 } as const;

export class RowEncoder {
  readonly #writer = new ByteWriter();

  /**
   * Appends the records of one row's change to `out` and returns how many ordinals it took: 2 for an update that moves the row to
   * another key or partition (a delete of the old, an insert of the new), else 1.
   */
  rowChange(plan: TablePlan, transaction: TransactionBlock, change: RowChange, out: EncodedRow[]): number {
    const { before, after } = change;
    if (change.operation !== 'update' || before === null || after === null || this.#keepsKey(plan, before, after)) {
      out.push(this.encode(plan, transaction, change));
      return 1;
    }
    // Absent in the image after an update means unchanged.
    const whole = after.includes(undefined)
      ? after.map((value, at) => (value === undefined ? before[at] : value))
      : after;
    const { eventFile, eventOffset, ordinal } = change;
    const gone = { operation: 'delete', eventFile, eventOffset, ordinal, before, after: null } as const;
    const come = {
      operation: 'insert',
      eventFile,
      eventOffset,
      ordinal: ordinal + 1,
      before: null,
      after: whole,
    } as const;
    const first = this.encode(plan, transaction, gone);
    const second = this.encode(plan, transaction, come);
    out.push(first, second);
    return 2;
  }

  /** One record, whatever becomes of the key. `rowChange` is what a source calls. */
  encode(plan: TablePlan, transaction: TransactionBlock, change: RowChange): EncodedRow {
    const { operation, before, after } = change;
    checkImages(plan, change);
    const writer = this.#writer;
    writer.begin();
    const partitionHash =
      after === null ? writeRowKey(writer, plan, before as RowValues, null) : writeRowKey(writer, plan, after, before);
    const keyLength = writer.position - writer.start;
    writer.raw(EMPTY_DELIVERY);
    writer.byte(MESSAGE.operation);
    writer.byte(OPERATION_NUMBERS[operation]);
    writeSource(writer, transaction, change.eventFile, change.eventOffset, change.ordinal);
    writer.raw(plan.block);
    if (before !== null) writeRow(writer, plan, MESSAGE.before, before);
    if (after !== null) writeRow(writer, plan, MESSAGE.after, after);
    writer.ensure(2);
    writer.byte(MESSAGE.lastInTransaction);
    writer.byte(0);
    const start = writer.start;
    const payload = writer.take(keyLength);
    const key = writer.buffer.subarray(start, start + keyLength);
    return { kind: 'row', deletes: operation === 'delete', key, partitionHash, payload, ordinal: change.ordinal };
  }

  #keepsKey(plan: TablePlan, before: RowValues, after: RowValues): boolean {
    this.#writer.begin();
    return sameKey(this.#writer, plan, before, after);
  }
}

function checkImages(plan: TablePlan, change: RowChange): void {
  const { operation, before, after } = change;
  const wantsBefore = operation === 'update' || operation === 'delete';
  if (wantsBefore !== (before !== null) || (operation !== 'delete') !== (after !== null)) {
    throw coreErrors.INTERNAL({
      message: `a change of the operation ${operation} came with the wrong row images`,
      where: { table: formatTableRef(plan.schema) },
    });
  }
  const columns = plan.kinds.length;
  if ((before !== null && before.length !== columns) || (after !== null && after.length !== columns)) {
    throw wireErrors.WIRE_VALUE_INVALID({
      message: `the row image has ${(after ?? before)?.length} values, the table ${columns} columns`,
      where: { table: formatTableRef(plan.schema) },
    });
  }
}

/** Appends a row image as the message's field `tag`. */
function writeRow(writer: ByteWriter, plan: TablePlan, tag: number, values: RowValues): void {
  const kinds = plan.kinds;
  const columns = kinds.length;
  // Room for the frames and numbers of all columns at once; texts and bytes make their own.
  writer.ensure(8);
  writer.buffer[writer.position] = tag;
  writer.position += 3;
  const mark = writer.position - writer.start;
  for (let i = 0; i < columns; i++) {
    const value = values[i];
    if (typeof value === 'string') {
      if (kinds[i] !== 5) throw valueInvalid(plan, i, value);
      if (!writer.framedText(ROW_VALUES, VALUE_TEXT, value)) {
        throw valueInvalid(plan, i, value, 'not well-formed Unicode');
      }
      continue;
    }
    writer.ensure(16);
    if (value === null) {
      const buffer = writer.buffer;
      const at = writer.position;
      buffer[at] = ROW_VALUES;
      buffer[at + 1] = 2;
      buffer[at + 2] = VALUE_NULL;
      buffer[at + 3] = 1;
      writer.position = at + 4;
    } else if (value === undefined) {
      writer.buffer[writer.position] = ROW_VALUES;
      writer.buffer[writer.position + 1] = 0;
      writer.position += 2;
    } else if (typeof value === 'number') {
      writeNumber(writer, plan, i, value);
    } else if (typeof value === 'bigint') {
      writeBigint(writer, plan, i, value);
    } else if (value instanceof Uint8Array) {
      if (kinds[i] !== 6) throw valueInvalid(plan, i, value);
      writer.framedHead(ROW_VALUES, VALUE_BYTES, value.length);
      writer.buffer.set(value, writer.position);
      writer.position += value.length;
    } else {
      throw valueInvalid(plan, i, value);
    }
  }
  closeRow(writer, mark);
}

/** Puts the length in front of a row, for which two bytes were left: rows from 128 bytes to 16 KiB stay where they are. */
function closeRow(writer: ByteWriter, mark: number): void {
  const length = writer.position - writer.start - mark;
  if (length < 0x80 || length > 0x3fff) {
    const size = length < 0x80 ? 1 : length < 0x200000 ? 3 : length < 0x10000000 ? 4 : 5;
    writer.ensure(4);
    const from = writer.start + mark;
    writer.buffer.copyWithin(from - 2 + size, from, writer.position);
    writer.position = from - 2;
    writer.varint64(length, 0);
    writer.position += length;
    return;
  }
  const at = writer.start + mark - 2;
  writer.buffer[at] = (length & 0x7f) | 0x80;
  writer.buffer[at + 1] = length >>> 7;
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
