/** For tests: one transcriber for all of a process, so that records also cross the borders of slabs, and what it makes beside the reference. */
import assert from 'node:assert/strict';
import { type EncodedRow, encodeTransaction } from '@mysync/wire';
import { TYPE } from '../binlog/column-types.ts';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { TranscribedTable } from './compile-table.ts';
import { assertSameRecords, referenceRecords } from './held-to-reference.fixture.ts';
import { type EventPlace, RowsTranscriber } from './rows-transcriber.ts';

export const transcriber = new RowsTranscriber();

export const block = encodeTransaction({
  source: 's',
  serverUuid: '3f1c2a44-9d1b-11ee-8c90-0242ac120002',
  id: { file: 'binlog.000042', offset: 1234, gtid: '0-1-2', ordinal: 0 },
  commitTimeMicros: 1_700_000_000_123_456,
});
/** A BLOB whose length takes two bytes. */
export const blob: ColumnReader = {
  type: TYPE.BLOB,
  size: 2,
  precision: 0,
  scale: 0,
  unsigned: false,
  shape: {
    name: 'k',
    base: 'blob',
    unsigned: false,
    length: 0,
    precision: 0,
    scale: 0,
    nullable: false,
    charset: '',
    members: [],
  },
  decode: undefined,
  isSingleByte: false,
};

/** undefined when both refuse the rows. */
export function compared(table: TranscribedTable, rows: RowsEvent, place: EventPlace): EncodedRow[] | undefined {
  const records: EncodedRow[] = [];
  const actual = outcome(() => transcriber.transcribe(table, rows, place, records));
  const expected = outcome(() => referenceRecords(table, rows, place));
  const text = (result: unknown): string => (result instanceof Error ? (result.stack ?? '') : 'read');
  assert.equal(actual instanceof Error, expected instanceof Error, `${text(actual)}\n/ ${text(expected)}`);
  if (actual instanceof Error) return undefined;
  assertSameRecords(records, expected as EncodedRow[]);
  assert.equal(actual, (records.at(-1)?.ordinal ?? place.ordinal - 1) - place.ordinal + 1);
  return records;
}

function outcome(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
