/** Row images without their meaning: which columns an image holds, and how long a value is. */
import type { ByteReader } from './byte-reader.ts';
import { TYPE } from './column-types.ts';
import { decimalSize } from './decimal.ts';
import type { BareColumn } from './table-map.ts';
import { fractionSize } from './temporal.ts';

/** Bytes of the value that comes next; the length that stands before it is read. JSON is not among the types: see `lengthOf`. */
export function valueBytes(reader: ByteReader, column: BareColumn): number {
  switch (column.type) {
    case TYPE.TINY:
    case TYPE.YEAR:
      return 1;
    case TYPE.SHORT:
      return 2;
    case TYPE.INT24:
    case TYPE.DATE:
    case TYPE.NEWDATE:
      return 3;
    case TYPE.LONG:
    case TYPE.FLOAT:
      return 4;
    case TYPE.LONGLONG:
    case TYPE.DOUBLE:
      return 8;
    case TYPE.NEWDECIMAL:
      return decimalSize(column.precision, column.scale);
    case TYPE.TIME2:
      return 3 + fractionSize(column.size);
    case TYPE.TIMESTAMP2:
      return 4 + fractionSize(column.size);
    case TYPE.DATETIME2:
      return 5 + fractionSize(column.size);
    case TYPE.BIT:
      return (column.size + 7) >> 3;
    case TYPE.ENUM:
    case TYPE.SET:
      return column.size;
    case TYPE.VARCHAR:
    case TYPE.STRING:
    case TYPE.VAR_STRING:
      return lengthOf(reader, column.size > 255 ? 2 : 1);
    case TYPE.BLOB:
    case TYPE.TINY_BLOB:
    case TYPE.MEDIUM_BLOB:
    case TYPE.LONG_BLOB:
    case TYPE.GEOMETRY:
    case TYPE.VECTOR:
      return lengthOf(reader, column.size);
    default:
      throw new RangeError(`type code ${column.type}`);
  }
}

/** Reads the length that stands before a value. */
export function lengthOf(reader: ByteReader, bytes: number): number {
  if (bytes < 1 || bytes > 4) throw new RangeError(`a length of ${bytes} bytes`);
  return reader.uint(bytes as 1 | 2 | 3 | 4);
}

export function isSet(bits: Buffer, index: number): boolean {
  return (((bits[index >> 3] ?? 0) >> (index & 7)) & 1) === 1;
}

export function countSet(bits: Buffer, count: number): number {
  let set = 0;
  for (let i = 0; i < count; i += 1) if (isSet(bits, i)) set += 1;
  return set;
}
