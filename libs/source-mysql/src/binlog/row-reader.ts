/**
 * Row images to JavaScript values, exactly, in the order of the columns: the plain reference that says what a value is. Rows of the
 * stream are transcribed (`transcribe/`) to the same bytes; rare types are read here there too.
 */
import type { ColumnValue } from '@mysync/core';
import { binaryJsonText } from '../json/binary-json.ts';
import type { Charsets, TextDecode } from '../schema/charsets.ts';
import { type ColumnShape, kindOf } from '../schema/column-shape.ts';
import { TYPE } from './column-types.ts';
import { inflateColumn } from './compression.ts';
import { decimalSize, readDecimal } from './decimal.ts';
import { logicalText } from './logical-types.ts';
import type { TableMapColumn } from './table-map.ts';
import { fractionSize, readDate, readDatetime, readTime, readTimestamp } from './temporal.ts';

export interface ColumnReader {
  readonly type: number;
  readonly size: number;
  readonly precision: number;
  readonly scale: number;
  readonly unsigned: boolean;
  readonly shape: ColumnShape;
  /** undefined for bytes. */
  readonly decode: TextDecode | undefined;
  /** The charset has one byte per character. */
  readonly isSingleByte: boolean;
}

export function columnReader(column: TableMapColumn, shape: ColumnShape, charsets: Charsets): ColumnReader {
  const { type, size, precision, scale, unsigned } = column;
  const isText = kindOf(shape) !== 'bytes' && shape.charset !== '';
  const decode = isText ? charsets.decoder(shape.charset) : undefined;
  const isSingleByte = isText && charsets.maxLength(shape.charset) === 1;
  return { type, size, precision, scale, unsigned, shape, decode, isSingleByte };
}

const MAX_SAFE = Number.MAX_SAFE_INTEGER;
const TWO_32 = 4294967296;

export class RowReader {
  readonly #columns: readonly ColumnReader[];
  readonly #nullBytes: number;
  #buffer: Buffer = Buffer.alloc(0);
  /** Where the next image begins. */
  at = 0;

  constructor(columns: readonly ColumnReader[]) {
    this.#columns = columns;
    this.#nullBytes = (columns.length + 7) >> 3;
  }

  open(buffer: Buffer, at: number): void {
    this.#buffer = buffer;
    this.at = at;
  }

