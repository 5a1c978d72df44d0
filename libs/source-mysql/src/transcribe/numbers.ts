/** Walkers of integers, floats, BIT, YEAR and DECIMAL. */
import {
  beginShortText,
  digitCount,
  endShortText,
  putDigits,
  writeDouble,
  writeFloat,
  writeInt32,
  writeInt64,
  writeUint64,
} from '@mysync/wire';
import { GROUP_BYTES } from '../binlog/decimal.ts';
import type { Walk } from './column-walk.ts';
import { walkReference } from './reference.ts';

export const walkInt8: Walk = (_column, source, out) => writeInt32(out, source.view.getInt8(source.take(1)));

export const walkInt16: Walk = (_column, source, out) => writeInt32(out, source.view.getInt16(source.take(2), true));

export const walkInt24: Walk = (_column, source, out) => writeInt32(out, (source.length(3) << 8) >> 8);

export const walkInt32: Walk = (_column, source, out) => writeInt32(out, source.view.getInt32(source.take(4), true));

export const walkInt64: Walk = (_column, source, out) => {
  const at = source.take(8);
  writeInt64(out, source.view.getUint32(at, true), source.view.getUint32(at + 4, true));
};

/** Unsigned, of `size` bytes up to four. */
export const walkUint: Walk = (column, source, out) => writeUint64(out, source.length(column.size), 0);

export const walkUint64: Walk = (_column, source, out) => {
  const at = source.take(8);
  writeUint64(out, source.view.getUint32(at, true), source.view.getUint32(at + 4, true));
};

export const walkYear: Walk = (_column, source, out) => {
  const year = source.buffer[source.take(1)] as number;
  writeUint64(out, year === 0 ? 0 : year + 1900, 0);
};

/** Big-endian, `size` bytes. */
export const walkBit: Walk = (column, source, out) => {
  const { size } = column;
  const at = source.take(size);
  let low = 0;
  let high = 0;
  for (let i = 0; i < size; i += 1) {
    high = ((high << 8) | (low >>> 24)) >>> 0;
    low = ((low << 8) | (source.buffer[at + i] as number)) >>> 0;
  }
  writeUint64(out, low, high);
};

const FLOAT_EXPONENT = 0x7f80_0000;
const DOUBLE_EXPONENT = 0x7ff0_0000;

export const walkFloat: Walk = (column, source, out) => {
  const at = source.take(4);
  const bits = source.view.getUint32(at, true);
  if ((bits & FLOAT_EXPONENT) === FLOAT_EXPONENT) walkReference(column, source, out, at);
  else writeFloat(out, bits);
};

export const walkDouble: Walk = (column, source, out) => {
  const at = source.take(8);
  const high = source.view.getUint32(at + 4, true);
  if ((high & DOUBLE_EXPONENT) === DOUBLE_EXPONENT) walkReference(column, source, out, at);
  else writeDouble(out, source.view.getUint32(at, true), high);
};

/** Sign, 65 digits and point. */
const DECIMAL_TEXT = 68;
const POWERS = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000] as const;

/** The format is told in `binlog/decimal.ts`. */
export const walkDecimal: Walk = (column, source, out) => {
  const { wholeGroups, fractionGroups } = column;
  const { buffer } = source;
  let from = source.take(column.size);
  const begun = beginShortText(out, DECIMAL_TEXT);
  const target = out.buffer;
  let at = out.position;
  const negative = ((buffer[from] as number) & 0x80) === 0;
  const mask = negative ? 0xff : 0;
  let first = 0x80;
  if (negative) target[at++] = 0x2d;
  const digits = at;
  for (let i = 0; i < wholeGroups.length + fractionGroups.length; i += 1) {
    const isWhole = i < wholeGroups.length;
    const count = (isWhole ? wholeGroups[i] : fractionGroups[i - wholeGroups.length]) as number;
    let value = 0;
    for (let bytes = GROUP_BYTES[count] as number; bytes > 0; bytes -= 1) {
      value = value * 256 + (((buffer[from++] as number) ^ mask ^ first) & 0xff);
      first = 0;
    }
    if (value >= (POWERS[count] as number)) throw new RangeError(`${value} in place of ${count} digits`);
    if (isWhole && at === digits) {
      // no zeros in front
      if (value === 0) continue;
      const shown = digitCount(value);
      putDigits(target, at, value, shown);
      at += shown;
      continue;
    }
    if (i === wholeGroups.length) {
      if (at === digits) target[at++] = 0x30;
      target[at++] = 0x2e;
    }
    putDigits(target, at, value, count);
    at += count;
  }
  if (at === digits) target[at++] = 0x30;
  out.position = at;
  endShortText(out, begun);
};
