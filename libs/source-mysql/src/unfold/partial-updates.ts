/**
 * MySQL's partial updates (binlog_row_value_options=PARTIAL_JSON) as ordinary ones: the changes that the after image holds in
 * place of JSON documents are applied to the before image.
 * Layout: as an update, but each after image begins with its options (packed; 1: partial JSON) and then one bit for each JSON column of the
 * table, set where changes stand (MySQL, sql/log_event.cc, Rows_log_event::unpack_current_row; sql/rpl_record.cc, unpack_row).
 */
import { formatTableRef, isMysyncError, type TableRef } from '@mysync/core';
import { ByteReader } from '../binlog/byte-reader.ts';
import { EVENT, TYPE } from '../binlog/column-types.ts';
import { decimalSize } from '../binlog/decimal.ts';
import type { LogEvent } from '../binlog/log-event.ts';
import { readTableId, readTableMap, readTableName, type TableMapColumn } from '../binlog/table-map.ts';
import { fractionSize } from '../binlog/temporal.ts';
import { sourceErrors } from '../errors.ts';
import { applyJsonDiffs } from '../json/json-diff.ts';

const PARTIAL_JSON = 1;

export class PartialUpdates {
  readonly #captures: (ref: TableRef) => boolean;
  /** The maps of the transaction, by table id. */
  readonly #maps = new Map<number, LogEvent>();

  constructor(captures: (ref: TableRef) => boolean) {
    this.#captures = captures;
  }

  /** The event itself unless it is a partial update of a captured table. `where` is for the errors. */
  process(event: LogEvent, where: () => string): LogEvent {
    if (event.type === EVENT.TABLE_MAP) this.#maps.set(readTableId(event.buffer, event.start), event);
    else if (event.type === EVENT.PARTIAL_UPDATE_ROWS) return this.#whole(event, where);
    else if (event.control.kind === 'xid' && this.#maps.size > 0) this.#maps.clear();
    return event;
  }

  #whole(event: LogEvent, where: () => string): LogEvent {
    const map = this.#maps.get(readTableId(event.buffer, event.start));
    if (map === undefined) return event;
    const ref = readTableName(map.buffer, map.start, map.end);
    if (!this.#captures(ref)) return event;
    try {
      const { columns } = readTableMap(map.buffer, map.start, map.end, 'mysql');
      return columns === undefined ? event : wholeUpdate(event, columns);
    } catch (error) {
      if (isMysyncError(error)) throw error;
      throw sourceErrors.SOURCE_ROW_UNREADABLE({
        message: `a partial update of ${formatTableRef(ref)} cannot be read`,
        where: { table: formatTableRef(ref), position: where() },
        cause: error,
      });
    }
  }
}

function wholeUpdate(event: LogEvent, columns: readonly TableMapColumn[]): LogEvent {
  const reader = new ByteReader(event.buffer, event.start, event.end);
  reader.skip(8); // table id and flags
  reader.skip(reader.uint(2) - 2);
  const count = reader.packed();
  if (count !== columns.length) throw new RangeError(`the event has ${count} columns, its table map ${columns.length}`);
  const bitmapBytes = (count + 7) >> 3;
  const isWhole = allSet(reader.bytes(bitmapBytes), count);
  const isWholeAfter = allSet(reader.bytes(bitmapBytes), count);
  const parts: Buffer[] = [event.buffer.subarray(event.start, reader.at)];
  // an image that is not whole is refused by whoever reads the event: its rows do not matter
  while (isWhole && isWholeAfter && reader.left > 0) pushRow(reader, columns, parts);
  const buffer = Buffer.concat(parts);
  return { ...event, type: EVENT.UPDATE_ROWS, buffer, start: 0, end: buffer.length };
}

function pushRow(reader: ByteReader, columns: readonly TableMapColumn[], parts: Buffer[]): void {
  const bitmapBytes = (columns.length + 7) >> 3;
  const beforeAt = reader.at;
  const before = new Map<number, Buffer>();
  const beforeNulls = reader.bytes(bitmapBytes);
  for (const [i, column] of columns.entries()) {
    if (isSet(beforeNulls, i)) continue;
    if (column.type === TYPE.JSON) before.set(i, reader.bytes(lengthOf(reader, column.size)));
    else reader.skip(valueBytes(reader, column));
  }
  parts.push(reader.buffer.subarray(beforeAt, reader.at));
  const isPartial = (reader.packed() & PARTIAL_JSON) !== 0;
  const documents = columns.filter((column) => column.type === TYPE.JSON).length;
  const partial = isPartial ? reader.bytes((documents + 7) >> 3) : undefined;
  let copiedTo = reader.at;
  const afterNulls = reader.bytes(bitmapBytes);
  let document = -1;
  for (const [i, column] of columns.entries()) {
    if (column.type === TYPE.JSON) document += 1;
    if (isSet(afterNulls, i)) continue;
    if (column.type !== TYPE.JSON) {
      reader.skip(valueBytes(reader, column));
      continue;
    }
    const valueAt = reader.at;
    const value = reader.bytes(lengthOf(reader, column.size));
    if (partial === undefined || !isSet(partial, document)) continue;
    const old = before.get(i);
    if (old === undefined) throw new RangeError(`a change of column ${column.name}, which was NULL`);
    const whole = applyJsonDiffs(old, value);
    const length = Buffer.alloc(column.size);
    length.writeUIntLE(whole.length, 0, column.size);
    parts.push(reader.buffer.subarray(copiedTo, valueAt), length, whole);
    copiedTo = reader.at;
  }
  parts.push(reader.buffer.subarray(copiedTo, reader.at));
}

/** Of the value that comes next, its length included. */
function valueBytes(reader: ByteReader, column: TableMapColumn): number {
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
      throw new RangeError(`type code ${column.type} of column ${column.name}`);
  }
}

/** Reads the length that stands before a value. */
function lengthOf(reader: ByteReader, bytes: number): number {
  if (bytes < 1 || bytes > 4) throw new RangeError(`a length of ${bytes} bytes`);
  return reader.uint(bytes as 1 | 2 | 3 | 4);
}

function isSet(bits: Buffer, index: number): boolean {
  return (((bits[index >> 3] ?? 0) >> (index & 7)) & 1) === 1;
}

function allSet(bits: Buffer, count: number): boolean {
  for (let i = 0; i < count; i += 1) if (!isSet(bits, i)) return false;
  return true;
}
