/**
 * MySQL's binary JSON as the text that the server prints, straight into the message. What stands where and how it prints is told in
 * `json/binary-json.ts`, which is also asked for doubles and opaque values.
 */
import { type ByteWriter, beginText, endText, isWellFormedUtf8, putDigits, writeUnsigned } from '@mysync/wire';
import { isInline, KIND, LITERALS, MAX_DEPTH, opaqueText, quote } from '../json/binary-json.ts';
import { doubleText } from '../json/double-text.ts';
import type { Walk } from './column-walk.ts';
import type { RowBytes } from './row-bytes.ts';

export const walkJson: Walk = (column, source, out) => {
  const length = source.length(column.lengthBytes);
  const from = source.take(length);
  const begun = beginText(out, length);
  printer.print(source, from, from + length, out);
  endText(out, begun, length);
};

const TWO_32 = 4294967296;
const MINUS = 0x2d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** For each byte: 0 stands for itself, 1 is written as six characters, another number is the letter behind a backslash. */
const ESCAPES = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 ? 1 : 0));
for (const [byte, letter] of [
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
  [8, 'b'],
  [12, 'f'],
  [10, 'n'],
  [13, 'r'],
  [9, 't'],
] as const) {
  ESCAPES[byte] = letter.charCodeAt(0);
}
const HEX = '0123456789abcdef';

class JsonPrinter {
  #buffer: Buffer = Buffer.alloc(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #from = 0;
  #end = 0;
  /** Bytes of the document that nothing has used yet. */
  #left = 0;
  /** Where the piece ends whose beginning `#piece` returned. */
  #pieceEnd = 0;

  print(source: RowBytes, from: number, end: number, out: ByteWriter): void {
    if (from === end) {
      out.ascii('null');
      return;
    }
    this.#buffer = source.buffer;
    this.#view = source.view;
    this.#from = from;
    this.#end = end;
    this.#left = end - from;
    this.#value(this.#buffer[from] as number, from + 1, 0, out);
  }

