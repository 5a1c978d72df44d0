/**
 * MySQL's binary JSON to the text that the server prints for the same document: numbers keep their type (1.0 stays 1.0) and all
 * their digits, keys their stored order.
 * Format: MySQL, sql-common/json_binary.h; text form: sql-common/json_dom.cc, Json_wrapper::to_string.
 */
import { decimalSize, readDecimal } from '../binlog/decimal.ts';
import { doubleText } from './double-text.ts';

export const KIND = {
  SMALL_OBJECT: 0x00,
  LARGE_OBJECT: 0x01,
  SMALL_ARRAY: 0x02,
  LARGE_ARRAY: 0x03,
  LITERAL: 0x04,
  INT16: 0x05,
  UINT16: 0x06,
  INT32: 0x07,
  UINT32: 0x08,
  INT64: 0x09,
  UINT64: 0x0a,
  DOUBLE: 0x0b,
  STRING: 0x0c,
  OPAQUE: 0x0f,
} as const;

/** Field types of opaque values that have a text form of their own. */
const OPAQUE = { TIMESTAMP: 7, DATE: 10, TIME: 11, DATETIME: 12, NEWDECIMAL: 246 } as const;
const LITERALS = ['null', 'true', 'false'] as const;
/** The server refuses deeper documents. */
const MAX_DEPTH = 100;

/**
 * The document in `buffer[start, end)`. Throws a RangeError when it is damaged: also when it uses bytes of itself twice, as no server writes
 * it, since a few such bytes could print as terabytes.
 */
export function binaryJsonText(buffer: Buffer, start: number, end: number): string {
  // a NOT NULL column that was added to old rows holds no bytes, and prints as null
  if (start === end) return 'null';
  const document = buffer.subarray(start, end);
  return new JsonPrinter(document).value(document.readUInt8(0), 1, 0);
}

class JsonPrinter {
  readonly #buffer: Buffer;
  readonly #end: number;
  /** Bytes that nothing has used yet. */
  #left: number;

  constructor(document: Buffer) {
    this.#buffer = document;
    this.#end = document.length;
    this.#left = document.length;
  }

  value(kind: number, at: number, depth: number): string {
    const buffer = this.#buffer;
    if (at > this.#end || depth > MAX_DEPTH) throw new RangeError(`a JSON value at ${at} lies outside its document`);
    switch (kind) {
      case KIND.SMALL_OBJECT:
        return this.#container(at, 2, true, depth);
      case KIND.LARGE_OBJECT:
        return this.#container(at, 4, true, depth);
      case KIND.SMALL_ARRAY:
        return this.#container(at, 2, false, depth);
      case KIND.LARGE_ARRAY:
        return this.#container(at, 4, false, depth);
      case KIND.LITERAL:
        return this.#literal(buffer.readUInt8(at));
      case KIND.INT16:
        return String(buffer.readInt16LE(at));
      case KIND.UINT16:
        return String(buffer.readUInt16LE(at));
      case KIND.INT32:
        return String(buffer.readInt32LE(at));
      case KIND.UINT32:
        return String(buffer.readUInt32LE(at));
      case KIND.INT64:
        return String(buffer.readBigInt64LE(at));
      case KIND.UINT64:
        return String(buffer.readBigUInt64LE(at));
      case KIND.DOUBLE:
        return doubleText(buffer.readDoubleLE(at));
      case KIND.STRING: {
        const [from, to] = this.#piece(at);
        return quote(buffer.toString('utf8', from, to));
      }
      case KIND.OPAQUE: {
        const [from, to] = this.#piece(at + 1);
        return opaqueText(buffer.readUInt8(at), buffer, from, to);
      }
      default:
        throw new RangeError(`${kind} is no kind of JSON value`);
    }
  }

  /**
   * Counts and offsets are `width` bytes; offsets count from the container's start. Entries of keys (offset, length of two bytes) come
   * first, then those of values (kind, offset), in which small values stand themselves.
   */
  #container(start: number, width: 2 | 4, isObject: boolean, depth: number): string {
    const buffer = this.#buffer;
    const count = buffer.readUIntLE(start, width);
    const keys = start + 2 * width;
    const values = keys + (isObject ? count * (width + 2) : 0);
    const parts: string[] = [];
    for (let i = 0; i < count; i += 1) {
      const entry = values + i * (1 + width);
      const kind = buffer.readUInt8(entry);
      this.#use(1 + width);
      const text = isInline(kind, width)
        ? this.value(kind, entry + 1, depth + 1)
        : this.value(kind, start + buffer.readUIntLE(entry + 1, width), depth + 1);
      if (isObject) {
        const key = keys + i * (width + 2);
        const from = start + buffer.readUIntLE(key, width);
        const to = from + buffer.readUInt16LE(key + width);
        if (to > this.#end) throw new RangeError(`a JSON key ends at ${to}, outside its document`);
        this.#use(width + 2 + to - from);
        parts.push(`${quote(buffer.toString('utf8', from, to))}: ${text}`);
      } else parts.push(text);
    }
    return isObject ? `{${parts.join(', ')}}` : `[${parts.join(', ')}]`;
  }

  #use(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw new RangeError('a JSON document uses bytes of itself twice');
  }

