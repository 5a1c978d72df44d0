/** The plain way: rows to values, values to records. For what the module leaves to it. */
import { type EncodedRow, RowEncoder } from '@mysync/wire';
import { RowReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { TranscribedTable } from './compile-table.ts';
import { currentChange } from './current-rows.ts';
import type { EventPlace } from './rows-transcriber.ts';

const encoder = new RowEncoder();

export interface RowsLeft {
  /** Where the next row begins. */
  at: number;
  /** Of the next row. */
  ordinal: number;
}

/** Appends the records of the next row of the event and moves `left` behind it. Throws as reader and encoder do. */
export function transcribeByReference(
  table: TranscribedTable,
  rows: RowsEvent,
  place: EventPlace,
  left: RowsLeft,
  records: EncodedRow[],
): void {
  const { operation } = rows;
  const reader = new RowReader(table.readers);
  reader.open(rows.buffer.subarray(0, rows.end), left.at);
  const before = operation === 'insert' ? null : reader.read();
  const after = operation === 'delete' ? null : reader.read();
  left.at = reader.at;
  const logged = { operation, before, after };
  const change = table.period === null ? logged : currentChange(table.period, logged);
  if (change === null) return;
  const placed = { ...change, eventFile: place.file, eventOffset: place.offset, ordinal: left.ordinal };
  left.ordinal += encoder.rowChange(table.plan, place.block, placed, records);
}