  /** One whole image. Throws a RangeError past the buffer's end. */
  read(): ColumnValue[] {
    const columns = this.#columns;
    const count = columns.length;
    const values: ColumnValue[] = new Array(count);
    const nulls = this.at;
    this.at += this.#nullBytes;
    this.#check();
    for (let i = 0; i < count; i += 1) {
      const isNull = (((this.#buffer[nulls + (i >> 3)] as number) >> (i & 7)) & 1) === 1;
      values[i] = isNull ? null : this.value(columns[i] as ColumnReader);
    }
    return values;
  }

  /** One image that holds some of the columns; the others are undefined. Throws a RangeError past the buffer's end. */
  readHeld(held: readonly boolean[]): ColumnValue[] {
    const nulls = this.at;
    let bit = 0;
    for (const isHeld of held) if (isHeld) bit += 1;
    this.at += (bit + 7) >> 3;
    this.#check();
    bit = 0;
    return this.#columns.map((column, i) => {
      if (held[i] !== true) return undefined;
      const isNull = (((this.#buffer[nulls + (bit >> 3)] as number) >> (bit & 7)) & 1) === 1;
      bit += 1;
      return isNull ? null : this.value(column);
    });
  }

  /** The value of one column, which is not NULL. */
  value(column: ColumnReader): ColumnValue {
    const buffer = this.#buffer;
    const at = this.at;
    switch (column.type) {
      case TYPE.TINY:
        this.at = at + 1;
        return column.unsigned ? buffer.readUInt8(at) : buffer.readInt8(at);
      case TYPE.SHORT:
        this.at = at + 2;
        return column.unsigned ? buffer.readUInt16LE(at) : buffer.readInt16LE(at);
      case TYPE.INT24:
        this.at = at + 3;
        return column.unsigned ? buffer.readUIntLE(at, 3) : buffer.readIntLE(at, 3);
      case TYPE.LONG:
        this.at = at + 4;
        return column.unsigned ? buffer.readUInt32LE(at) : buffer.readInt32LE(at);
      case TYPE.LONGLONG: {
        this.at = at + 8;
        const low = buffer.readUInt32LE(at);
        const high = column.unsigned ? buffer.readUInt32LE(at + 4) : buffer.readInt32LE(at + 4);
        const value = high * TWO_32 + low;
        if (value <= MAX_SAFE && value >= -MAX_SAFE) return value;
        return column.unsigned ? buffer.readBigUInt64LE(at) : buffer.readBigInt64LE(at);
      }
      case TYPE.FLOAT:
        this.at = at + 4;
        return buffer.readFloatLE(at);
      case TYPE.DOUBLE:
        this.at = at + 8;
        return buffer.readDoubleLE(at);
      case TYPE.NEWDECIMAL:
        this.at = at + decimalSize(column.precision, column.scale);
        this.#check();
        return readDecimal(buffer, at, column.precision, column.scale);
      case TYPE.YEAR: {
        this.at = at + 1;
        const year = buffer.readUInt8(at);
        return year === 0 ? 0 : year + 1900;
      }
      case TYPE.DATE:
      case TYPE.NEWDATE:
        this.at = at + 3;
        return readDate(buffer, at);
      case TYPE.TIME2:
        this.at = at + 3 + fractionSize(column.size);
        this.#check();
        return readTime(buffer, at, column.size);
      case TYPE.DATETIME2:
        this.at = at + 5 + fractionSize(column.size);
        this.#check();
        return readDatetime(buffer, at, column.size);
      case TYPE.TIMESTAMP2:
        this.at = at + 4 + fractionSize(column.size);
        this.#check();
        return readTimestamp(buffer, at, column.size);
      case TYPE.BIT:
        return this.#bits((column.size + 7) >> 3);
      case TYPE.VARCHAR:
        return this.#text(column, this.#length(column.size > 255 ? 2 : 1));
      case TYPE.STRING:
      case TYPE.VAR_STRING:
        return this.#string(column);
      case TYPE.BLOB:
      case TYPE.TINY_BLOB:
      case TYPE.MEDIUM_BLOB:
      case TYPE.LONG_BLOB:
      case TYPE.GEOMETRY:
      case TYPE.VECTOR:
        return this.#text(column, this.#length(column.size));
      case TYPE.VARCHAR_COMPRESSED:
        return this.#inflated(column, this.#length(column.size > 255 ? 2 : 1));
      case TYPE.BLOB_COMPRESSED:
        return this.#inflated(column, this.#length(column.size));
      case TYPE.ENUM: {
        const number = this.#length(column.size);
        // 0 is the empty text of an invalid value, which is no member
        return number === 0 ? '' : member(column, number - 1);
      }
      case TYPE.SET:
        return this.#set(column);
      case TYPE.JSON: {
        const length = this.#length(column.size);
        const start = this.at;
        this.at += length;
        this.#check();
        return binaryJsonText(buffer, start, start + length);
      }
      default:
        throw new RangeError(`type code ${column.type} of column ${column.shape.name}`);
    }
  }

  #check(): void {
    if (this.at > this.#buffer.length)
      throw new RangeError(`a value ends at ${this.at}, the event at ${this.#buffer.length}`);
  }

  #length(bytes: number): number {
    const value = this.#buffer.readUIntLE(this.at, bytes as 1 | 2 | 3 | 4);
    this.at += bytes;
    return value;
  }

  #bytes(length: number): Buffer {
    const start = this.at;
    this.at = start + length;
    this.#check();
    return this.#buffer.subarray(start, start + length);
  }

  #text(column: ColumnReader, length: number): string | Buffer {
    const start = this.at;
    this.at = start + length;
    this.#check();
    const decode = column.decode;
    return decode === undefined
      ? this.#buffer.subarray(start, start + length)
      : decode(this.#buffer, start, start + length);
  }

  /** CHAR and BINARY come without the padding at their end. That of BINARY (zero bytes) is part of the value. */
  #string(column: ColumnReader): string | Buffer {
    const length = this.#length(column.size > 255 ? 2 : 1);
    const base = column.shape.base;
    if (base === 'char') return this.#text(column, length);
    if (length > column.size) throw new RangeError(`${length} bytes in a column of ${column.size}`);
    const whole = Buffer.alloc(column.size);
    this.#bytes(length).copy(whole);
    return base === 'binary' ? whole : logicalText(base, whole);
  }

  #inflated(column: ColumnReader, length: number): string | Buffer {
    const value = inflateColumn(this.#bytes(length));
    return column.decode === undefined ? value : column.decode(value, 0, value.length);
  }

  /** Big-endian. */
  #bits(size: number): number | bigint {
    const bytes = this.#bytes(size);
    if (size <= 6) return bytes.readUIntBE(0, size);
    let value = 0n;
    for (const byte of bytes) value = (value << 8n) | BigInt(byte);
    return value <= BigInt(MAX_SAFE) ? Number(value) : value;
  }

  #set(column: ColumnReader): string {
    const bytes = this.#bytes(column.size);
    const chosen: string[] = [];
    for (let i = 0; i < column.size * 8; i += 1) {
      if ((((bytes[i >> 3] as number) >> (i & 7)) & 1) === 1) chosen.push(member(column, i));
    }
    return chosen.join(',');
  }
}

function member(column: ColumnReader, index: number): string {
  const text = column.shape.members[index];
  if (text === undefined) throw new RangeError(`column ${column.shape.name} has no member ${index + 1}`);
  return text;
}
