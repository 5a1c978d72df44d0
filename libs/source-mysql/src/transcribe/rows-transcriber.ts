/**
 * Rows events to records: from the event's bytes to the bytes of messages and keys. The work is done by a WebAssembly module
 * (`assembly/`), which sees a window of the rows at a time.
 *
 * 1. The records are those of the reference (`RowReader` and wire's `RowEncoder`), byte for byte: held together by tests over random tables
 *    and over everything that the tests on real servers stream.
 * 2. The module's memory does not grow: a row that finds no room in it is left to the reference, and so is everything where there is no module.
 * 3. Records are written where they stay, in memory that is lent: who gives none back loses speed (they are copied then), no bytes. Those that are large are copied too.
 * 4. An error leaves records of rows before it in `records`: the caller drops them with the transaction.
 */
import { EncodedRow, type TransactionBlock } from '@mysync/wire';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { TranscribedTable } from './compile-table.ts';
import { Failure } from './failure.ts';
import {
  FAIL_ROOM,
  FLUSH_BYTES,
  INPUT_BYTES,
  OUTPUT,
  OUTPUT_BYTES,
  RECORD_BYTES,
  RECORD_DELETES,
  RECORD_END,
  RECORD_HASH,
  RECORD_KEY,
  RECORDS,
  SLAB_ROOM,
  STATE_RECORDS,
} from './layout.ts';
import { TranscriberModule } from './module.ts';
import { type RowsLeft, transcribeByReference } from './reference-rows.ts';
import { type LentSlab, OwnSlabs, type Room } from './slab.ts';

export interface EventPlace {
  readonly block: TransactionBlock;
  /** Of the event; '' for that of the transaction. */
  readonly file: string;
  /** Byte offset of the event. */
  readonly offset: number;
  /** Of the event's first row. */
  readonly ordinal: number;
}

const FIRST_RECORD = RECORDS >> 2;
const RECORD_WORDS = RECORD_BYTES >> 2;
/** A record that is larger leaves too much of a slab free. */
const LARGE_BYTES = SLAB_ROOM / 8;
/** Whence records are copied. */
const COPIED: Room = { begin: OUTPUT, first: OUTPUT, enough: OUTPUT + FLUSH_BYTES, limit: OUTPUT + OUTPUT_BYTES };

export class RowsTranscriber {
  readonly #module = TranscriberModule.make();
  readonly #own = new OwnSlabs();

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
    while (left.at < end) {
      const { expected } = module;
      const slab = expected > LARGE_BYTES ? undefined : module.slabs.withRoom(expected);
      let failure: unknown;
      try {
        module.run(rows.operation, left.at - begin, end - begin, left.ordinal, slab ?? COPIED);
      } catch (error) {
        failure = error;
      }
      if (slab === undefined) this.#copy(module, left, records);
      else lend(module, slab, left, records);
      left.at = begin + module.row;
      if (failure === undefined) continue;
      const isRoom = failure instanceof Failure && failure.code === FAIL_ROOM;
      if (isRoom && slab !== undefined) {
        module.expected = LARGE_BYTES + 1;
        continue;
      }
      // a row that the window cuts off is the first of the next one
      if (isCut && left.at > begin) return;
      if (!isCut && !isRoom) throw failure;
      transcribeByReference(table, rows, place, left, records);
      return;
    }
  }

  /** Records that share a slab are copied at once. */
  #copy(module: TranscriberModule, left: RowsLeft, records: EncodedRow[]): void {
    const { words } = module;
    const slabs = this.#own;
    const last = FIRST_RECORD + (words[STATE_RECORDS >> 2] as number) * RECORD_WORDS;
    let { slab, room } = slabs;
    let { ordinal } = left;
    /** In the output: what is not copied yet. */
    let from = 0;
    let start = 0;
    /** What a place in the output is in the slab, less that. */
    let base = slabs.at;
    for (let at = FIRST_RECORD; at < last; at += RECORD_WORDS) {
      const key = words[at + (RECORD_KEY >> 2)] as number;
      const end = words[at + (RECORD_END >> 2)] as number;
      if (end - from > room) {
        if (start > from) slabs.copy(module.view(OUTPUT + from, OUTPUT + start));
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
    if (start > from) slabs.copy(module.view(OUTPUT + from, OUTPUT + start));
    left.ordinal = ordinal;
  }
}

/** Records that are where they stay. */
function lend(module: TranscriberModule, lender: LentSlab, left: RowsLeft, records: EncodedRow[]): void {
  const { words } = module;
  const { slab } = lender;
  const count = words[STATE_RECORDS >> 2] as number;
  const last = FIRST_RECORD + count * RECORD_WORDS;
  let { ordinal } = left;
  let start = lender.at;
  for (let at = FIRST_RECORD; at < last; at += RECORD_WORDS) {
    const key = words[at + (RECORD_KEY >> 2)] as number;
    const end = words[at + (RECORD_END >> 2)] as number;
    const hash = words[at + (RECORD_HASH >> 2)] as number;
    const deletes = words[at + (RECORD_DELETES >> 2)] !== 0;
    records.push(new EncodedRow(slab, start, key, end, deletes, hash, ordinal, lender));
    start = end;
    ordinal += 1;
  }
  lender.at = start;
  lender.hold(count);
  left.ordinal = ordinal;
}
