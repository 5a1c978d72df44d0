/** Walkers of integers, floats, BIT, YEAR and DECIMAL. */
import {
  COLUMN_DATA,
  COLUMN_FRACTION_GROUPS,
  COLUMN_INDEX,
  COLUMN_SIZE,
  COLUMN_WHOLE_GROUPS,
  FAIL_DECIMAL,
} from '../src/transcribe/layout';
import { digitCount, putDigits } from './digits';
import { fail } from './host';
import { endShortText, putNumber } from './output';
import { plan } from './plan';
import { byReference } from './reference';
import { take } from './source';

const INT: u32 = 0x10;
const UINT: u32 = 0x18;

function putSigned(out: usize, value: i64): usize {
  return putNumber(out, INT, <u64>((value << 1) ^ (value >> 63)));
}

function putUnsignedNumber(out: usize, value: u64): usize {
  return putNumber(out, UINT, value);
}

export function walkInt8(out: usize): usize {
  return putSigned(out, load<i8>(take(1)));
}

export function walkInt16(out: usize): usize {
  return putSigned(out, load<i16>(take(2)));
}

export function walkInt24(out: usize): usize {
  return putSigned(out, <i32>(load<u32>(take(3)) << 8) >> 8);
}

export function walkInt32(out: usize): usize {
  return putSigned(out, load<i32>(take(4)));
}

export function walkInt64(out: usize): usize {
  return putSigned(out, load<i64>(take(8)));
}

export function walkUint8(out: usize): usize {
  return putUnsignedNumber(out, load<u8>(take(1)));
}

export function walkUint16(out: usize): usize {
  return putUnsignedNumber(out, load<u16>(take(2)));
}

export function walkUint24(out: usize): usize {
  return putUnsignedNumber(out, load<u32>(take(3)) & 0xff_ffff);
}

export function walkUint32(out: usize): usize {
  return putUnsignedNumber(out, load<u32>(take(4)));
}

export function walkUint64(out: usize): usize {
  return putUnsignedNumber(out, load<u64>(take(8)));
}

export function walkYear(out: usize): usize {
  const year = <u64>load<u8>(take(1));
  return putUnsignedNumber(out, year === 0 ? 0 : year + 1900);
}

/** Big-endian, `size` bytes. */
export function walkBit(column: usize, out: usize): usize {
  const size = <usize>load<u32>(column, COLUMN_SIZE);
  const from = take(size);
  let value: u64 = 0;
  for (let i: usize = 0; i < size; i += 1) value = (value << 8) | load<u8>(from + i);
  return putUnsignedNumber(out, value);
}

/** What is no number is for the reference to refuse. */
export function walkFloat(column: usize, out: usize): usize {
  const from = take(4);
  const bits = load<u32>(from);
  if ((bits & 0x7f80_0000) === 0x7f80_0000) return byReference(load<u32>(column, COLUMN_INDEX), from, out);
  store<u32>(out, 0x0025_050a);
  store<u32>(out + 3, bits);
  return out + 7;
}

export function walkDouble(column: usize, out: usize): usize {
  const from = take(8);
  const bits = load<u64>(from);
  if ((bits & 0x7ff0_0000_0000_0000) === 0x7ff0_0000_0000_0000) {
    return byReference(load<u32>(column, COLUMN_INDEX), from, out);
  }
  store<u32>(out, 0x0029_090a);
  store<u64>(out + 3, bits);
  return out + 11;
}

/** By number of digits. */
const GROUP_BYTES: usize = memory.data<u8>([0, 1, 1, 2, 2, 3, 3, 4, 4, 4]);
const POWERS: usize = memory.data<u32>([
  1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
]);

/** The format is told in `binlog/decimal.ts`. */
export function walkDecimal(column: usize, out: usize): usize {
  let from = take(<usize>load<u32>(column, COLUMN_SIZE));
  const whole = <usize>load<u8>(column, COLUMN_WHOLE_GROUPS);
  const groups = whole + <usize>load<u8>(column, COLUMN_FRACTION_GROUPS);
  const digits = plan + <usize>load<u32>(column, COLUMN_DATA);
  const negative = (load<u8>(from) & 0x80) === 0;
  const mask: u32 = negative ? 0xffff_ffff : 0;
  let first: u32 = 0x8000_0000;
  let at = out + 4;
  if (negative) {
    store<u8>(at, 0x2d);
    at += 1;
  }
  const begin = at;
  for (let i: usize = 0; i < groups; i += 1) {
    const count = <usize>load<u8>(digits + i);
    const bytes = <usize>load<u8>(GROUP_BYTES + count);
    const value = (bswap<u32>(load<u32>(from)) ^ mask ^ first) >>> (32 - 8 * <u32>bytes);
    from += bytes;
    first = 0;
    if (value >= load<u32>(POWERS + 4 * count)) fail(FAIL_DECIMAL, from);
    if (i < whole && at === begin) {
      // no zeros in front
      if (value > 0) at = putDigits(at, value, digitCount(value));
      continue;
    }
    if (i === whole) {
      if (at === begin) {
        store<u8>(at, 0x30);
        at += 1;
      }
      store<u8>(at, 0x2e);
      at += 1;
    }
    at = putDigits(at, value, count);
  }
  if (at === begin) {
    store<u8>(at, 0x30);
    at += 1;
  }
  return endShortText(out, at);
}
