/**
 * MySQL's binary JSON as the text that the server prints. What stands where and how it prints is told in `json/binary-json.ts`, which is
 * also asked for opaque values and for doubles of many digits.
 */
import {
  COLUMN_LENGTH_BYTES,
  FAIL_JSON,
  FAIL_JSON_DEPTH,
  FAIL_JSON_LENGTH,
  FAIL_JSON_TWICE,
} from '../src/transcribe/layout';
import { putDigits, putUnsigned } from './digits';
import { fail, jsonDouble, jsonOpaque, jsonText } from './host';
import { copyAhead, FIXED_ROOM, headSize, putTextHead, room } from './output';
import { take, takeLength } from './source';
import { isWellFormed } from './utf8';

const SMALL_OBJECT: u32 = 0x00;
const LARGE_OBJECT: u32 = 0x01;
const SMALL_ARRAY: u32 = 0x02;
const LARGE_ARRAY: u32 = 0x03;
const LITERAL: u32 = 0x04;
const INT16: u32 = 0x05;
const UINT16: u32 = 0x06;
const INT32: u32 = 0x07;
const UINT32: u32 = 0x08;
const INT64: u32 = 0x09;
const UINT64: u32 = 0x0a;
const DOUBLE: u32 = 0x0b;
const STRING: u32 = 0x0c;
const OPAQUE: u32 = 0x0f;
const MAX_DEPTH: u32 = 100;

const MINUS: u8 = 0x2d;
const QUOTE: u8 = 0x22;
const BACKSLASH: u8 = 0x5c;
/** ', ' and ': '. */
const COMMA: u16 = 0x202c;
const COLON: u16 = 0x203a;
/** 'null', 'true' and 'false'. */
const NULL: u32 = 0x6c6c_756e;
const TRUE: u32 = 0x6575_7274;
const FALSE: u64 = 0x65_736c_6166;

/** For each byte: 0 stands for itself, 1 is written as six characters, another number is the letter behind a backslash. */
const ESCAPES: usize = memory.data(256);
memory.fill(ESCAPES, 1, 0x20);
store<u8>(ESCAPES + 0x22, 0x22);
store<u8>(ESCAPES + 0x5c, 0x5c);
store<u8>(ESCAPES + 8, 0x62);
store<u8>(ESCAPES + 9, 0x74);
store<u8>(ESCAPES + 10, 0x6e);
store<u8>(ESCAPES + 12, 0x66);
store<u8>(ESCAPES + 13, 0x72);

/** The document, and how many bytes of it nothing has used yet. */
let documentStart: usize = 0;
let documentEnd: usize = 0;
let unused: usize = 0;
/** Where the piece ends whose beginning `piece` returned. */
let pieceEnd: usize = 0;

export function walkJson(column: usize, out: usize): usize {
  const length = takeLength(load<u8>(column, COLUMN_LENGTH_BYTES));
  const from = take(length);
  // in most documents the text is about as long as the bytes
  const guess = headSize(length);
  room(out, guess + FIXED_ROOM);
  const text = out + guess;
  const end = putDocument(text, from, from + length);
  const bytes = end - text;
  const size = headSize(bytes);
  room(out, size + bytes + FIXED_ROOM);
  if (size !== guess) memory.copy(out + size, text, bytes);
  return putTextHead(out, bytes) + bytes;
}

function putDocument(out: usize, from: usize, end: usize): usize {
  if (from === end) return putNull(out);
  documentStart = from;
  documentEnd = end;
  unused = end - from;
  return putValue(out, load<u8>(from), from + 1, 0);
}

function putNull(out: usize): usize {
  store<u32>(out, NULL);
  return out + 4;
}

function putValue(out: usize, kind: u32, at: usize, depth: u32): usize {
  room(out, FIXED_ROOM);
  if (depth > MAX_DEPTH) fail(FAIL_JSON_DEPTH, at);
  switch (kind) {
    case SMALL_OBJECT:
      return putContainer(out, at, 2, true, depth);
    case LARGE_OBJECT:
      return putContainer(out, at, 4, true, depth);
    case SMALL_ARRAY:
      return putContainer(out, at, 2, false, depth);
    case LARGE_ARRAY:
      return putContainer(out, at, 4, false, depth);
    case LITERAL:
      return putLiteral(out, load<u8>(inside(at, 1)));
    case INT16:
      return putSigned(out, load<i16>(inside(at, 2)));
    case UINT16:
      return putUnsigned(out, load<u16>(inside(at, 2)));
    case INT32:
      return putSigned(out, load<i32>(inside(at, 4)));
    case UINT32:
      return putUnsigned(out, load<u32>(inside(at, 4)));
    case INT64:
      return putSigned(out, load<i64>(inside(at, 8)));
    case UINT64:
      return putUnsigned(out, load<u64>(inside(at, 8)));
    case DOUBLE:
      return putDouble(out, load<f64>(inside(at, 8)));
    case STRING: {
      const from = piece(at);
      return putQuoted(out, from, pieceEnd);
    }
    case OPAQUE: {
      const type = load<u8>(inside(at, 1));
      const from = piece(at + 1);
      return jsonOpaque(type, from, pieceEnd, documentStart, documentEnd, out);
    }
    default:
      fail(FAIL_JSON, at);
      return out;
  }
}

function putLiteral(out: usize, code: u32): usize {
  if (code === 0) return putNull(out);
  if (code === 1) {
    store<u32>(out, TRUE);
    return out + 4;
  }
  if (code !== 2) fail(FAIL_JSON, out);
  store<u64>(out, FALSE);
  return out + 5;
}

/**
 * Counts and offsets are `width` bytes; offsets count from the container's start. Entries of keys (offset, length of two bytes) come
 * first, then those of values (kind, offset), in which small values stand themselves.
 */
