/**
 * Writes protobuf and key bytes into slabs that are never written twice.
 *
 * 1. `take` hands a finished piece to its receiver, who owns it: nobody writes to those bytes again.
 * 2. A piece is contiguous: when a slab is full, what was begun moves to the next one. So places that are kept across writes
 *    are counted from `start`, never from the slab's beginning.
 * 3. A slab is freed when the last piece in it is: a piece that is kept long keeps its slab (64 KiB).
 */
import { Buffer } from 'node:buffer';

const SLAB_BYTES = 64 * 1024;
const TWO_32 = 4294967296;
/** A string of so few characters takes at most 123 bytes of UTF-8, so its length, and that length's frame, are one byte each. */
const SHORT_TEXT = 41;

export class ByteWriter {
  buffer: Buffer;
  /** Where the next byte goes. */
  position = 0;
  /** Where the piece under way begins. */
  start = 0;
  readonly #slabBytes: number;

  constructor(slabBytes = SLAB_BYTES) {
    this.#slabBytes = slabBytes;
    this.buffer = Buffer.allocUnsafeSlow(slabBytes);
  }

  /** Begins a piece; whatever was begun and not taken is dropped. */
  begin(): void {
    // a slab that was made for a large piece is not kept for small ones
    if (this.start > this.#slabBytes) this.#renew(this.#slabBytes);
    this.position = this.start;
  }

  /** The bytes from `from` (counted from `start`) up to here, as their receiver's own; the next piece begins behind. */
  take(from = 0): Buffer {
    const piece = this.buffer.subarray(this.start + from, this.position);
    this.start = this.position;
    return piece;
  }

  /** Makes room for `bytes` more. Places counted from the slab's beginning are void afterwards. */
  ensure(bytes: number): void {
    if (this.position + bytes > this.buffer.length) this.#grow(bytes);
  }

  #grow(bytes: number): void {
    const begun = this.position - this.start;
    const needed = begun + bytes;
    const size = needed <= this.#slabBytes ? this.#slabBytes : needed + (begun >> 1) + 4096;
    const { buffer, start, position } = this;
    this.#renew(size);
    buffer.copy(this.buffer, 0, start, position);
    this.position = begun;
  }

  #renew(bytes: number): void {
    this.buffer = Buffer.allocUnsafeSlow(bytes);
    this.start = 0;
  }

  byte(value: number): void {
    this.ensure(1);
    this.buffer[this.position++] = value;
  }

  raw(bytes: Uint8Array): void {
    this.ensure(bytes.length);
    this.buffer.set(bytes, this.position);
    this.position += bytes.length;
  }

  /** `raw` for a few bytes: those of `bytes[from, to)`. */
  few(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const length = to - from;
    this.ensure(length);
    const buffer = this.buffer;
    const at = this.position;
    for (let i = 0; i < length; i++) buffer[at + i] = bytes[from + i] as number;
    this.position = at + length;
  }

  /** A whole number from 0 to 2^53 − 1. */
  varint(value: number): void {
    this.ensure(10);
    if (value < TWO_32) this.varint64(value >>> 0, 0);
    else this.varint64(value >>> 0, (value / TWO_32) >>> 0);
  }

  /** A 64-bit number in two halves. The caller has made room for 10 bytes. */
  varint64(low: number, high: number): void {
    const buffer = this.buffer;
    let at = this.position;
    let lo = low;
    let hi = high;
    while (hi !== 0) {
      buffer[at++] = (lo & 0x7f) | 0x80;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
      hi >>>= 7;
    }
    while (lo > 0x7f) {
      buffer[at++] = (lo & 0x7f) | 0x80;
      lo >>>= 7;
    }
    buffer[at++] = lo;
    this.position = at;
  }

  /** UTF-8 with its length as a varint in front. False when the string is not well-formed (a surrogate alone). */
  lengthAndText(text: string): boolean {
    const length = text.length;
    if (length < SHORT_TEXT) {
      this.ensure(1 + length * 3);
      const written = this.#shortText(text, this.position + 1);
      if (written < 0) return false;
      this.buffer[this.position] = written;
      this.position += 1 + written;
      return true;
    }
    const bytes = Buffer.byteLength(text, 'utf8');
    this.ensure(bytes + 5);
    this.varint64(bytes, 0);
    return this.#longText(text, bytes);
  }

  /** A text value framed as a Value of a Row: both lengths in front. False when the string is not well-formed. */
  framedText(frameTag: number, textTag: number, text: string): boolean {
    const length = text.length;
    if (length < SHORT_TEXT) {
      this.ensure(4 + length * 3);
      const at = this.position;
      const buffer = this.buffer;
      const written = this.#shortText(text, at + 4);
      if (written < 0) return false;
      buffer[at] = frameTag;
      buffer[at + 1] = written + 2;
      buffer[at + 2] = textTag;
      buffer[at + 3] = written;
      this.position = at + 4 + written;
      return true;
    }
    const bytes = Buffer.byteLength(text, 'utf8');
    this.framedHead(frameTag, textTag, bytes);
    return this.#longText(text, bytes);
  }

  /** The two tags and lengths in front of `bytes` bytes, and room for these. */
  framedHead(frameTag: number, tag: number, bytes: number): void {
    this.ensure(bytes + 12);
    this.buffer[this.position++] = frameTag;
    this.varint64(1 + varintSize(bytes) + bytes, 0);
    this.buffer[this.position++] = tag;
    this.varint64(bytes, 0);
  }

  #shortText(text: string, at: number): number {
    const buffer = this.buffer;
    const length = text.length;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return isWellFormed(text) ? buffer.write(text, at, 'utf8') : -1;
      buffer[at + i] = code;
    }
    return length;
  }

  #longText(text: string, bytes: number): boolean {
    if (bytes === text.length) this.buffer.write(text, this.position, 'latin1');
    else if (!isWellFormed(text)) return false;
    else this.buffer.write(text, this.position, 'utf8');
    this.position += bytes;
    return true;
  }
}

/** In the language since ES2024, in Node since 20. */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

/** Bytes of a varint below 2^53. */
export function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x200000) return 3;
  let size = 4;
  for (let rest = Math.floor(value / 0x10000000); rest > 0; rest = Math.floor(rest / 0x80)) size++;
  return size;
}
