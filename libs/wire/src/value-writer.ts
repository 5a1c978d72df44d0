/**
 * Values of a row as they stand in a message, written from numbers and bytes: for encoders that have no JavaScript values.
 * Each appends one whole value and makes its own room; what may stand in a column is for the caller to know.
 */
import { type ByteWriter, varintSize } from './byte-writer.ts';
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

export function writeNull(writer: ByteWriter): void {
  writer.ensure(4);
  const { buffer } = writer;
  const at = writer.position;
  buffer[at] = ROW_VALUES;
  buffer[at + 1] = 2;
  buffer[at + 2] = VALUE_NULL;
  buffer[at + 3] = 1;
  writer.position = at + 4;
}

/** A signed number of at most 32 bits. */
export function writeInt32(writer: ByteWriter, value: number): void {
  varintValue(writer, VALUE_INT, ((value << 1) ^ (value >> 31)) >>> 0, 0);
}

/** A signed number of 64 bits in two's complement, in unsigned halves. */
export function writeInt64(writer: ByteWriter, low: number, high: number): void {
  const sign = high >> 31;
  varintValue(writer, VALUE_INT, ((low << 1) ^ sign) >>> 0, (((high << 1) | (low >>> 31)) ^ sign) >>> 0);
}

/** An unsigned number of 64 bits in halves. */
export function writeUint64(writer: ByteWriter, low: number, high: number): void {
  varintValue(writer, VALUE_UINT, low, high);
}

function varintValue(writer: ByteWriter, tag: number, low: number, high: number): void {
  writer.ensure(16);
  const at = writer.position;
  writer.buffer[at] = ROW_VALUES;
  writer.buffer[at + 2] = tag;
  writer.position = at + 3;
  writer.varint64(low, high);
  writer.buffer[at + 1] = writer.position - at - 2;
}

/** A FLOAT by its bits, which are those of a finite number. */
export function writeFloat(writer: ByteWriter, bits: number): void {
  writer.ensure(7);
  const at = writer.position;
  writer.buffer[at] = ROW_VALUES;
  writer.buffer[at + 1] = 5;
  writer.buffer[at + 2] = VALUE_FLOAT;
  writer.view.setUint32(at + 3, bits, true);
  writer.position = at + 7;
}

/** A DOUBLE by the halves of its bits, which are those of a finite number. */
export function writeDouble(writer: ByteWriter, low: number, high: number): void {
  writer.ensure(11);
  const at = writer.position;
  writer.buffer[at] = ROW_VALUES;
  writer.buffer[at + 1] = 9;
  writer.buffer[at + 2] = VALUE_DOUBLE;
  writer.view.setUint32(at + 3, low, true);
  writer.view.setUint32(at + 7, high, true);
  writer.position = at + 11;
}

/** What stands in front of a text of so many bytes of UTF-8; the caller appends these. */
export function writeTextHead(writer: ByteWriter, bytes: number): void {
  head(writer, VALUE_TEXT, bytes);
}

/** What stands in front of so many bytes; the caller appends these. */
export function writeBytesHead(writer: ByteWriter, bytes: number): void {
  head(writer, VALUE_BYTES, bytes);
}

function head(writer: ByteWriter, tag: number, bytes: number): void {
  if (bytes > 0x7d) {
    writer.framedHead(ROW_VALUES, tag, bytes);
    return;
  }
  writer.ensure(bytes + 4);
  const { buffer } = writer;
  const at = writer.position;
  buffer[at] = ROW_VALUES;
  buffer[at + 1] = bytes + 2;
  buffer[at + 2] = tag;
  buffer[at + 3] = bytes;
  writer.position = at + 4;
}

/** Begins a text of at most 123 bytes and makes room for `most` of them. Give `endShortText` what it returns; nothing may make room between. */
export function beginShortText(writer: ByteWriter, most: number): number {
  writer.ensure(most + 4);
  const at = writer.position;
  writer.position = at + 4;
  return at;
}

export function endShortText(writer: ByteWriter, at: number): void {
  const { buffer } = writer;
  const length = writer.position - at - 4;
  buffer[at] = ROW_VALUES;
  buffer[at + 1] = length + 2;
  buffer[at + 2] = VALUE_TEXT;
  buffer[at + 3] = length;
}

/**
 * Begins a text whose length is known only at its end: appends room for what stands in front, with lengths as `guess` bytes of text would
 * have them. Give `endText` what it returns, and the same guess.
 */
export function beginText(writer: ByteWriter, guess: number): number {
  const room = headSize(guess);
  writer.ensure(room);
  const from = writer.position - writer.start;
  writer.position += room;
  return from;
}

export function endText(writer: ByteWriter, from: number, guess: number): void {
  const room = headSize(guess);
  const length = writer.position - writer.start - from - room;
  const size = headSize(length);
  // so that neither moving the text nor writing its head takes another slab
  writer.ensure(16);
  const at = writer.start + from;
  if (size !== room) writer.buffer.copyWithin(at + size, at + room, at + room + length);
  writer.position = at;
  head(writer, VALUE_TEXT, length);
  writer.position += length;
}

function headSize(bytes: number): number {
  const size = varintSize(bytes);
  return 1 + varintSize(1 + size + bytes) + 1 + size;
}
