/** Bytes as text. */

/** Eight bytes at once: whether one of them is above 0x7f. */
const HIGH: u64 = (0x8080_8080 << 32) | 0x8080_8080;

/** Copies, up to seven bytes too many, and tells whether a byte above 0x7f was among the right ones. */
export function copyAndLook(out: usize, from: usize, bytes: usize): bool {
  let bits: u64 = 0;
  let i: usize = 0;
  for (; i + 8 <= bytes; i += 8) {
    const eight = load<u64>(from + i);
    bits |= eight;
    store<u64>(out + i, eight);
  }
  const rest = bytes - i;
  if (rest > 0) {
    const eight = load<u64>(from + i);
    store<u64>(out + i, eight);
    bits |= eight & (((<u64>1) << (8 * <u64>rest)) - 1);
  }
  return (bits & HIGH) !== 0;
}

export function isAscii(from: usize, bytes: usize): bool {
  let bits: u64 = 0;
  let i: usize = 0;
  for (; i + 8 <= bytes; i += 8) bits |= load<u64>(from + i);
  const rest = bytes - i;
  if (rest > 0) bits |= load<u64>(from + i) & (((<u64>1) << (8 * <u64>rest)) - 1);
  return (bits & HIGH) === 0;
}

/** Well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. */
export function isWellFormed(from: usize, to: usize): bool {
  let at = from;
  while (at < to) {
    if (at + 8 <= to && (load<u64>(at) & HIGH) === 0) {
      at += 8;
      continue;
    }
    const first = load<u8>(at);
    at += 1;
    if (first < 0x80) continue;
    if (first < 0xc2 || first > 0xf4) return false;
    const more: usize = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (more > to - at) return false;
    const second = load<u8>(at);
    const least: u8 = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
    const most: u8 = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return false;
    for (let i: usize = 1; i < more; i += 1) if ((load<u8>(at + i) & 0xc0) !== 0x80) return false;
    at += more;
  }
  return true;
}
