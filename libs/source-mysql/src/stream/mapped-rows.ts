/**
 * Tables that the statement under way has mapped, and its rows: into the spool, as records.
 *
 * 1. Rows are read with the table that their own table map names; rows without one are an error.
 * 2. What is mapped is forgotten with the statement's end: a table id means nothing beyond it.
 */
import {
  type BinlogPosition,
  compareBinlogPositions,
  formatTableRef,
  isMysyncError,
  MysyncError,
  parseBinlogPosition,
  type TableRef,
  tableRefKey,
} from '@mysync/core';
import type { EncodedRow, TransactionBlock } from '@mysync/wire';
import type { LogEvent } from '../binlog/log-event.ts';
import { operationOf, type RowsEvent, readHeldColumns, readRowsEvent } from '../binlog/rows-event.ts';
import { readTableId, readTableName } from '../binlog/table-map.ts';
import { sourceErrors } from '../errors.ts';
import type { UnseenCause } from '../port.ts';
import type { LoggedTransaction } from '../reread/commit-barrier.ts';
import type { PartialRows } from '../reread/partial-rows.ts';
import type { KnownTable, TableBook } from '../schema/table-book.ts';
import type { CascadingKey } from '../schema/table-facts.ts';
import type { EventPlace, RowsTranscriber } from '../transcribe/rows-transcriber.ts';
import type { Referred, ReferredRows } from './referred-rows.ts';
import type { TransactionSpool } from './transaction-spool.ts';

export interface MappedRowsOptions {
  /** MySQL, where each rows event says whether rows that foreign keys change are in the log; undefined: MariaDB, which maps the tables of such rows. */
  readonly referred: ReferredRows | undefined;
  readonly book: TableBook;
  readonly spool: TransactionSpool;
  readonly partialRows: PartialRows;
  readonly transcriber: RowsTranscriber;
  /** The end of the last transaction. */
  boundary(): BinlogPosition;
}

/** Where the event in hand stands. */
export class EventSpot {
  /** '' for the file of the transaction. */
  file = '';
  offset = 0;
  /** The one that reading is in. */
  readFile = '';

  /** File and offset, for errors. */
  get place(): string {
    return `${this.file === '' ? this.readFile : this.file}:${this.offset}`;
  }
}

/** What rows need of the open transaction; they count its ordinals on. */
export interface RowsOwner extends LoggedTransaction {
  readonly block: TransactionBlock;
  ordinals: number;
  /** Rows of the table may have changed without a trace. */
  unseen(table: TableRef, cause: UnseenCause): void;
}

interface MappedTable {
  readonly id: number;
  readonly ref: TableRef;
  readonly table: KnownTable | null;
  /** The strongest that its rows were: a delete above an update above an insert. null: it has none. */
  operation: RowsEvent['operation'] | null;
  /** null: no foreign key matters. undefined: nobody looked. */
  referred: Referred | null | undefined;
}

/** A list of so few is used again: a new one costs more than emptying it. */
const AGAIN_TABLES = 8;
const STATEMENT_END = 1;
/** MySQL ends a statement that changed nothing with an empty event of this table. */
const NO_TABLE = 0xff_ffff;

