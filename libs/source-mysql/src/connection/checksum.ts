/** The checksum of the log's events: CRC-32, zlib's. */
import { crc32 } from 'node:zlib';

/** Up to here a loop costs less than the view and the call of the library's (measured on Node 20). */
const LOOP_BYTES = 96;
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1) === 1 ? (value >>> 1) ^ 0xedb8_8320 : value >>> 1;
  return value;
});

/** Of `buffer[start, end)`, unsigned. */
export function checksum(buffer: Buffer, start: number, end: number): number {
  if (end - start > LOOP_BYTES) return crc32(buffer.subarray(start, end));
  let value = 0xffff_ffff;
  for (let at = start; at < end; at += 1) {
    value = (TABLE[(value ^ (buffer[at] as number)) & 0xff] as number) ^ (value >>> 8);
  }
  return (value ^ 0xffff_ffff) >>> 0;
}
