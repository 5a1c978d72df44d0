/** Writes the keys of rows and computes their partition hashes (docs/spec/keys.md). */
import { createHash } from 'node:crypto';
import { type ColumnValue, formatTableRef } from '@mysync/core';
import type { ByteWriter } from './byte-writer.ts';
import { wireErrors } from './errors.ts';
import { KEY_BYTES, KEY_INTEGER, KEY_NULL, KEY_REAL, KEY_ROW_HASH, KEY_TEXT, ROW_HASH_BYTES } from './key-format.ts';
import { finishHash, hashBytes } from './partition.ts';
import { type TablePlan, valueInvalid } from './table-plan.ts';

type Values = readonly ColumnValue[];

/**
 * Appends the row's key and returns its partition hash. Where `values` lacks a column, `fallback` (the image before) has
 * it; where that lacks it too, throws WIRE_KEY_INCOMPLETE.
 */
export function writeRowKey(writer: ByteWriter, plan: TablePlan, values: Values, fallback: Values | null): number {
  writer.raw(plan.keyPrefix);
  let hash = plan.hashSeed;
  if (plan.keyColumns.length === 0) {
    const digest = rowHash(writer, plan, values, fallback);
    writer.byte(0);
    const from = writer.position - writer.start;
    writer.byte(KEY_ROW_HASH);
    writer.byte(ROW_HASH_BYTES);
    writer.raw(digest);
    hash = hashBytes(hash, writer.buffer, writer.start + from, writer.position);
  } else {
    for (let i = 0; i < plan.keyColumns.length; i++) {
      writer.raw(plan.keyNames[i] as Uint8Array);
      const from = writer.position - writer.start;
      writeKeyValue(writer, plan, plan.keyColumns[i] as number, values, fallback);
      hash = hashBytes(hash, writer.buffer, writer.start + from, writer.position);
    }
  }
  if (plan.partitionColumns === null) return finishHash(hash);
  return partitionByHash(writer, plan, plan.partitionColumns, values, fallback);
}

/**
 * True when an update keeps what names the row's record (the columns of its key and of `partitionBy`). Compares what is surely equal first; values that are equal in another
 * form (5 and 5n) are compared as they would be written.
 */
export function sameKey(writer: ByteWriter, plan: TablePlan, before: Values, after: Values): boolean {
  if (plan.keyColumns.length === 0) {
    for (let i = 0; i < plan.kinds.length; i++) if (!sameValue(writer, plan, i, before, after)) return false;
    return true;
  }
  for (let i = 0; i < plan.keyColumns.length; i++) {
    if (!sameValue(writer, plan, plan.keyColumns[i] as number, before, after)) return false;
  }
  return true;
}

function sameValue(writer: ByteWriter, plan: TablePlan, column: number, before: Values, after: Values): boolean {
  const next = after[column];
  // Absent after an update means unchanged.
  if (next === undefined || next === before[column]) return true;
  const mark = writer.position - writer.start;
  writeKeyValue(writer, plan, column, before, null);
  const middle = writer.position - writer.start;
  writeKeyValue(writer, plan, column, after, null);
  const buffer = writer.buffer;
  const same =
    buffer.compare(buffer, writer.start + middle, writer.position, writer.start + mark, writer.start + middle) === 0;
  writer.position = writer.start + mark;
  return same;
}

function partitionByHash(
  writer: ByteWriter,
  plan: TablePlan,
  columns: readonly number[],
  values: Values,
  fallback: Values | null,
): number {
  const mark = writer.position - writer.start;
  for (const column of columns) writeKeyValue(writer, plan, column, values, fallback);
  const hash = hashBytes(plan.hashSeed, writer.buffer, writer.start + mark, writer.position);
  writer.position = writer.start + mark;
  return finishHash(hash);
}

/** The first 16 bytes of the SHA-256 over all values, each as it would stand in a key. */
function rowHash(writer: ByteWriter, plan: TablePlan, values: Values, fallback: Values | null): Uint8Array {
  const mark = writer.position - writer.start;
  for (let i = 0; i < plan.kinds.length; i++) writeKeyValue(writer, plan, i, values, fallback);
  const digest = createHash('sha256')
    .update(writer.buffer.subarray(writer.start + mark, writer.position))
    .digest();
  writer.position = writer.start + mark;
  return digest.subarray(0, ROW_HASH_BYTES);
}

/** Type tag, length, bytes. */
function writeKeyValue(
  writer: ByteWriter,
  plan: TablePlan,
  column: number,
  values: Values,
  fallback: Values | null,
): void {
  let value = values[column];
  if (value === undefined && fallback !== null) value = fallback[column];
  if (value === undefined) throw keyIncomplete(plan, column);
  if (value === null) {
    writer.byte(KEY_NULL);
    return;
  }
  switch (plan.kinds[column]) {
    case 1:
    case 2:
      writer.byte(KEY_INTEGER);
      writer.lengthAndText(integerText(plan, column, value));
      return;
    case 3:
    case 4: {
      const real = realValue(plan, column, value);
      writer.byte(KEY_REAL);
      writer.byte(8);
      writer.ensure(8);
      writer.buffer.writeDoubleBE(real, writer.position);
      writer.position += 8;
      return;
    }
    case 5:
      if (typeof value !== 'string') throw valueInvalid(plan, column, value);
      writer.byte(KEY_TEXT);
      if (!writer.lengthAndText(value)) throw valueInvalid(plan, column, value, 'not well-formed Unicode');
      return;
    default:
      if (!(value instanceof Uint8Array)) throw valueInvalid(plan, column, value);
      writer.byte(KEY_BYTES);
      writer.varint(value.length);
      writer.raw(value);
  }
}

/** The decimal digits, the same for 5, 5n and -0 as 0. */
function integerText(plan: TablePlan, column: number, value: ColumnValue): string {
  if (typeof value === 'number' && Number.isSafeInteger(value)) {
    if (value >= 0 || plan.kinds[column] === 1) return String(value);
    throw valueInvalid(plan, column, value, 'negative');
  }
  if (typeof value === 'bigint') {
    const fits = plan.kinds[column] === 1 ? BigInt.asIntN(64, value) === value : BigInt.asUintN(64, value) === value;
    if (fits) return String(value);
    throw valueInvalid(plan, column, value, 'out of range');
  }
  throw valueInvalid(plan, column, value, typeof value === 'number' ? 'not a safe integer' : undefined);
}

/** The number as the column stores it: a float in its 32 bits, -0 as 0. */
function realValue(plan: TablePlan, column: number, value: ColumnValue): number {
  if (typeof value !== 'number') throw valueInvalid(plan, column, value);
  const real = plan.kinds[column] === 3 ? Math.fround(value) : value;
  if (!Number.isFinite(real)) throw valueInvalid(plan, column, value, 'not a finite number of this width');
  return real + 0;
}

function keyIncomplete(plan: TablePlan, column: number): Error {
  const name = plan.schema.columns[column]?.name ?? `#${column}`;
  return wireErrors.WIRE_KEY_INCOMPLETE({
    message: `the row image lacks the column '${name}', which names the row or chooses its partition`,
    where: { table: formatTableRef(plan.schema), column: name },
  });
}
