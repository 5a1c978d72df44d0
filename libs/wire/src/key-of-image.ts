/**
 * Keys and partition hashes from row images that stand encoded in a message (docs/spec/keys.md): what `row-key.ts` makes of JavaScript
 * values, made of the bytes. A value has one form only, so equal bytes are equal values; but for -0, which is 0 in a key.
 */
import { createHash } from 'node:crypto';
import type { ByteWriter } from './byte-writer.ts';
import { writeUnsigned } from './digits.ts';
import { KEY_BYTES, KEY_INTEGER, KEY_NULL, KEY_REAL, KEY_ROW_HASH, KEY_TEXT, ROW_HASH_BYTES } from './key-format.ts';
import { finishHash, hashBytes } from './partition.ts';
import type { TablePlan } from './table-plan.ts';
import {
  VALUE_BYTES,
  VALUE_DOUBLE,
  VALUE_FLOAT,
  VALUE_INT,
  VALUE_NULL,
  VALUE_TEXT,
  VALUE_UINT,
} from './wire-format.ts';

/** Where an image's values are in the writer. */
export interface EncodedImage {
  /** Where they begin, counted from the writer's `start`. */
  body: number;
  /** Where each begins, counted from `body`. */
  places: Uint32Array;
}

/** Appends the row's key and returns its partition hash. */
export function writeKeyOfImage(writer: ByteWriter, plan: TablePlan, image: EncodedImage): number {
  const { keyColumns } = plan;
  let hash = plan.hashSeed;
  writer.few(plan.keyPrefix);
  if (keyColumns.length === 0) {
    const digest = rowHash(writer, plan, image);
    writer.byte(0);
    const from = writer.position - writer.start;
    writer.byte(KEY_ROW_HASH);
    writer.byte(ROW_HASH_BYTES);
    writer.raw(digest);
    hash = hashBytes(hash, writer.buffer, writer.start + from, writer.position);
  } else {
    for (let i = 0; i < keyColumns.length; i++) {
      writer.few(plan.keyNames[i] as Uint8Array);
      const from = writer.position - writer.start;
      writeKeyValue(writer, image.body + (image.places[keyColumns[i] as number] as number));
      hash = hashBytes(hash, writer.buffer, writer.start + from, writer.position);
    }
  }
  if (plan.partitionColumns === null) return finishHash(hash);
  const mark = writer.position - writer.start;
  for (const column of plan.partitionColumns) writeKeyValue(writer, image.body + (image.places[column] as number));
  hash = hashBytes(plan.hashSeed, writer.buffer, writer.start + mark, writer.position);
  writer.position = writer.start + mark;
  return finishHash(hash);
}

/** True when an update keeps the row's key and partition columns. */
export function sameKeyOfImages(
  writer: ByteWriter,
  plan: TablePlan,
  before: EncodedImage,
  after: EncodedImage,
): boolean {
  const { keyColumns, partitionColumns } = plan;
  if (keyColumns.length === 0) {
    for (let i = 0; i < plan.kinds.length; i++) if (!sameValue(writer, i, before, after)) return false;
    return true;
  }
  for (let i = 0; i < keyColumns.length; i++) {
    if (!sameValue(writer, keyColumns[i] as number, before, after)) return false;
  }
  if (partitionColumns !== null) {
    for (const column of partitionColumns) if (!sameValue(writer, column, before, after)) return false;
  }
  return true;
}

function sameValue(writer: ByteWriter, column: number, before: EncodedImage, after: EncodedImage): boolean {
  const { buffer, start } = writer;
  const old = start + before.body + (before.places[column] as number);
  const next = start + after.body + (after.places[column] as number);
  // the length is part of the frame: where the first difference is behind it, both are equally long
  const end = frameEnd(buffer, old);
  for (let a = old, b = next; a < end; a++, b++) {
    if (buffer[a] !== buffer[b]) return sameReal(writer, old, next);
  }
  return true;
}