  #literal(code: number): string {
    const text = LITERALS[code];
    if (text === undefined) throw new RangeError(`${code} is no JSON literal`);
    return text;
  }

  /** A length in groups of seven bits, lowest first, and that many bytes: their borders. */
  #piece(at: number): [number, number] {
    let length = 0;
    for (let i = 0; i < 5; i += 1) {
      const byte = this.#buffer.readUInt8(at + i);
      length += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) {
        const from = at + i + 1;
        this.#use(length);
        if (from + length > this.#end)
          throw new RangeError(`a JSON value of ${length} bytes lies outside its document`);
        return [from, from + length];
      }
    }
    throw new RangeError('a JSON length has more than five bytes');
  }
}

/** Numbers of 32 bits fit into an entry of a large container only. */
function isInline(kind: number, width: 2 | 4): boolean {
  if (kind === KIND.LITERAL || kind === KIND.INT16 || kind === KIND.UINT16) return true;
  return width === 4 && (kind === KIND.INT32 || kind === KIND.UINT32);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/** A string as JSON text. */
export function quote(text: string): string {
  let plain = true;
  for (let i = 0; i < text.length && plain; i += 1) {
    const code = text.charCodeAt(i);
    plain = code >= 0x20 && code !== 0x22 && code !== 0x5c;
  }
  if (plain) return `"${text}"`;
  let quoted = '"';
  for (const character of text) {
    const code = character.charCodeAt(0);
    quoted += ESCAPES[character] ?? (code < 0x20 ? `\\u${code.toString(16).padStart(4, '0')}` : character);
  }
  return `${quoted}"`;
}

/** The text of an opaque value in `buffer[from, to)`; ASCII. */
export function opaqueText(type: number, buffer: Buffer, from: number, to: number): string {
  switch (type) {
    case OPAQUE.NEWDECIMAL:
      return opaqueDecimal(buffer, from, to);
    case OPAQUE.DATE:
      return `"${packedDate(buffer.readBigInt64LE(from))}"`;
    case OPAQUE.DATETIME:
    case OPAQUE.TIMESTAMP: {
      const packed = buffer.readBigInt64LE(from);
      return `"${packedDate(packed)} ${packedTime(packed & 0x1ff_ffff_ffffn)}"`;
    }
    case OPAQUE.TIME: {
      const packed = buffer.readBigInt64LE(from);
      return packed < 0n ? `"-${packedTime(-packed)}"` : `"${packedTime(packed)}"`;
    }
    default:
      // the server breaks the text after each 76 characters
      return `"base64:type${type}:${(buffer.toString('base64', from, to).match(/.{1,76}/g) ?? []).join('\\n')}"`;
  }
}

function opaqueDecimal(buffer: Buffer, from: number, to: number): string {
  const precision = buffer.readUInt8(from);
  const scale = buffer.readUInt8(from + 1);
  if (from + 2 + decimalSize(precision, scale) > to) throw new RangeError('a DECIMAL of JSON is cut off');
  return readDecimal(buffer, from + 2, precision, scale);
}

function pad(value: bigint, digits: number): string {
  return String(value).padStart(digits, '0');
}

function packedDate(packed: bigint): string {
  const day = packed >> 41n;
  const months = day >> 5n;
  return `${pad(months / 13n, 4)}-${pad(months % 13n, 2)}-${pad(day & 31n, 2)}`;
}

function packedTime(packed: bigint): string {
  const time = packed >> 24n;
  return `${pad((time >> 12n) & 1023n, 2)}:${pad((time >> 6n) & 63n, 2)}:${pad(time & 63n, 2)}.${pad(packed & 0xff_ffffn, 6)}`;
}
