/**
 * Rows events to records: from the event's bytes to the bytes of messages and keys.
 *
 * 1. The records are those of the reference (`RowReader` and wire's `RowEncoder`), byte for byte: held together by tests over random tables
 *    and over everything that the tests on real servers stream.
 * 2. Nothing is read past the rows' end and no length is believed before it was compared with it; an image takes at least a byte.
 * 3. An error leaves the records of the rows before it in `records`: the caller drops them with the transaction.
 *
 * An update is written as one message first; only when it then shows another key it is dropped and written again as two.
 */
import {
  type EncodedRow,
  type ImageName,
  RowWriter,
  type TablePlan,
  type TransactionBlock,
  writeNull,
} from '@mysync/wire';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { ColumnWalk } from './column-walk.ts';
import { RowBytes } from './row-bytes.ts';

export interface TranscribedTable {
  readonly plan: TablePlan;
  readonly columns: readonly ColumnWalk[];
}

export interface EventPlace {
  readonly block: TransactionBlock;
  /** Of the event; '' for that of the transaction. */
  readonly file: string;
  /** Byte offset of the event. */
  readonly offset: number;
  /** Of the event's first row. */
  readonly ordinal: number;
}

export class RowsTranscriber {
  readonly #source = new RowBytes();
  readonly #row = new RowWriter();

  /** Appends the records of a rows event, whose images are whole, and returns how many ordinals they took. Throws a RangeError. */
  transcribe(table: TranscribedTable, rows: RowsEvent, place: EventPlace, records: EncodedRow[]): number {
    const { columns } = table;
    const source = this.#source;
    const row = this.#row;
    source.open(rows.buffer, rows.start, rows.end);
    row.open(table.plan, place.block, place.file, place.offset);
    let { ordinal } = place;
    while (source.at < source.end) {
      if (rows.operation === 'update') {
        ordinal += this.#update(columns, ordinal, records);
        continue;
      }
      row.begin(rows.operation, ordinal);
      this.#image(columns, rows.operation === 'delete' ? 'before' : 'after');
      records.push(row.finish());
      ordinal += 1;
    }
    return ordinal - place.ordinal;
  }

  #update(columns: readonly ColumnWalk[], ordinal: number, records: EncodedRow[]): number {
    const source = this.#source;
    const row = this.#row;
    const start = source.at;
    row.begin('update', ordinal);
    this.#image(columns, 'before');
    const middle = source.at;
    this.#image(columns, 'after');
    if (row.keepsKey()) {
      records.push(row.finish());
      return 1;
    }
    source.at = start;
    row.begin('delete', ordinal);
    this.#image(columns, 'before');
    const gone = row.finish();
    source.at = middle;
    row.begin('insert', ordinal + 1);
    this.#image(columns, 'after');
    records.push(gone, row.finish());
    return 2;
  }

  #image(columns: readonly ColumnWalk[], name: ImageName): void {
    const source = this.#source;
    const row = this.#row;
    const out = row.bytes;
    const count = columns.length;
    row.openImage(name);
    const nulls = source.take((count + 7) >> 3);
    const { buffer } = source;
    for (let i = 0; i < count; i += 1) {
      row.at(i);
      if ((((buffer[nulls + (i >> 3)] as number) >> (i & 7)) & 1) === 1) writeNull(out);
      else {
        const column = columns[i] as ColumnWalk;
        column.walk(column, source, out);
      }
    }
    row.closeImage();
  }
}
