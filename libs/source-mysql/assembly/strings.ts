/** Walkers of text, bytes, ENUM and SET. */
import {
  COLUMN_DATA,
  COLUMN_INDEX,
  COLUMN_LENGTH_BYTES,
  COLUMN_SIZE,
  FAIL_BINARY,
  FAIL_MEMBER,
  MEMBER_BYTES,
  MEMBER_LENGTH,
  MEMBER_TEXT,
} from '../src/transcribe/layout';
import { fail } from './host';
import { copyAhead, putBytesHead, putTextHead } from './output';
import { plan } from './plan';
import { byReference } from './reference';
import { at, take, takeLength } from './source';
import { copyAndLook, isAscii, isWellFormed } from './utf8';

export function walkBytes(column: usize, out: usize): usize {
  const length = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  const from = take(length);
  return copyAhead(putBytesHead(out, length), from, length);
}

/** BINARY comes without the zero bytes at its end, which are part of the value. */
export function walkBinary(column: usize, out: usize): usize {
  const size = <usize>load<u32>(column, COLUMN_SIZE);
  const length = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  if (length > size) fail(FAIL_BINARY, at);
  const from = take(length);
  const end = copyAhead(putBytesHead(out, size), from, length);
  memory.fill(end, 0, size - length);
  return end + size - length;
}

/** Text in UTF-8 is copied as it is. The server lets no other bytes in; should there be some, the reference replaces them. */
export function walkUtf8(column: usize, out: usize): usize {
  const begin = at;
  const length = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  const from = take(length);
  const text = putTextHead(out, length);
  if (copyAndLook(text, from, length) && !isWellFormed(from, from + length)) {
    return byReference(load<u32>(column, COLUMN_INDEX), begin, out);
  }
  return text + length;
}

/** Text in a charset of single bytes, by its table: for each byte its UTF-8, lowest byte first, the count in the highest byte. */
export function walkSingleBytes(column: usize, out: usize): usize {
  const length = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  const from = take(length);
  const table = plan + <usize>load<u32>(column, COLUMN_DATA);
  let bytes: usize = 0;
  for (let i = from; i < from + length; i += 1) bytes += <usize>load<u8>(table + 4 * <usize>load<u8>(i), 3);
  let to = putTextHead(out, bytes);
  for (let i = from; i < from + length; i += 1) {
    const character = load<u32>(table + 4 * <usize>load<u8>(i));
    store<u32>(to, character);
    to += <usize>(character >>> 24);
  }
  return to;
}

/** Text in a charset whose bytes below 0x80 are ASCII, wherever they stand: of that as it is, the rest by the reference. */
export function walkAsciiOrReference(column: usize, out: usize): usize {
  const begin = at;
  const length = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  const from = take(length);
  if (!isAscii(from, length)) return byReference(load<u32>(column, COLUMN_INDEX), begin, out);
  return copyAhead(putTextHead(out, length), from, length);
}

/** Member 0 is the empty text of an invalid value. */
export function walkEnum(column: usize, out: usize): usize {
  const number = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  if (number >= <usize>load<u32>(column, COLUMN_SIZE)) fail(FAIL_MEMBER, at);
  const member = plan + <usize>load<u32>(column, COLUMN_DATA) + number * MEMBER_BYTES;
  const length = <usize>load<u32>(member, MEMBER_LENGTH);
  return copyAhead(putTextHead(out, length), plan + <usize>load<u32>(member, MEMBER_TEXT), length);
}

export function walkSet(column: usize, out: usize): usize {
  const size = <usize>load<u8>(column, COLUMN_LENGTH_BYTES);
  const from = take(size);
  let chosen: u64 = 0;
  for (let i: usize = size; i > 0; i -= 1) chosen = (chosen << 8) | load<u8>(from + i - 1);
  const members = plan + <usize>load<u32>(column, COLUMN_DATA);
  if (chosen !== 0 && 63 - clz<u64>(chosen) >= <u64>load<u32>(column, COLUMN_SIZE)) fail(FAIL_MEMBER, from);
  let length: usize = 0;
  for (let rest = chosen; rest !== 0; rest &= rest - 1) {
    const member = members + <usize>ctz<u64>(rest) * MEMBER_BYTES;
    length += <usize>load<u32>(member, MEMBER_LENGTH) + 1;
  }
  // a comma less than members
  if (length > 0) length -= 1;
  let to = putTextHead(out, length);
  for (let rest = chosen; rest !== 0; rest &= rest - 1) {
    const member = members + <usize>ctz<u64>(rest) * MEMBER_BYTES;
    if (rest !== chosen) {
      store<u8>(to, 0x2c);
      to += 1;
    }
    to = copyAhead(to, plan + <usize>load<u32>(member, MEMBER_TEXT), <usize>load<u32>(member, MEMBER_LENGTH));
  }
  return to;
}
