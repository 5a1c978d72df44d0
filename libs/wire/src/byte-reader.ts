/**
 * Reads protobuf bytes that may be damaged or hostile: every length is held against what is there before anything is
 * read or allocated, and every fault names its byte.
 */
import { Buffer, isUtf8 } from 'node:buffer';
import type { MysyncError } from '@mysync/core';
import { wireErrors } from './errors.ts';
import { WIRE_BYTES, WIRE_FIXED32, WIRE_FIXED64, WIRE_VARINT } from './wire-format.ts';

const TWO_32 = 4294967296;
const NOTHING = Buffer.alloc(0);

export class ByteReader {
  buffer: Buffer = NOTHING;
  position = 0;
  /** Halves of the number that `varint64` read last. */
  low = 0;
  high = 0;

  open(bytes: Uint8Array): void {
    this.buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = 0;
  }

  fault(message: string, at = this.position): MysyncError {
    return wireErrors.WIRE_MESSAGE_INVALID({ message, where: { byte: at } });
  }

  /** Fills `low` and `high`. */
  varint64(end: number): void {
    const buffer = this.buffer;
    const from = this.position;
    let at = from;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= end) throw this.fault('a number is cut off', from);
      const byte = buffer[at++] as number;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else if (byte > 1) throw this.fault('a number has more than 64 bits', from);
      else high |= bits << 31;
      if (byte < 0x80) {
        this.low = low >>> 0;
        this.high = high >>> 0;
        this.position = at;
        return;
      }
    }
    throw this.fault('a number has more than ten bytes', from);
  }

  /** A whole number below 2^53. */
  varint(end: number): number {
    const at = this.position;
    if (at < end) {
      const byte = this.buffer[at] as number;
      if (byte < 0x80) {
        this.position = at + 1;
        return byte;
      }
    }
    this.varint64(end);
    if (this.high > 0x1fffff) throw this.fault('a number is 2^53 or more', at);
    return this.high * TWO_32 + this.low;
  }

  /** Reads a length and returns where what it measures ends; it must end at or before `end`. */
  until(end: number): number {
    const at = this.position;
    const length = this.varint(end);
    const stop = this.position + length;
    if (stop > end) throw this.fault(`a length of ${length} bytes reaches ${stop - end} beyond the end`, at);
    return stop;
  }

  /** A length and so many bytes of UTF-8. */
  text(end: number): string {
    const stop = this.until(end);
    const from = this.position;
    this.position = stop;
    // Members of enums, flags, empty text: not worth a call into the runtime.
    if (stop - from < 2) {
      if (stop === from) return '';
      const byte = this.buffer[from] as number;
      if (byte < 0x80) return String.fromCharCode(byte);
    }
    const text = this.buffer.toString('utf8', from, stop);
    // What is not UTF-8 decodes as U+FFFD, which is also a character that may be meant.
    if (text.includes('\ufffd') && !isUtf8(this.buffer.subarray(from, stop)))
      throw this.fault('text is not UTF-8', from);
    return text;
  }

  /** A length and so many bytes: a view, not a copy. */
  bytes(end: number): Buffer {
    const stop = this.until(end);
    const from = this.position;
    this.position = stop;
    return this.buffer.subarray(from, stop);
  }

  /** Moves `bytes` on and returns where they begin. */
  fixed(bytes: number, end: number): number {
    const at = this.position;
    if (at + bytes > end) throw this.fault('a number is cut off');
    this.position = at + bytes;
    return at;
  }

  /** Steps over a field that is not known. */
  skip(tag: number, end: number): void {
    if (tag >>> 3 === 0) throw this.fault('a field has the number 0');
    switch (tag & 7) {
      case WIRE_VARINT:
        this.varint64(end);
        return;
      case WIRE_FIXED64:
        this.fixed(8, end);
        return;
      case WIRE_BYTES:
        this.position = this.until(end);
        return;
      case WIRE_FIXED32:
        this.fixed(4, end);
        return;
      default:
        throw this.fault(`a field has the wire type ${tag & 7}`);
    }
  }
}
