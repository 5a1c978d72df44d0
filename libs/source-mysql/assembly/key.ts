/**
 * Keys and partition hashes from row images that stand encoded in a message (docs/spec/keys.md): what wire's `row-key.ts` makes of JavaScript
 * values, made of the bytes. A value has one form only, so equal bytes are equal values; but for -0, which is 0 in a key.
 */
import {
  KEY_PART_BYTES,
  KEY_PART_COLUMN,
  KEY_PART_NAME,
  KEY_PART_NAME_LENGTH,
  PLAN_COLUMN_COUNT,
  PLAN_HASH_SEED,
  PLAN_KEY,
  PLAN_KEY_COUNT,
  PLAN_KEY_PREFIX,
  PLAN_KEY_PREFIX_LENGTH,
  PLAN_PARTITION,
  PLAN_PARTITION_COUNT,
} from '../src/transcribe/layout';
import { putUnsigned } from './digits';
import { rowHash } from './host';
import { copyAhead, FIXED_ROOM, room } from './output';
import { plan } from './plan';

const KEY_NULL: u8 = 0;
const KEY_INTEGER: u8 = 1;
const KEY_REAL: u8 = 2;
const KEY_TEXT: u8 = 3;
const KEY_BYTES: u8 = 4;
const KEY_ROW_HASH: u8 = 5;
const ROW_HASH_BYTES: usize = 16;

const VALUE_NULL: u8 = 0x08;
const VALUE_INT: u8 = 0x10;
const VALUE_UINT: u8 = 0x18;
const VALUE_FLOAT: u8 = 0x25;
const VALUE_DOUBLE: u8 = 0x29;
const VALUE_TEXT: u8 = 0x32;

/** Partition hash of the key that was written last. */
export let hash: u32 = 0;

/** FNV-1a, then the finaliser of MurmurHash3: wire's `partition.ts`. */
function hashBytes(seed: u32, from: usize, to: usize): u32 {
  let bits = seed;
  for (let at = from; at < to; at += 1) bits = (bits ^ load<u8>(at)) * 0x0100_0193;
  return bits;
}

function finishHash(seed: u32): u32 {
  let bits = seed;
  bits = (bits ^ (bits >>> 16)) * 0x85eb_ca6b;
  bits = (bits ^ (bits >>> 13)) * 0xc2b2_ae35;
  return bits ^ (bits >>> 16);
}

/** The key of the row whose values begin at `body`, each where `places` says. Returns where it ends. */
export function putKey(out: usize, body: usize, places: usize): usize {
  const count = <usize>load<u32>(plan, PLAN_KEY_COUNT);
  const prefix = <usize>load<u32>(plan, PLAN_KEY_PREFIX_LENGTH);
  room(out, prefix + FIXED_ROOM);
  let at = copyAhead(out, plan + <usize>load<u32>(plan, PLAN_KEY_PREFIX), prefix);
  let bits = load<u32>(plan, PLAN_HASH_SEED);
  if (count === 0) {
    const size = load<u32>(plan, PLAN_COLUMN_COUNT);
    let end = at;
    for (let i: usize = 0; i < <usize>size; i += 1) end = putKeyValue(end, valueAt(body, places, i));
    rowHash(at, end, at + 3);
    store<u8>(at, 0);
    store<u8>(at + 1, KEY_ROW_HASH);
    store<u8>(at + 2, <u8>ROW_HASH_BYTES);
    bits = hashBytes(bits, at + 1, at + 3 + ROW_HASH_BYTES);
    at += 3 + ROW_HASH_BYTES;
  }
  let part = plan + <usize>load<u32>(plan, PLAN_KEY);
  for (let i: usize = 0; i < count; i += 1, part += KEY_PART_BYTES) {
    const name = <usize>load<u32>(part, KEY_PART_NAME_LENGTH);
    room(at, name + FIXED_ROOM);
    at = copyAhead(at, plan + <usize>load<u32>(part, KEY_PART_NAME), name);
    const from = at;
    at = putKeyValue(at, valueAt(body, places, <usize>load<u32>(part, KEY_PART_COLUMN)));
    bits = hashBytes(bits, from, at);
  }
  const chosen = <usize>load<u32>(plan, PLAN_PARTITION_COUNT);
  if (chosen > 0) {
    const columns = plan + <usize>load<u32>(plan, PLAN_PARTITION);
    let end = at;
    for (let i: usize = 0; i < chosen; i += 1) {
      end = putKeyValue(end, valueAt(body, places, <usize>load<u32>(columns + 4 * i)));
    }
    bits = hashBytes(load<u32>(plan, PLAN_HASH_SEED), at, end);
  }
  hash = finishHash(bits);
  return at;
}

function valueAt(body: usize, places: usize, column: usize): usize {
  return body + <usize>load<u32>(places + 4 * column);
}