export class MappedRows {
  readonly #options: MappedRowsOptions;
  /** By the order of their maps: a statement maps a few tables. */
  #mapped: MappedTable[] = [];
  readonly #place: { block: TransactionBlock | undefined; file: string; offset: number; ordinal: number } = {
    block: undefined,
    file: '',
    offset: 0,
    ordinal: 0,
  };
  readonly #transcriber: RowsTranscriber;

  constructor(options: MappedRowsOptions) {
    this.#options = options;
    this.#transcriber = options.transcriber;
  }

  clear(): void {
    const mapped = this.#mapped;
    if (mapped.length <= AGAIN_TABLES) while (mapped.length > 0) mapped.pop();
    else this.#mapped = [];
  }

  /** A promise only where something must be asked from the server. */
  map(event: LogEvent, spot: EventSpot): Promise<void> | undefined {
    const { referred } = this.#options;
    if (referred?.mustAsk === true) return referred.ask().then(() => this.#mapNamed(event, spot));
    return this.#mapNamed(event, spot);
  }

  #mapNamed(event: LogEvent, spot: EventSpot): Promise<void> | undefined {
    const { buffer, start, end } = event;
    const again = this.#options.book.sameAgain(buffer, start, end);
    if (again !== undefined) {
      this.#map(event, spot, again.ref, again.table);
      return undefined;
    }
    let ref: TableRef;
    try {
      ref = readTableName(buffer, start, end);
    } catch (error) {
      throw unreadableMap(error, spot);
    }
    const table = this.#options.book.lookUp(ref, buffer, start, end);
    if (table === undefined) return this.#learn(ref, event, spot);
    this.#map(event, spot, ref, table);
    return undefined;
  }

  /** Whether the event is of a table that was mapped and is not captured. */
  isForNobody(event: LogEvent): boolean {
    return this.#find(readTableId(event))?.table === null;
  }

  /** A promise only where something must be asked from the server. */
  rows(event: LogEvent, spot: EventSpot, owner: RowsOwner): Promise<void> | undefined {
    const { buffer, start } = event;
    const id = readTableId(event);
    const mapped = this.#find(id);
    const flags = id >= 0 ? buffer.readUInt16LE(start + 6) : 0;
    const ends = (flags & STATEMENT_END) !== 0;
    if (mapped === undefined) {
      if (ends && id === NO_TABLE) return this.#endStatement(owner);
      throw sourceErrors.SOURCE_EVENT_UNREADABLE({
        message: 'the log holds rows of a table that was not mapped before',
        where: { position: spot.place },
      });
    }
    const operation = operationOf(event.type);
    mapped.operation = stronger(mapped.operation, operation);
    const asked = this.#followKeys(event, mapped, operation, flags, owner);
    if (asked !== undefined) return asked.then(() => this.#take(event, mapped, ends, spot, owner));
    return this.#take(event, mapped, ends, spot, owner);
  }

  /** A partial update of a table that is not captured. A promise only where something must be asked from the server. */
  partialUpdate(event: LogEvent, owner: RowsOwner): Promise<void> | undefined {
    const mapped = this.#find(readTableId(event));
    if (mapped === undefined) return undefined;
    return this.#followKeys(event, mapped, 'update', event.buffer.readUInt16LE(event.start + 6), owner);
  }

  #followKeys(
    event: LogEvent,
    mapped: MappedTable,
    operation: RowsEvent['operation'],
    flags: number,
    owner: RowsOwner,
  ): Promise<void> | undefined {
    const { referred } = this.#options;
    if (referred === undefined || !referred.concerns(operation, flags)) return undefined;
    const tell = (table: TableRef): void => owner.unseen(table, 'cascade');
    if (mapped.referred === undefined) {
      // the first event of a log that hides rows
      return referred.ask().then(() => {
        mapped.referred = referred.findUnmapped(mapped.ref);
        if (mapped.referred !== null) referred.judge(event, operation, mapped.referred, tell);
      });
    }
    if (mapped.referred !== null) referred.judge(event, operation, mapped.referred, tell);
    return undefined;
  }

  #take(
    event: LogEvent,
    mapped: MappedTable,
    ends: boolean,
    spot: EventSpot,
    owner: RowsOwner,
  ): Promise<void> | undefined {
    const partial = mapped.table === null ? undefined : this.#transcribe(mapped.table, event, spot, owner);
    if (partial !== undefined) return partial.then(() => (ends ? this.#endStatement(owner) : undefined));
    return ends ? this.#endStatement(owner) : undefined;
  }

  #map(event: LogEvent, spot: EventSpot, ref: TableRef, table: KnownTable | null): void {
    const id = readTableId(event);
    const entry = { id, ref, table, operation: null, referred: this.#referredOf(ref, event, spot) };
    const at = this.#mapped.findIndex((mapped) => mapped.id === id);
    if (at < 0) this.#mapped.push(entry);
    else this.#mapped[at] = entry;
  }

  #referredOf(ref: TableRef, event: LogEvent, spot: EventSpot): Referred | null | undefined {
    try {
      return this.#options.referred?.find(ref, event, spot);
    } catch (error) {
      throw unreadableMap(error, spot);
    }
  }

  #find(id: number): MappedTable | undefined {
    const mapped = this.#mapped;
    for (let i = mapped.length - 1; i >= 0; i -= 1) {
      const entry = mapped[i] as MappedTable;
      if (entry.id === id) return entry;
    }
    return undefined;
  }

  async #learn(ref: TableRef, event: LogEvent, spot: EventSpot): Promise<void> {
    const { buffer, start, end } = event;
    const { book, boundary } = this.#options;
    const place = parseBinlogPosition(spot.place);
    const last = boundary();
    // rows that were prepared before: nobody could change the table until now
    const isHeld = last.file !== '' && compareBinlogPositions(place, last) < 0;
    const at = isHeld ? last : place;
    const table = await book.learn(buffer, start, end, at, last.file === '' ? at : last).catch((error: unknown) => {
      throw isMysyncError(error) && error.code.startsWith('SOURCE_')
        ? withPlace(error, spot.place)
        : unreadableMap(error, spot);
    });
    this.#map(event, spot, ref, table);
  }

  /** A promise only where rows must be asked from the server. */
  #transcribe(table: KnownTable, event: LogEvent, spot: EventSpot, owner: RowsOwner): Promise<void> | undefined {
    if (table.isUnclear) {
      owner.unseen(table.ref, 'versioning');
      return undefined;
    }
    const { spool } = this.#options;
    const { tail } = spool;
    const from = tail.length;
    try {
      const rows = readRowsEvent(event, table.columnCount);
      if (!rows.isWhole || table.doubted !== null) {
        return this.#complete(table, event, rows, spot, owner).catch((error: unknown) => {
          throw unreadableRows(error, table, spot);
        });
      }
      const place = this.#place;
      place.block = owner.block;
      place.file = spot.file;
      place.offset = spot.offset;
      place.ordinal = owner.ordinals + 1;
      owner.ordinals += this.#transcriber.transcribe(table, rows, place as EventPlace, tail as EncodedRow[]);
    } catch (error) {
      throw unreadableRows(error, table, spot);
    }
    spool.grown(from);
    return undefined;
  }

  /** Of an event whose images lack columns, or may hold values that are not the row's. */
  async #complete(
    table: KnownTable,
    event: LogEvent,
    rows: RowsEvent,
    { file, offset, place }: EventSpot,
    owner: RowsOwner,
  ): Promise<void> {
    const { spool, partialRows } = this.#options;
    const held = readHeldColumns(event);
    const partial = { table, rows, held, transaction: owner, file, offset, place, ordinal: owner.ordinals + 1 };
    owner.ordinals += await partialRows.transcribe(partial, (records) => {
      const from = spool.tail.length;
      spool.tail.push(...records);
      spool.grown(from);
    });
  }

  /**
   * MariaDB may have changed rows of a captured table without a trace, by a foreign key: where the statement mapped it without
   * changing a row of it, and where it changed rows of a parent beside rows of its own, or is its own parent.
   */
  #endStatement(owner: RowsOwner): Promise<void> | undefined {
    const { referred, book } = this.#options;
    let suspicious = false;
    if (referred === undefined) {
      const mapped = this.#mapped;
      for (let i = 0; i < mapped.length; i += 1) {
        const { ref, table, operation } = mapped[i] as MappedTable;
        if (table === null) continue;
        if (operation === null) suspicious = true;
        else if (operation === 'delete' || mapped.length > 1) suspicious ||= book.knownCascades(ref)?.length !== 0;
      }
    }
    const suspects = suspicious ? [...this.#mapped] : undefined;
    this.clear();
    return suspects === undefined ? undefined : this.#suspectCascades(suspects, owner);
  }

  async #suspectCascades(mapped: readonly MappedTable[], owner: RowsOwner): Promise<void> {
    const operations = new Map(mapped.map((entry) => [tableRefKey(entry.ref), entry.operation]));
    for (const { ref, table, operation } of mapped) {
      if (table === null) continue;
      const isChanged = ({ parent }: CascadingKey): boolean => {
        const key = tableRefKey(parent);
        const ofParent = operations.get(key);
        if (ofParent === undefined) return false;
        // InnoDB refuses updates that would come back to the table itself
        if (key === tableRefKey(ref)) return ofParent === 'delete';
        return operation === null || ofParent === 'delete' || ofParent === 'update';
      };
      if ((await this.#options.book.cascades(ref)).some(isChanged)) owner.unseen(ref, 'cascade');
    }
  }
}

function stronger(a: MappedTable['operation'], b: RowsEvent['operation']): RowsEvent['operation'] {
  if (a === 'delete' || b === 'delete') return 'delete';
  return a === 'update' ? a : b;
}

function unreadableRows(cause: unknown, table: KnownTable, spot: EventSpot): unknown {
  if (isMysyncError(cause) && cause.code.startsWith('SOURCE_')) return cause;
  const name = formatTableRef(table.ref);
  return sourceErrors.SOURCE_ROW_UNREADABLE({
    message: `a row event of ${name} cannot be read`,
    where: { table: name, position: spot.place },
    cause,
  });
}

/** The same error, with its place in the log. */
function withPlace(error: MysyncError, position: string): MysyncError {
  const { code, message, where, cause } = error;
  return 'position' in where ? error : new MysyncError(code, error, { message, where: { ...where, position }, cause });
}

function unreadableMap(cause: unknown, spot: EventSpot): Error {
  return sourceErrors.SOURCE_EVENT_UNREADABLE({
    message: 'a table map of the log cannot be read',
    where: { position: spot.place },
    cause,
  });
}
