/** Walkers of text, bytes, ENUM and SET. */
import { isWellFormedUtf8, writeBytesHead, writeTextHead } from '@mysync/wire';
import type { Walk } from './column-walk.ts';
import { walkReference } from './reference.ts';

export const walkBytes: Walk = (column, source, out) => {
  const length = source.length(column.lengthBytes);
  const from = source.take(length);
  writeBytesHead(out, length);
  out.copy(source.buffer, source.view, from, from + length);
};

/** BINARY comes without the zero bytes at its end, which are part of the value. */
export const walkBinary: Walk = (column, source, out) => {
  const { size } = column;
  const length = source.length(column.lengthBytes);
  if (length > size) throw new RangeError(`${length} bytes in a column of ${size}`);
  const from = source.take(length);
  writeBytesHead(out, size);
  out.copy(source.buffer, source.view, from, from + length);
  const rest = size - length;
  out.buffer.fill(0, out.position, out.position + rest);
  out.position += rest;
};

/** Text in UTF-8 is copied as it is. The server lets no other bytes in; should there be some, the reference replaces them. */
export const walkUtf8: Walk = (column, source, out) => {
  const begin = source.at;
  const length = source.length(column.lengthBytes);
  const from = source.take(length);
  const mark = out.position - out.start;
  writeTextHead(out, length);
  const high = out.copy(source.buffer, source.view, from, from + length);
  if (high === 0 || isWellFormedUtf8(source.buffer, from, from + length)) return;
  out.position = out.start + mark;
  walkReference(column, source, out, begin);
};

/** Text in a charset of single bytes, by its table. */
export const walkSingleBytes: Walk = (column, source, out) => {
  const length = source.length(column.lengthBytes);
  const from = source.take(length);
  if (column.asciiIsPlain && isAscii(source.buffer, from, from + length)) {
    writeTextHead(out, length);
    out.copy(source.buffer, source.view, from, from + length);
    return;
  }
  const { characters } = column;
  const { buffer } = source;
  let bytes = 0;
  for (let i = from; i < from + length; i += 1) bytes += (characters[buffer[i] as number] as number) >>> 24;
  writeTextHead(out, bytes);
  const target = out.buffer;
  let at = out.position;
  for (let i = from; i < from + length; i += 1) {
    let rest = characters[buffer[i] as number] as number;
    for (let count = rest >>> 24; count > 0; count -= 1) {
      target[at++] = rest;
      rest >>>= 8;
    }
  }
  out.position = at;
};

function isAscii(buffer: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if ((buffer[at] as number) > 0x7f) return false;
  return true;
}

/** Text in a charset of several bytes: ASCII as it is where it may be, the rest by the reference. */
export const walkOtherText: Walk = (column, source, out) => {
  const begin = source.at;
  const length = source.length(column.lengthBytes);
  const from = source.take(length);
  if (!(column.asciiIsPlain && isAscii(source.buffer, from, from + length))) {
    walkReference(column, source, out, begin);
    return;
  }
  writeTextHead(out, length);
  out.copy(source.buffer, source.view, from, from + length);
};

/** 0 is the empty text of an invalid value, which is no member. */
export const walkEnum: Walk = (column, source, out) => {
  const number = source.length(column.lengthBytes);
  const value = column.members[number];
  if (value === undefined) throw new RangeError(`an ENUM of ${column.members.length - 1} members has no ${number}`);
  out.few(value);
};

const COMMA = 0x2c;

export const walkSet: Walk = (column, source, out) => {
  const size = column.lengthBytes;
  const at = source.take(size);
  const { buffer } = source;
  const { members } = column;
  let length = -1;
  for (let i = 0; i < size * 8; i += 1) {
    if ((((buffer[at + (i >> 3)] as number) >> (i & 7)) & 1) === 0) continue;
    const member = members[i];
    if (member === undefined) throw new RangeError(`a SET of ${members.length} members has no ${i + 1}`);
    length += member.length + 1;
  }
  writeTextHead(out, Math.max(length, 0));
  let isFirst = true;
  for (let i = 0; i < members.length; i += 1) {
    if ((((buffer[at + (i >> 3)] as number) >> (i & 7)) & 1) === 0) continue;
    if (!isFirst) out.byte(COMMA);
    isFirst = false;
    out.few(members[i] as Uint8Array);
  }
};
