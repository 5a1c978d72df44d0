/** Where records are written: pieces of values that walkers are made of. Each returns where the next byte goes. */
import { FAIL_ROOM } from '../src/transcribe/layout';
import { fail } from './host';

const VALUE: u32 = 0x0a;
const TEXT: u32 = 0x32;
const BYTES: u32 = 0x3a;
/** The one value that is NULL: frame, length, tag, true. */
const NULL_VALUE: u32 = 0x0108_020a;
/** Both lengths in front of so many bytes are a byte each. */
const SHORT: usize = 0x7d;
/** More than the largest value whose room nobody asks for, and what stands in front of any value. */
export const FIXED_ROOM: usize = 128;

let outputEnd: usize = 0;

/** Of the records to come. */
export function openOutput(end: usize): void {
  outputEnd = end;
}

/** Ends the call where there is no room for `bytes` more. */
export function room(out: usize, bytes: usize): void {
  if (bytes > outputEnd - out) fail(FAIL_ROOM, out);
}

export function putNull(out: usize): usize {
  store<u32>(out, NULL_VALUE);
  return out + 4;
}

export function putVarint(out: usize, value: u64): usize {
  let at = out;
  let rest = value;
  while (rest > 0x7f) {
    store<u8>(at, <u8>rest | 0x80);
    rest >>= 7;
    at += 1;
  }
  store<u8>(at, <u8>rest);
  return at + 1;
}

export function varintSize(value: u64): usize {
  return (70 - <usize>clz<u64>(value | 1)) / 7;
}

/** Of each half the upper and the lower 14 bits, of each quarter the upper and the lower seven. */
const QUARTERS_LOW: u64 = (0x3fff << 32) | 0x3fff;
const QUARTERS_HIGH: u64 = QUARTERS_LOW << 14;
const SEVENS_LOW: u64 = (0x7f << 48) | (0x7f << 32) | (0x7f << 16) | 0x7f;
const SEVENS_HIGH: u64 = SEVENS_LOW << 7;
/** Of seven bytes, that another follows. */
const MORE: u64 = 0x80_8080_8080_8080;

/** Each seven bits of a number below 2^56 in a byte of its own. */
function sevens(value: u64): u64 {
  const halves = ((value >> 28) << 32) | (value & 0x0fff_ffff);
  const quarters = ((halves & QUARTERS_HIGH) << 2) | (halves & QUARTERS_LOW);
  return ((quarters & SEVENS_HIGH) << 1) | (quarters & SEVENS_LOW);
}

/** A value that is a varint: eight bytes at once, of which the next value writes over those too many. */
export function putNumber(out: usize, tag: u32, value: u64): usize {
  const at = out + 3;
  let size: usize;
  if (value < 1 << 56) {
    size = varintSize(value);
    const butLast = ((<u64>1) << (8 * (size - 1))) - 1;
    store<u64>(at, sevens(value) | (MORE & butLast));
  } else size = putVarint(at, value) - at;
  // four bytes: the fourth is the number's first
  store<u16>(out, <u16>(VALUE | ((<u32>size + 1) << 8)));
  store<u8>(out + 2, <u8>tag);
  return at + size;
}

/** What stands in front of so many bytes, and room for these. */
function putHead(out: usize, tag: u32, bytes: usize): usize {
  if (bytes <= SHORT) {
    store<u32>(out, VALUE | ((<u32>bytes + 2) << 8) | (tag << 16) | ((<u32>bytes) << 24));
    return out + 4;
  }
  return putLongHead(out, tag, bytes);
}

function putLongHead(out: usize, tag: u32, bytes: usize): usize {
  store<u8>(out, <u8>VALUE);
  const at = putVarint(out + 1, 1 + varintSize(bytes) + bytes);
  store<u8>(at, <u8>tag);
  return putVarint(at + 1, bytes);
}

export function putTextHead(out: usize, bytes: usize): usize {
  room(out, bytes + FIXED_ROOM);
  return putHead(out, TEXT, bytes);
}

export function putBytesHead(out: usize, bytes: usize): usize {
  room(out, bytes + FIXED_ROOM);
  return putHead(out, BYTES, bytes);
}

/** Of a text that is short for sure: its bytes go behind four bytes left for this, which comes last. */
export function endShortText(out: usize, end: usize): usize {
  const bytes = <u32>(end - out - 4);
  store<u32>(out, VALUE | ((bytes + 2) << 8) | (TEXT << 16) | (bytes << 24));
  return end;
}

/** What a text of so many bytes has in front. */
export function headSize(bytes: usize): usize {
  const size = varintSize(bytes);
  return 1 + varintSize(1 + size + bytes) + 1 + size;
}

/** Up to seven bytes too many are read and written; the next value writes over them. */
export function copyAhead(out: usize, from: usize, bytes: usize): usize {
  for (let i: usize = 0; i < bytes; i += 8) store<u64>(out + i, load<u64>(from + i));
  return out + bytes;
}