  #value(kind: number, at: number, depth: number, out: ByteWriter): void {
    if (depth > MAX_DEPTH) throw new RangeError('a JSON document is too deep');
    const view = this.#view;
    switch (kind) {
      case KIND.SMALL_OBJECT:
        this.#container(at, 2, true, depth, out);
        return;
      case KIND.LARGE_OBJECT:
        this.#container(at, 4, true, depth, out);
        return;
      case KIND.SMALL_ARRAY:
        this.#container(at, 2, false, depth, out);
        return;
      case KIND.LARGE_ARRAY:
        this.#container(at, 4, false, depth, out);
        return;
      case KIND.LITERAL: {
        const literal = LITERALS[this.#buffer[this.#inside(at, 1)] as number];
        if (literal === undefined) throw new RangeError('no JSON literal');
        out.ascii(literal);
        return;
      }
      case KIND.INT16:
        writeSigned(out, view.getInt16(this.#inside(at, 2), true));
        return;
      case KIND.UINT16:
        writeUnsigned(out, view.getUint16(this.#inside(at, 2), true), 0);
        return;
      case KIND.INT32:
        writeSigned(out, view.getInt32(this.#inside(at, 4), true));
        return;
      case KIND.UINT32:
        writeUnsigned(out, view.getUint32(this.#inside(at, 4), true), 0);
        return;
      case KIND.INT64: {
        let low = view.getUint32(this.#inside(at, 8), true);
        let high = view.getUint32(at + 4, true);
        if (high > 0x7fff_ffff) {
          out.byte(MINUS);
          high = (~high + (low === 0 ? 1 : 0)) >>> 0;
          low = -low >>> 0;
        }
        writeUnsigned(out, low, high);
        return;
      }
      case KIND.UINT64:
        writeUnsigned(out, view.getUint32(this.#inside(at, 8), true), view.getUint32(at + 4, true));
        return;
      case KIND.DOUBLE:
        writeDoubleText(out, view.getFloat64(this.#inside(at, 8), true));
        return;
      case KIND.STRING: {
        const from = this.#piece(at);
        this.#quoted(from, this.#pieceEnd, out);
        return;
      }
      case KIND.OPAQUE: {
        const type = this.#buffer[this.#inside(at, 1)] as number;
        const from = this.#piece(at + 1);
        const document = this.#buffer.subarray(this.#from, this.#end);
        out.ascii(opaqueText(type, document, from - this.#from, this.#pieceEnd - this.#from));
        return;
      }
      default:
        throw new RangeError(`${kind} is no kind of JSON value`);
    }
  }

  #container(start: number, width: 2 | 4, isObject: boolean, depth: number, out: ByteWriter): void {
    const count = this.#number(start, width);
    const keys = start + 2 * width;
    const values = keys + (isObject ? count * (width + 2) : 0);
    out.byte(isObject ? 0x7b : 0x5b);
    for (let i = 0; i < count; i += 1) {
      if (i > 0) {
        out.ensure(2);
        out.buffer[out.position] = 0x2c;
        out.buffer[out.position + 1] = 0x20;
        out.position += 2;
      }
      if (isObject) {
        const key = keys + i * (width + 2);
        const from = start + this.#number(key, width);
        const to = from + this.#number(key + width, 2);
        if (to > this.#end) throw new RangeError(`a JSON key ends at ${to}, outside its document`);
        this.#use(width + 2 + to - from);
        this.#quoted(from, to, out);
        out.ensure(2);
        out.buffer[out.position] = 0x3a;
        out.buffer[out.position + 1] = 0x20;
        out.position += 2;
      }
      const entry = values + i * (1 + width);
      const kind = this.#buffer[this.#inside(entry, 1)] as number;
      this.#use(1 + width);
      const at = isInline(kind, width) ? entry + 1 : start + this.#number(entry + 1, width);
      this.#value(kind, at, depth + 1, out);
    }
    out.byte(isObject ? 0x7d : 0x5d);
  }

  #number(at: number, width: 2 | 4): number {
    this.#inside(at, width);
    return width === 2 ? this.#view.getUint16(at, true) : this.#view.getUint32(at, true);
  }

  #inside(at: number, bytes: number): number {
    if (at + bytes > this.#end) throw new RangeError(`a JSON value at ${at} lies outside its document`);
    return at;
  }

  #use(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw new RangeError('a JSON document uses bytes of itself twice');
  }

  /** A length in groups of seven bits, lowest first, and that many bytes. */
  #piece(at: number): number {
    let length = 0;
    for (let i = 0; i < 5; i += 1) {
      const byte = this.#buffer[this.#inside(at + i, 1)] as number;
      length += (byte & 0x7f) * 2 ** (7 * i);
      if (byte > 0x7f) continue;
      const from = at + i + 1;
      this.#use(length);
      this.#pieceEnd = from + length;
      if (this.#pieceEnd > this.#end) {
        throw new RangeError(`a JSON value of ${length} bytes lies outside its document`);
      }
      return from;
    }
    throw new RangeError('a JSON length has more than five bytes');
  }

  #quoted(from: number, to: number, out: ByteWriter): void {
    const buffer = this.#buffer;
    let escapes = 0;
    let high = 0;
    for (let at = from; at < to; at += 1) {
      const byte = buffer[at] as number;
      high |= byte;
      escapes |= ESCAPES[byte] as number;
    }
    if (high > 0x7f && !isWellFormedUtf8(buffer, from, to)) {
      writeText(out, quote(buffer.toString('utf8', from, to)));
      return;
    }
    out.byte(QUOTE);
    if (escapes === 0) out.copy(buffer, this.#view, from, to);
    else {
      for (let at = from; at < to; at += 1) {
        out.ensure(6);
        writeEscaped(out, buffer[at] as number);
      }
    }
    out.byte(QUOTE);
  }
}

const printer = new JsonPrinter();

function writeEscaped(out: ByteWriter, byte: number): void {
  const { buffer } = out;
  const how = ESCAPES[byte] as number;
  if (how > 1) {
    buffer[out.position++] = BACKSLASH;
    buffer[out.position++] = how;
  } else if (how === 1) {
    out.ascii('\\u00');
    buffer[out.position++] = HEX.charCodeAt(byte >> 4);
    buffer[out.position++] = HEX.charCodeAt(byte & 15);
  } else buffer[out.position++] = byte;
}

function writeSigned(out: ByteWriter, value: number): void {
  if (value < 0) {
    out.byte(MINUS);
    writeUnsigned(out, -value, 0);
  } else writeUnsigned(out, value, 0);
}

const POWERS = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000] as const;
/** Every decimal of 15 digits is a double of its own. */
const FIFTEEN_DIGITS = 1e15;

/**
 * As `doubleText`, without a string for numbers of few digits: a decimal of at most 15 digits that reads as this number is the shortest
 * that does, since no other of them does. Power and whole number are exact, so the division rounds as reading does.
 */
function writeDoubleText(out: ByteWriter, value: number): void {
  const size = Math.abs(value);
  if (size > 0 && size < FIFTEEN_DIGITS) {
    for (let digits = 0; digits < POWERS.length; digits += 1) {
      const power = POWERS[digits] as number;
      const scaled = Math.round(size * power);
      if (scaled >= FIFTEEN_DIGITS) break;
      if (scaled / power !== size) continue;
      if (value < 0) out.byte(MINUS);
      const whole = Math.floor(scaled / power);
      writeUnsigned(out, whole >>> 0, (whole / TWO_32) | 0);
      out.ensure(8);
      out.buffer[out.position] = 0x2e;
      putDigits(out.buffer, out.position + 1, scaled - whole * power, Math.max(digits, 1));
      out.position += 1 + Math.max(digits, 1);
      return;
    }
  }
  out.ascii(doubleText(value));
}

function writeText(out: ByteWriter, text: string): void {
  out.raw(Buffer.from(text, 'utf8'));
}