/** True when an update keeps the row's key and partition columns. */
export function sameKey(before: usize, placesBefore: usize, after: usize, placesAfter: usize): bool {
  const count = <usize>load<u32>(plan, PLAN_KEY_COUNT);
  if (count === 0) {
    const size = <usize>load<u32>(plan, PLAN_COLUMN_COUNT);
    for (let i: usize = 0; i < size; i += 1) {
      if (!sameValue(valueAt(before, placesBefore, i), valueAt(after, placesAfter, i))) return false;
    }
    return true;
  }
  let part = plan + <usize>load<u32>(plan, PLAN_KEY);
  for (let i: usize = 0; i < count; i += 1, part += KEY_PART_BYTES) {
    const column = <usize>load<u32>(part, KEY_PART_COLUMN);
    if (!sameValue(valueAt(before, placesBefore, column), valueAt(after, placesAfter, column))) return false;
  }
  const chosen = <usize>load<u32>(plan, PLAN_PARTITION_COUNT);
  const columns = plan + <usize>load<u32>(plan, PLAN_PARTITION);
  for (let i: usize = 0; i < chosen; i += 1) {
    const column = <usize>load<u32>(columns + 4 * i);
    if (!sameValue(valueAt(before, placesBefore, column), valueAt(after, placesAfter, column))) return false;
  }
  return true;
}

function sameValue(old: usize, next: usize): bool {
  // the length is part of the frame: where the first difference is behind it, both are equally long
  const length = frameEnd(old) - old;
  for (let i: usize = 0; i < length; i += 1) if (load<u8>(old + i) !== load<u8>(next + i)) return sameReal(old, next);
  return true;
}

/** Of values whose bytes differ, by their frames: true for 0 and -0 alone. A real has a frame of one byte, so the tag's place is sure. */
function sameReal(old: usize, next: usize): bool {
  const size = load<u8>(old + 1);
  const tag = load<u8>(old + 2);
  if (size !== load<u8>(next + 1) || tag !== load<u8>(next + 2)) return false;
  if (size === 5 && tag === VALUE_FLOAT) return load<f32>(old + 3) === load<f32>(next + 3);
  if (size === 9 && tag === VALUE_DOUBLE) return load<f64>(old + 3) === load<f64>(next + 3);
  return false;
}

function frameEnd(frame: usize): usize {
  let at = frame + 1;
  let length: usize = 0;
  for (let shift: usize = 0; ; shift += 7) {
    const byte = load<u8>(at);
    at += 1;
    length |= (<usize>(byte & 0x7f)) << shift;
    if (byte < 0x80) break;
  }
  return at + length;
}

/** Of the value whose frame begins there. */
function putKeyValue(out: usize, frame: usize): usize {
  const end = frameEnd(frame);
  let tagAt = frame + 1;
  while (load<u8>(tagAt) > 0x7f) tagAt += 1;
  tagAt += 1;
  const content = tagAt + 1;
  room(out, end - content + FIXED_ROOM);
  switch (load<u8>(tagAt)) {
    case VALUE_NULL:
      store<u8>(out, KEY_NULL);
      return out + 1;
    case VALUE_INT: {
      const zigzag = readVarint(content);
      return putInteger(out, (zigzag >> 1) + (zigzag & 1), (zigzag & 1) === 1);
    }
    case VALUE_UINT:
      return putInteger(out, readVarint(content), false);
    case VALUE_FLOAT:
      return putReal(out, <f64>load<f32>(content));
    case VALUE_DOUBLE:
      return putReal(out, load<f64>(content));
    case VALUE_TEXT:
      store<u8>(out, KEY_TEXT);
      break;
    default:
      store<u8>(out, KEY_BYTES);
  }
  // texts and bytes: the length and what it counts stand in a key as in a message
  return copyAhead(out + 1, content, end - content);
}

function readVarint(from: usize): u64 {
  let value: u64 = 0;
  let at = from;
  for (let shift: u64 = 0; ; shift += 7) {
    const byte = load<u8>(at);
    value |= (<u64>(byte & 0x7f)) << shift;
    if (byte < 0x80) break;
    at += 1;
  }
  return value;
}

function putInteger(out: usize, size: u64, negative: bool): usize {
  store<u8>(out, KEY_INTEGER);
  let at = out + 2;
  if (negative) {
    store<u8>(at, 0x2d);
    at += 1;
  }
  at = putUnsigned(at, size);
  store<u8>(out + 1, <u8>(at - out - 2));
  return at;
}

/** -0 becomes 0. */
function putReal(out: usize, value: f64): usize {
  store<u8>(out, KEY_REAL);
  store<u8>(out + 1, 8);
  store<u64>(out + 2, bswap<u64>(reinterpret<u64>(value + 0)));
  return out + 10;
}
