/**
 * Rows events to records: from the event's bytes to the bytes of messages and keys. The work is done by a WebAssembly module
 * (`assembly/`), which sees a window of the rows at a time.
 *
 * 1. The records are those of the reference (`RowReader` and wire's `RowEncoder`), byte for byte: held together by tests over random tables
 *    and over everything that the tests on real servers stream.
 * 2. The module's memory does not grow: a row that finds no room in it is left to the reference, and so is everything where there is no module.
 * 3. An error leaves records of rows before it in `records`: the caller drops them with the transaction.
 */
import { EncodedRow, type TransactionBlock } from '@mysync/wire';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { TranscribedTable } from './compile-table.ts';
import { Failure } from './failure.ts';
import {
  FAIL_ROOM,
  INPUT_BYTES,
  RECORD_BYTES,
  RECORD_DELETES,
  RECORD_END,
  RECORD_HASH,
  RECORD_KEY,
  RECORDS,
  STATE_RECORDS,
} from './layout.ts';
import { type TranscriberModule, transcriberModule } from './module.ts';
import { type RowsLeft, transcribeByReference } from './reference-rows.ts';
import { Slabs } from './slab.ts';

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
  readonly #module = transcriberModule();
  readonly #slabs = new Slabs();

  /** Appends the records of a rows event, whose images are whole, and returns how many ordinals they took. Throws a RangeError. */
  transcribe(table: TranscribedTable, rows: RowsEvent, place: EventPlace, records: EncodedRow[]): number {
    const left = { at: rows.start, ordinal: place.ordinal };
    const module = this.#module;
    if (module?.open(table, place) === true) {
      while (left.at < rows.end) this.#window(module, table, rows, place, left, records);
    } else {
      while (left.at < rows.end) transcribeByReference(table, rows, place, left, records);
    }
    return left.ordinal - place.ordinal;
  }

  /** Slabs, of this transcriber or of others, in which nobody has a record any more. */
  giveBack(slabs: Iterable<Uint8Array>): void {
    for (const slab of slabs) this.#slabs.giveBack(slab);
  }

  /** As many of the rows as the module's input holds. */
  #window(
    module: TranscriberModule,
    table: TranscribedTable,
    rows: RowsEvent,
    place: EventPlace,
    left: RowsLeft,
    records: EncodedRow[],
  ): void {
    const begin = left.at;
    const end = Math.min(rows.end, begin + INPUT_BYTES);
    const isCut = end < rows.end;
    module.take(rows.buffer, begin, end);
    try {
      while (left.at < end) {
        module.run(rows.operation, left.at - begin, end - begin, left.ordinal);
        this.#collect(module, left, records);
        left.at = begin + module.row;
      }
    } catch (error) {
      this.#collect(module, left, records);
      left.at = begin + module.row;
      // a row that the window cuts off is the first of the next one
      if (isCut && left.at > begin) return;
      const isTooLarge = isCut || (error instanceof Failure && error.code === FAIL_ROOM);
      if (!isTooLarge) throw error;
      transcribeByReference(table, rows, place, left, records);
    }
  }

  /** Records that share a slab are copied at once. */
  #collect(module: TranscriberModule, left: RowsLeft, records: EncodedRow[]): void {
    const { words } = module;
    const slabs = this.#slabs;
    const size = RECORD_BYTES >> 2;
    const first = RECORDS >> 2;
    const last = first + (words[STATE_RECORDS >> 2] as number) * size;
    let { slab, room } = slabs;
    let { ordinal } = left;
    /** In the output: what is not copied yet. */
    let from = 0;
    let start = 0;
    /** What a place in the output is in the slab, less that. */
    let base = slabs.at;
    for (let at = first; at < last; at += size) {
      const key = words[at + (RECORD_KEY >> 2)] as number;
      const end = words[at + (RECORD_END >> 2)] as number;
      if (end - from > room) {
        if (start > from) slabs.copy(module.output(from, start));
        slabs.renew(end - start);
        ({ slab, room } = slabs);
        from = start;
        base = -start;
      }
      const hash = words[at + (RECORD_HASH >> 2)] as number;
      const deletes = words[at + (RECORD_DELETES >> 2)] !== 0;
      records.push(new EncodedRow(slab, base + start, base + key, base + end, deletes, hash, ordinal));
      start = end;
      ordinal += 1;
    }
    if (start > from) slabs.copy(module.output(from, start));
    left.ordinal = ordinal;
  }
}
