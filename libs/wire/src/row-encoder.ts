/**
 * Row changes into records: key, partition hash and payload, in one pass over the values.
 *
 * 1. Exact or not at all: a value of another JavaScript type than its column's kind, or out of its range, is an error
 *    that names the column; nothing is rounded, cut or written as 0.
 * 2. What `encode` returns belongs to the caller: nobody writes to those bytes again. They lie in a slab of 64 KiB that lives as long
 *    as any of its records.
 * 3. An error leaves no half-written record behind: the next call starts clean.
 */
import { type ColumnValue, coreErrors, formatTableRef } from '@mysync/core';
import { ByteWriter } from './byte-writer.ts';
import { type EncodedRow, takeRow } from './encoded-row.ts';
import { wireErrors } from './errors.ts';
import { closeRow, openRow } from './row-frame.ts';
import { sameKey, writeRowKey } from './row-key.ts';
import type { TablePlan } from './table-plan.ts';
import { type TransactionBlock, writeSource } from './transaction-block.ts';
import { writeValue } from './typed-value.ts';
import { EMPTY_DELIVERY, MESSAGE } from './wire-format.ts';

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

/** Where a row's records go, and under which name. */
export type RowName = Pick<EncodedRow, 'key' | 'partitionHash'>;

export const OPERATION_NUMBERS = { insert: 1, update: 2, delete: 3, read: 4 } as const;

export class RowEncoder {
  readonly #writer = new ByteWriter();

  /**
   * Appends the records of one row's change to `out` and returns how many ordinals it took: 2 for an update that moves the row to
   * another key or partition (a delete of the old, an insert of the new), else 1.
   */
  rowChange(plan: TablePlan, transaction: TransactionBlock, change: RowChange, out: EncodedRow[]): number {
    const { before, after } = change;
    if (change.operation !== 'update' || before === null || after === null || this.keepsKey(plan, before, after)) {
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
    writer.raw(EMPTY_DELIVERY);
    writer.byte(MESSAGE.operation);
    writer.byte(OPERATION_NUMBERS[operation]);
    writeSource(writer, transaction, change.eventFile, change.eventOffset, change.ordinal);
    writer.raw(plan.block);
    if (before !== null) writeRow(writer, plan, MESSAGE.before, before);
    if (after !== null) writeRow(writer, plan, MESSAGE.after, after);
    writer.byte(MESSAGE.lastInTransaction);
    writer.byte(0);
    const length = writer.position - writer.start;
    const partitionHash =
      after === null ? writeRowKey(writer, plan, before as RowValues, null) : writeRowKey(writer, plan, after, before);
    return takeRow(writer, length, operation === 'delete', partitionHash, change.ordinal);
  }

  /**
   * Whether an update leaves the row under its key and in its partition. Absent in the image after it means unchanged. Throws
   * WIRE_KEY_INCOMPLETE when the image before it lacks a column that it changes and that names the row or chooses its partition.
   */
  keepsKey(plan: TablePlan, before: RowValues, after: RowValues): boolean {
    this.#writer.begin();
    return sameKey(this.#writer, plan, before, after);
  }

  /** The name of the row that has these values; of columns that are no part of it none is needed. Throws WIRE_KEY_INCOMPLETE. */
  keyOf(plan: TablePlan, values: RowValues): RowName {
    const writer = this.#writer;
    writer.begin();
    const partitionHash = writeRowKey(writer, plan, values, null);
    return { key: writer.take(0), partitionHash };
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
  const mark = openRow(writer, tag);
  const columns = plan.kinds.length;
  for (let i = 0; i < columns; i++) writeValue(writer, plan, i, values[i]);
  closeRow(writer, mark);
}
