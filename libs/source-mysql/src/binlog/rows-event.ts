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
  /** The images are `buffer[start, end)`, one behind the other; of an update before and after in turn. */
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
}

/** One for all events, which are read one after the other. */
const shared = new ByteReader(Buffer.alloc(0), 0, 0);

/** Throws a RangeError when the event has another number of columns than its table map. */
export function readRowsEvent(event: LogEvent, columnCount: number): RowsEvent {
  const { type, buffer } = event;
  const reader = shared;
  reader.open(buffer, event.start, event.end);
  reader.skip(8); // table id and flags
  if (isVersion2(type)) reader.skip(reader.uint(2) - 2);
  const columns = reader.packed();
  if (columns !== columnCount) throw new RangeError(`the event has ${columns} columns, its table map ${columnCount}`);
  const operation = operationOf(type);
  let isWhole = allSet(reader, columns);
  if (operation === 'update') isWhole = allSet(reader, columns) && isWhole;
  if (type < EVENT.WRITE_ROWS_COMPRESSED_V1) return { operation, isWhole, buffer, start: reader.at, end: event.end };
  const inflated = inflateEvent(reader.bytes(reader.left));
  return { operation, isWhole, buffer: inflated, start: 0, end: inflated.length };
}

/** Of an event whose images are not whole, which columns they hold: a flag for each. null: it has no such image. */
export interface HeldColumns {
  readonly before: readonly boolean[] | null;
  readonly after: readonly boolean[] | null;
}

export function readHeldColumns(event: LogEvent): HeldColumns {
  const reader = new ByteReader(event.buffer, event.start, event.end);
  reader.skip(8);
  if (isVersion2(event.type)) reader.skip(reader.uint(2) - 2);
  const count = reader.packed();
  const bits = (): boolean[] => {
    const bytes = reader.bytes((count + 7) >> 3);
    return Array.from({ length: count }, (_, i) => (((bytes[i >> 3] as number) >> (i & 7)) & 1) === 1);
  };
  const operation = operationOf(event.type);
  return { before: operation === 'insert' ? null : bits(), after: operation === 'delete' ? null : bits() };
}

function isVersion2(type: number): boolean {
  return (type >= EVENT.WRITE_ROWS && type <= EVENT.DELETE_ROWS) || type >= EVENT.WRITE_ROWS_COMPRESSED;
}

export function operationOf(type: number): RowsEvent['operation'] {
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

/** Reads a bit per column. */
function allSet(reader: ByteReader, count: number): boolean {
  const from = reader.at;
  reader.skip((count + 7) >> 3);
  const { buffer } = reader;
  const whole = from + (count >> 3);
  for (let at = from; at < whole; at += 1) if (buffer[at] !== 0xff) return false;
  const mask = (1 << (count & 7)) - 1;
  return mask === 0 || ((buffer[whole] as number) & mask) === mask;
}