/** Of values whose bytes differ, by their frames: true for 0 and -0 alone. A real has a frame of one byte, so the tag's place is sure. */
function sameReal(writer: ByteWriter, old: number, next: number): boolean {
  const { buffer, view } = writer;
  const size = buffer[old + 1];
  const tag = buffer[old + 2];
  if (size !== buffer[next + 1] || tag !== buffer[next + 2]) return false;
  if (size === 5 && tag === VALUE_FLOAT) return view.getFloat32(old + 3, true) === view.getFloat32(next + 3, true);
  if (size === 9 && tag === VALUE_DOUBLE) return view.getFloat64(old + 3, true) === view.getFloat64(next + 3, true);
  return false;
}

function frameEnd(buffer: Uint8Array, frame: number): number {
  let at = frame + 1;
  let length = 0;
  for (let unit = 1; ; unit *= 128) {
    const byte = buffer[at++] as number;
    length += (byte & 0x7f) * unit;
    if (byte < 0x80) return at + length;
  }
}

/** The first 16 bytes of the SHA-256 over all values, each as it would stand in a key. */
function rowHash(writer: ByteWriter, plan: TablePlan, image: EncodedImage): Uint8Array {
  const mark = writer.position - writer.start;
  for (let i = 0; i < plan.kinds.length; i++) writeKeyValue(writer, image.body + (image.places[i] as number));
  const digest = createHash('sha256')
    .update(writer.buffer.subarray(writer.start + mark, writer.position))
    .digest();
  writer.position = writer.start + mark;
  return digest.subarray(0, ROW_HASH_BYTES);
}

/** The value whose frame begins `frame` bytes behind `start`. */
function writeKeyValue(writer: ByteWriter, frame: number): void {
  const end = frameEnd(writer.buffer, writer.start + frame) - writer.start;
  let tagAt = frame + 1;
  while ((writer.buffer[writer.start + tagAt] as number) > 0x7f) tagAt++;
  tagAt++;
  const content = tagAt + 1;
  writer.ensure(end - content + 32);
  const { buffer, start } = writer;
  switch (buffer[start + tagAt]) {
    case VALUE_NULL:
      buffer[writer.position++] = KEY_NULL;
      return;
    case VALUE_INT:
    case VALUE_UINT:
      writeInteger(writer, start + content, start + end, buffer[start + tagAt] === VALUE_INT);
      return;
    case VALUE_FLOAT:
      writeReal(writer, writer.view.getFloat32(start + content, true));
      return;
    case VALUE_DOUBLE:
      writeReal(writer, writer.view.getFloat64(start + content, true));
      return;
    case VALUE_TEXT:
      buffer[writer.position++] = KEY_TEXT;
      break;
    case VALUE_BYTES:
      buffer[writer.position++] = KEY_BYTES;
      break;
    default:
  }
  // texts and bytes: the length and what it counts stand in a key as in a message
  writer.copy(buffer, writer.view, start + content, start + end);
}

function writeInteger(writer: ByteWriter, from: number, to: number, signed: boolean): void {
  const { buffer } = writer;
  let low = 0;
  let high = 0;
  for (let at = from, shift = 0; at < to; at++, shift += 7) {
    const bits = (buffer[at] as number) & 0x7f;
    if (shift < 28) low |= bits << shift;
    else if (shift === 28) {
      low |= bits << 28;
      high |= bits >>> 4;
    } else high |= bits << (shift - 32);
  }
  low >>>= 0;
  high >>>= 0;
  const negative = signed && (low & 1) === 1;
  if (signed) {
    low = ((low >>> 1) | (high << 31)) >>> 0;
    high >>>= 1;
    if (negative) {
      // zigzag holds the magnitude less one
      low = (low + 1) >>> 0;
      if (low === 0) high += 1;
    }
  }
  const at = writer.position;
  buffer[at] = KEY_INTEGER;
  writer.position = at + 2;
  if (negative) buffer[writer.position++] = 0x2d;
  writeUnsigned(writer, low, high);
  writer.buffer[at + 1] = writer.position - at - 2;
}

function writeReal(writer: ByteWriter, value: number): void {
  const at = writer.position;
  writer.buffer[at] = KEY_REAL;
  writer.buffer[at + 1] = 8;
  // -0 becomes 0
  writer.view.setFloat64(at + 2, value + 0);
  writer.position = at + 10;
}
