/**
 * For tests: everything that is transcribed, also by a running stream, is encoded a second time by the reference and compared byte for
 * byte. Import `referenceRecords` to compare by hand, call `holdToReference` to have it done.
 */
import assert from 'node:assert/strict';
import { type EncodedRow, RowEncoder } from '@mysync/wire';
import { RowReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { TranscribedTable } from './compile-table.ts';
import { currentChange } from './current-rows.ts';
import { type EventPlace, RowsTranscriber } from './rows-transcriber.ts';

const encoder = new RowEncoder();

/** What the reference makes of the event. Throws as it does. */
export function referenceRecords(table: TranscribedTable, rows: RowsEvent, place: EventPlace): EncodedRow[] {
  const reader = new RowReader(table.readers);
  const data = rows.buffer.subarray(rows.start, rows.end);
  const records: EncodedRow[] = [];
  let { ordinal } = place;
  reader.open(data, 0);
  while (reader.at < data.length) {
    const before = rows.operation === 'insert' ? null : reader.read();
    const after = rows.operation === 'delete' ? null : reader.read();
    const logged = { operation: rows.operation, before, after };
    const current = table.period === null ? logged : currentChange(table.period, logged);
    if (current === null) continue;
    const change = { ...current, eventFile: place.file, eventOffset: place.offset, ordinal };
    ordinal += encoder.rowChange(table.plan, place.block, change, records);
  }
  return records;
}

export function assertSameRecords(actual: readonly EncodedRow[], expected: readonly EncodedRow[]): void {
  assert.equal(actual.length, expected.length);
  for (const [i, record] of actual.entries()) {
    const other = expected[i] as EncodedRow;
    const plain = ({ kind, deletes, ordinal, partitionHash }: EncodedRow): unknown => [
      kind,
      deletes,
      ordinal,
      partitionHash,
    ];
    assert.deepEqual(plain(record), plain(other));
    assert.equal(hex(record.key), hex(other.key));
    assert.equal(hex(record.payload), hex(other.payload));
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}

/** Rows that were compared since `holdToReference`. */
export let comparedRows = 0;

export function holdToReference(): void {
  const { prototype } = RowsTranscriber;
  const { transcribe } = prototype;
  prototype.transcribe = function compared(table, rows, place, records) {
    const from = records.length;
    const ordinals = transcribe.call(this, table, rows, place, records);
    const expected = referenceRecords(table, rows, place);
    assertSameRecords(records.slice(from), expected);
    assert.equal(ordinals, (expected.at(-1)?.ordinal ?? place.ordinal - 1) - place.ordinal + 1);
    comparedRows += expected.length;
    return ordinals;
  };
}
