/**
 * The frame of a row event: which rows, and whether their images hold all columns.
 * Layout: MySQL, libs/mysql/binlog/event/rows_event.h, class Rows_event (version 2 has a block of extra data).
 */
import { ByteReader } from './byte-reader.ts';
import { EVENT } from './column-types.ts';
import { inflateEvent } from './compression.ts';
import type { LogEvent } from './log-event.ts';

export interface RowsEvent {
  readonly operation: 'insert' | 'update' | 'delete';
  /** Every image has a value or NULL for every column. */
  readonly isWhole: boolean;
  /** The images, one behind the other; of an update before and after in turn. */
  readonly data: Buffer;
}

/** Throws a RangeError when the event has another number of columns than its table map. */
export function readRowsEvent(event: LogEvent, columnCount: number): RowsEvent {
  const { type } = event;
  const reader = new ByteReader(event.buffer, event.start, event.end);
  reader.skip(8); // table id and flags
  if (isVersion2(type)) reader.skip(reader.uint(2) - 2);
  const columns = reader.packed();
  if (columns !== columnCount) throw new RangeError(`the event has ${columns} columns, its table map ${columnCount}`);
  const operation = operationOf(type);
  let isWhole = allSet(reader.bytes((columns + 7) >> 3), columns);
  if (operation === 'update') isWhole = allSet(reader.bytes((columns + 7) >> 3), columns) && isWhole;
  const data = reader.bytes(reader.left);
  return { operation, isWhole, data: type >= EVENT.WRITE_ROWS_COMPRESSED_V1 ? inflateEvent(data) : data };
}

function isVersion2(type: number): boolean {
  return (type >= EVENT.WRITE_ROWS && type <= EVENT.DELETE_ROWS) || type >= EVENT.WRITE_ROWS_COMPRESSED;
}

function operationOf(type: number): RowsEvent['operation'] {
  switch (type) {
    case EVENT.WRITE_ROWS:
    case EVENT.WRITE_ROWS_V1:
    case EVENT.WRITE_ROWS_COMPRESSED:
    case EVENT.WRITE_ROWS_COMPRESSED_V1:
      return 'insert';
    case EVENT.UPDATE_ROWS:
    case EVENT.UPDATE_ROWS_V1:
    case EVENT.UPDATE_ROWS_COMPRESSED:
    case EVENT.UPDATE_ROWS_COMPRESSED_V1:
      return 'update';
    default:
      return 'delete';
  }
}

function allSet(bits: Buffer, count: number): boolean {
  for (let i = 0; i < count >> 3; i += 1) if (bits[i] !== 0xff) return false;
  const rest = count & 7;
  const mask = (1 << rest) - 1;
  return rest === 0 || ((bits[count >> 3] ?? 0) & mask) === mask;
}
