/** Numbers as decimal digits. */

/** The two digits of each number below 100. */
const PAIRS: usize = memory.data(200);
for (let i: usize = 0; i < 100; i += 1) {
  store<u8>(PAIRS + 2 * i, 48 + <u8>(i / 10));
  store<u8>(PAIRS + 2 * i + 1, 48 + <u8>(i % 10));
}

/** Two digits of a number below 100. */
export function putPair(out: usize, value: u32): void {
  store<u16>(out, load<u16>(PAIRS + 2 * <usize>value));
}

/** Exactly `count` digits, zeros in front. Returns where they end. */
export function putDigits(out: usize, value: u32, count: usize): usize {
  const end = out + count;
  let at = end;
  let rest = value;
  while (at > out + 1) {
    const next = rest / 100;
    at -= 2;
    putPair(at, rest - next * 100);
    rest = next;
  }
  if (at > out) store<u8>(out, 48 + <u8>rest);
  return end;
}

/** Of a number below 10^9; 1 for 0. */
export function digitCount(value: u32): usize {
  if (value < 100_000) {
    if (value < 100) return value < 10 ? 1 : 2;
    if (value < 1000) return 3;
    return value < 10_000 ? 4 : 5;
  }
  if (value < 10_000_000) return value < 1_000_000 ? 6 : 7;
  return value < 100_000_000 ? 8 : 9;
}

const BILLION: u64 = 1_000_000_000;

/** Without zeros in front. Returns where they end. */
export function putUnsigned(out: usize, value: u64): usize {
  if (value < BILLION) {
    const small = <u32>value;
    return putDigits(out, small, digitCount(small));
  }
  const upper = value / BILLION;
  const at = putUnsigned(out, upper);
  return putDigits(at, <u32>(value - upper * BILLION), 9);
}
