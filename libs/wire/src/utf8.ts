import { isUtf8 } from 'node:buffer';

/** Up to here a loop costs less than the call into the runtime. */
const LOOP_BYTES = 128;

/** Whether `bytes[from, to)` is well-formed UTF-8 (Unicode, table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF. */
export function isWellFormedUtf8(bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from > LOOP_BYTES) return isUtf8(bytes.subarray(from, to));
  for (let at = from; at < to; ) {
    const first = bytes[at++] as number;
    if (first < 0x80) continue;
    if (first < 0xc2 || first > 0xf4) return false;
    const more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (at + more > to) return false;
    const second = bytes[at++] as number;
    const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
    const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return false;
    for (let i = 1; i < more; i++) if (((bytes[at++] as number) & 0xc0) !== 0x80) return false;
  }
  return true;
}
