/** Numbers as decimal digits, straight into bytes: no string is made. */
import type { ByteWriter } from './byte-writer.ts';

const TWO_32 = 4294967296;
const BILLION = 1_000_000_000;

/** Writes exactly `count` digits of a number below 10^9 at `at`, zeros in front. The caller has made room. */
export function putDigits(bytes: Uint8Array, at: number, value: number, count: number): void {
  let rest = value | 0;
  for (let i = at + count - 1; i >= at; i--) {
    const next = (rest / 10) | 0;
    bytes[i] = 48 + rest - next * 10;
    rest = next;
  }
}

/** Digits of a number below 10^9; 1 for 0. */
export function digitCount(value: number): number {
  if (value < 100_000) {
    if (value < 100) return value < 10 ? 1 : 2;
    if (value < 1000) return 3;
    return value < 10_000 ? 4 : 5;
  }
  if (value < 10_000_000) return value < 1_000_000 ? 6 : 7;
  return value < 100_000_000 ? 8 : 9;
}

/** Appends an unsigned 64-bit number, given in halves, without zeros in front. */
export function writeUnsigned(writer: ByteWriter, low: number, high: number): void {
  writer.ensure(20);
  if (high === 0 && low < BILLION) {
    plain(writer, low);
    return;
  }
  if (high < 0x200000) {
    const value = high * TWO_32 + low;
    const upper = Math.floor(value / BILLION);
    inGroups(writer, upper, value - upper * BILLION);
    return;
  }
  // long division by 10^9 in digits of 16 bits: each step stays below 2^46
  let rest = high % BILLION;
  const top = (high - rest) / BILLION;
  rest = rest * 65536 + (low >>> 16);
  const middle = Math.floor(rest / BILLION);
  rest = (rest - middle * BILLION) * 65536 + (low & 0xffff);
  const bottom = Math.floor(rest / BILLION);
  inGroups(writer, top * TWO_32 + middle * 65536 + bottom, rest - bottom * BILLION);
}

function plain(writer: ByteWriter, value: number): void {
  const count = digitCount(value);
  putDigits(writer.buffer, writer.position, value, count);
  writer.position += count;
}

/** `upper` · 10^9 + `lower`, with `upper` below 2^53. */
function inGroups(writer: ByteWriter, upper: number, lower: number): void {
  if (upper < BILLION) plain(writer, upper);
  else {
    const top = Math.floor(upper / BILLION);
    plain(writer, top);
    putDigits(writer.buffer, writer.position, upper - top * BILLION, 9);
    writer.position += 9;
  }
  putDigits(writer.buffer, writer.position, lower, 9);
  writer.position += 9;
}