function putContainer(out: usize, start: usize, width: usize, isObject: bool, depth: u32): usize {
  const count = number(start, width);
  const keys = start + 2 * width;
  let to = out;
  store<u8>(to, isObject ? 0x7b : 0x5b);
  to += 1;
  // a count too large ends at the first entry outside the document
  let entry: usize = keys;
  if (isObject) {
    if (count > documentEnd - documentStart) fail(FAIL_JSON, start);
    entry += count * (width + 2);
  }
  for (let i: usize = 0; i < count; i += 1) {
    room(to, FIXED_ROOM);
    if (i > 0) {
      store<u16>(to, COMMA);
      to += 2;
    }
    if (isObject) {
      const key = keys + i * (width + 2);
      const length = number(key + width, 2);
      const from = start + number(key, width);
      if (from < start || from > documentEnd || length > documentEnd - from) fail(FAIL_JSON, key);
      use(width + 2 + length);
      to = putQuoted(to, from, from + length);
      store<u16>(to, COLON);
      to += 2;
    }
    const kind = load<u8>(inside(entry, 1));
    use(1 + width);
    let at = entry + 1;
    if (!isInline(kind, width)) {
      at = start + number(entry + 1, width);
      if (at < start) fail(FAIL_JSON, entry);
    }
    to = putValue(to, kind, at, depth + 1);
    entry += 1 + width;
  }
  room(to, FIXED_ROOM);
  store<u8>(to, isObject ? 0x7d : 0x5d);
  return to + 1;
}

/** Numbers of 32 bits fit into an entry of a large container only. */
function isInline(kind: u32, width: usize): bool {
  if (kind === LITERAL || kind === INT16 || kind === UINT16) return true;
  return width === 4 && (kind === INT32 || kind === UINT32);
}

function number(at: usize, width: usize): usize {
  inside(at, width);
  return width === 2 ? <usize>load<u16>(at) : <usize>load<u32>(at);
}

function inside(at: usize, bytes: usize): usize {
  if (at > documentEnd || bytes > documentEnd - at) fail(FAIL_JSON, at);
  return at;
}

function use(bytes: usize): void {
  if (bytes > unused) fail(FAIL_JSON_TWICE, documentStart);
  unused -= bytes;
}

/** A length in groups of seven bits, lowest first, and that many bytes. */
function piece(at: usize): usize {
  let length: u64 = 0;
  for (let i: usize = 0; i < 5; i += 1) {
    const byte = load<u8>(inside(at + i, 1));
    length |= (<u64>(byte & 0x7f)) << (7 * <u64>i);
    if (byte > 0x7f) continue;
    const from = at + i + 1;
    if (length > <u64>(documentEnd - from)) fail(length > <u64>unused ? FAIL_JSON_TWICE : FAIL_JSON, at);
    use(<usize>length);
    pieceEnd = from + <usize>length;
    return from;
  }
  fail(FAIL_JSON_LENGTH, at);
  return at;
}

function putQuoted(out: usize, from: usize, end: usize): usize {
  let escapes: u8 = 0;
  let high: u8 = 0;
  for (let at = from; at < end; at += 1) {
    const byte = load<u8>(at);
    high |= byte;
    escapes |= load<u8>(ESCAPES + <usize>byte);
  }
  if (high > 0x7f && !isWellFormed(from, end)) return jsonText(from, end, out);
  // six characters for a byte at most
  room(out, (escapes === 0 ? end - from : 6 * (end - from)) + FIXED_ROOM);
  store<u8>(out, QUOTE);
  let to = out + 1;
  if (escapes === 0) to = copyAhead(to, from, end - from);
  else for (let at = from; at < end; at += 1) to = putEscaped(to, load<u8>(at));
  store<u8>(to, QUOTE);
  return to + 1;
}

function putEscaped(out: usize, byte: u8): usize {
  const how = load<u8>(ESCAPES + <usize>byte);
  if (how === 0) {
    store<u8>(out, byte);
    return out + 1;
  }
  store<u8>(out, BACKSLASH);
  if (how > 1) {
    store<u8>(out + 1, how);
    return out + 2;
  }
  store<u32>(out + 1, 0x3030_3075); // 'u000'
  store<u8>(out + 4, 0x30 + (byte >> 4));
  const low = byte & 15;
  store<u8>(out + 5, low < 10 ? 0x30 + low : 0x57 + low);
  return out + 6;
}

function putSigned(out: usize, value: i64): usize {
  if (value >= 0) return putUnsigned(out, value);
  store<u8>(out, MINUS);
  return putUnsigned(out + 1, 0 - <u64>value);
}

/** Every decimal of 15 digits is a double of its own. */
const FIFTEEN_DIGITS: f64 = 1e15;

/**
 * As `doubleText`, for numbers of few digits: a decimal of at most 15 digits that reads as this number is the shortest that does, since no
 * other of them does. Power and whole number are exact, so the division rounds as reading does.
 */
function putDouble(out: usize, value: f64): usize {
  const size = abs<f64>(value);
  if (size > 0 && size < FIFTEEN_DIGITS) {
    let power: f64 = 1;
    for (let digits: usize = 0; digits < 7; digits += 1) {
      const scaled = floor<f64>(size * power + 0.5);
      if (scaled >= FIFTEEN_DIGITS) break;
      if (scaled / power === size) {
        let at = out;
        if (value < 0) {
          store<u8>(at, MINUS);
          at += 1;
        }
        const whole = floor<f64>(scaled / power);
        at = putUnsigned(at, <u64>whole);
        store<u8>(at, 0x2e);
        return putDigits(at + 1, <u32>(scaled - whole * power), digits > 0 ? digits : 1);
      }
      power *= 10;
    }
  }
  return jsonDouble(value, out);
}
