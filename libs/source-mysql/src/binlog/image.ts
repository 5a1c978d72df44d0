/** Row images without their meaning: which columns an image holds, and how long a value is. */
import type { ByteReader } from './byte-reader.ts';
import { EVENT, TYPE } from './column-types.ts';
import { decimalSize } from './decimal.ts';
import type { LogEvent } from './log-event.ts';
import type { BareColumn } from './table-map.ts';
import { fractionSize } from './temporal.ts';

/** Among the options of a partial after image: changes of documents stand in it. */
export const PARTIAL_JSON = 1;

/** A bit for each column that the images of an event hold. */
export interface HeldColumns {
  readonly before: Buffer;
  readonly after: Buffer;
}

/** Reads an update of MySQL, also a partial one, up to its first row. Throws a RangeError when it has other columns than its table map. */
export function readUpdateHead(
  reader: ByteReader,
  type: LogEvent['type'],
  columns: readonly BareColumn[],
): HeldColumns {
  reader.skip(8); // table id and flags
  if (type === EVENT.UPDATE_ROWS || type === EVENT.PARTIAL_UPDATE_ROWS) reader.skip(reader.uint(2) - 2);
  const count = reader.packed();
  if (count !== columns.length) throw new RangeError(`the event has ${count} columns, its table map ${columns.length}`);
  const bitmapBytes = (count + 7) >> 3;
  return { before: reader.bytes(bitmapBytes), after: reader.bytes(bitmapBytes) };
}

/** Reads over an image. The bytes of the wanted columns, by index; none for NULL. Changes of a document stand behind a length like the document's. */
export function readImage(
  reader: ByteReader,
  columns: readonly BareColumn[],
  held: Buffer,
  isWanted: (column: BareColumn, index: number) => boolean,
): ReadonlyMap<number, Buffer> {
  const values = new Map<number, Buffer>();
  const nulls = reader.bytes((countSet(held, columns.length) + 7) >> 3);
  let bit = -1;
  for (const [i, column] of columns.entries()) {
    if (!isSet(held, i)) continue;
    bit += 1;
    if (isSet(nulls, bit)) continue;
    const length = isJson(column) ? lengthOf(reader, column.size) : valueBytes(reader, column);
    if (isWanted(column, i)) values.set(i, reader.bytes(length));
    else reader.skip(length);
  }
  return values;
}

export function isJson({ type }: BareColumn): boolean {
  return type === TYPE.JSON;
}

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
