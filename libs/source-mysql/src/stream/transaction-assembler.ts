/**
 * Events of the log to whole transactions.
 *
 * 1. Whole transactions only: rows wait in the spool until the commit; a rollback discards them, ROLLBACK TO cuts them.
 * 2. The boundary moves only when nothing is open: after XID, COMMIT, a statement of its own, a rotation. It is what reading
 *    resumes from, so it is never between a table map and its rows.
 * 3. An event that may hold captured changes and cannot be read exactly is an error. Events are skipped only when their type
 *    is known to hold none, or says of itself that it may be ignored.
 * 4. Ordinals count captured changes in log order, from 1, a key change as two; what ROLLBACK TO cut off does not count.
 * 5. Tables whose rows may have changed unseen come last, one item for each and its cause, whatever was rolled back: a table without transactions
 *    keeps what was done to it, and a reading too many does no harm.
 *
 *     begin ──► rows, savepoints ──► commit ──► ready ──(drain)──► between transactions
 *                     └─ rollback: discarded ───────────────────────────┘
 */
import { type BinlogPosition, formatBinlogPosition, type Logger, type SourcePosition } from '@mysync/core';
import { EVENT, isRowsEvent } from '../binlog/column-types.ts';
import { isMadeUp, type LogEvent } from '../binlog/log-event.ts';
import { type QueryContext, readQueryContext } from '../binlog/query-context.ts';
import { sourceErrors } from '../errors.ts';
import type { Definitions } from '../history/definitions.ts';
import type { ResolvedOptions } from '../options.ts';
import type { SourceItem } from '../port.ts';
import type { PartialRows } from '../reread/partial-rows.ts';
import type { CascadeBook } from '../schema/cascade-book.ts';
import type { TableBook } from '../schema/table-book.ts';
import type { RowsTranscriber } from '../transcribe/rows-transcriber.ts';
import { LogBoundary } from './log-boundary.ts';
import { LogCursor } from './log-position.ts';
import { EventSpot, MappedRows } from './mapped-rows.ts';
import { OpenTransaction } from './open-transaction.ts';
import { readOtherEvent } from './other-event.ts';
import { ReferredRows } from './referred-rows.ts';
import { readStatement, type StatementMeaning } from './statement.ts';
import { StatementEffects, type TableEffect } from './statement-effects.ts';
import type { TransactionSpool } from './transaction-spool.ts';

export interface TransactionAssemblerOptions extends Pick<ResolvedOptions, 'name' | 'logger' | 'clock'> {
  readonly flavor: 'mysql' | 'mariadb';
  readonly serverUuid: string;
  readonly from: SourcePosition;
  readonly book: TableBook;
  readonly spool: TransactionSpool;
  readonly partialRows: PartialRows;
  readonly transcriber: RowsTranscriber;
  /** Takes down what statements make of tables; undefined: nobody asks. */
  readonly definitions: Definitions | undefined;
  /** The server writes names of tables in lower case (lower_case_table_names). */
  readonly foldsNames: boolean;
  readonly cascades: CascadeBook;
}

export class TransactionAssembler {
  readonly #options: TransactionAssemblerOptions;
  readonly #logger: Logger;
  readonly #book: TableBook;
  readonly #spool: TransactionSpool;
  readonly #rows: MappedRows;
  readonly #effects: StatementEffects;
  readonly #cursor: LogCursor;
  readonly #boundary: LogBoundary;
  /** Of the event in hand. */
  readonly #spot = new EventSpot();
  #timeMicros = 0;
  #open: OpenTransaction | undefined;
  #ready: OpenTransaction | undefined;

  constructor(options: TransactionAssemblerOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#book = options.book;
    this.#spool = options.spool;
    const { flavor, from, cascades } = options;
    const referred = flavor === 'mysql' ? new ReferredRows(cascades) : undefined;
    this.#rows = new MappedRows({ ...options, referred, boundary: () => this.boundary });
    this.#effects = new StatementEffects(options);
    this.#cursor = new LogCursor(from.file, from.offset);
    this.#boundary = new LogBoundary({ flavor, from, cursor: this.#cursor });
  }

  /** The end of the last transaction that was drained or held nothing for us. */
  get boundary(): SourcePosition {
    return this.#boundary.position;
  }

  /** A transaction is complete: `drain` it before the next event. */
  get ready(): boolean {
    return this.#ready !== undefined;
  }

  /** A promise only where something must be asked from the server. */
  process(event: LogEvent): Promise<void> | undefined {
    this.#goTo(event);
    if (event.seconds > 0) this.#timeMicros = event.seconds * 1_000_000;
    if (event.type === EVENT.TABLE_MAP) {
      this.#opened();
      return this.#rows.map(event, this.#spot);
    }
    if (isRowsEvent(event.type)) return this.#rows.rows(event, this.#spot, this.#opened());
    const { control } = event;
    switch (control.kind) {
      case 'rotate':
        // the first thing that a server says is where it begins: we know that
        if (control.file === this.#cursor.file) return undefined;
        this.#abandon();
        this.#cursor.moveTo(control.file, control.offset);
        this.#boundary.passFile();
        return undefined;
      case 'gtid':
        this.#begin(control.gtid, control.commitTimeMicros, false, false);
        return undefined;
      case 'mariadb-gtid':
        this.#begin(control.gtid, 0, control.standalone, !control.standalone);
        if (control.preparedXa && this.#open !== undefined) this.#open.isXa = true;
        if (control.idle && this.#open !== undefined) this.#open.isIdle = true;
        return undefined;
      case 'gtid-set':
        this.#boundary.learnGtids(control.gtidSet);
        if (this.#open === undefined) this.#boundary.pass('');
        return undefined;
      case 'xid':
        this.#commit();
        return undefined;
      case 'xa-prepare':
        if (!control.onePhase && this.#spool.count > 0) throw this.#unreadable('prepared rows that were not held');
        if (control.onePhase) this.#commit();
        else this.#finishEmpty();
        return undefined;
      case 'query':
        if (control.bytes === null) return this.#query(event, control.statement, control.database);
        return this.#queryInCharset(event, control.bytes, control.database);
      default:
        return this.#other(event);
    }
  }

  /** Appends the complete transaction to `batch`, when it has few changes; else does nothing and says false: `drain` it. */
  drainFew(batch: SourceItem[]): boolean {
    const open = this.#ready;
    if (open === undefined) return true;
    const from = batch.length;
    batch.push({ kind: 'begin', id: open.id, commitTimeMicros: open.commitTimeMicros });
    if (!this.#spool.drainFew(batch)) {
      batch.length = from;
      return false;
    }
    this.#drained(open, batch);
    return true;
  }

  /** What `drain` gives comes out of a file: a piece may be as large as memory allows, however few items it has. */
  get readsFile(): boolean {
    return this.#spool.isInFile;
  }

  /** The complete transaction, in pieces. */
  *drain(): Generator<SourceItem[]> {
    const open = this.#ready;
    if (open === undefined) return;
    yield [{ kind: 'begin', id: open.id, commitTimeMicros: open.commitTimeMicros }];
    yield* this.#spool.drain();
    const last: SourceItem[] = [];
    this.#drained(open, last);
    yield last;
  }

  #drained(open: OpenTransaction, items: SourceItem[]): void {
    open.tellUnseen(items);
    this.#ready = undefined;
    this.#boundary.pass(open.id.gtid);
    this.#boundary.told();
    items.push({ kind: 'commit', position: this.boundary, ordinals: open.ordinals });
  }

  /** What moved since the last item without one, if anything did. */
  takeKeepalive(): SourceItem | undefined {
    if (!this.#boundary.hasMoved || this.#open !== undefined) return undefined;
    this.#boundary.told();
    return { kind: 'keepalive', position: this.boundary, timeMicros: this.#timeMicros };
  }

  // --- transactions ---------------------------------------------------------------------------------------------

  /** The place of the event in hand: inside a payload or a prepared transaction it says so itself. */
  #goTo(event: LogEvent): void {
    const { place } = event;
    const spot = this.#spot;
    spot.file = place?.file ?? '';
    if (place !== undefined) spot.offset = place.offset;
    else if (event.type === EVENT.ROTATE || isMadeUp(event)) spot.offset = this.#cursor.offset;
    else spot.offset = this.#cursor.pass(event.length, event.nextOffset);
    spot.readFile = this.#cursor.file;
  }

  #begin(gtid: string, commitTimeMicros: number, standalone: boolean, inBlock: boolean): void {
    this.#abandon();
    const id = { file: this.#cursor.file, offset: this.#spot.offset, gtid, ordinal: 0 };
    const time = commitTimeMicros > 0 ? commitTimeMicros : this.#timeMicros;
    const { name, serverUuid } = this.#options;
    this.#open = new OpenTransaction({ source: name, serverUuid, id, commitTimeMicros: time, standalone, inBlock });
  }

  /** Of an event that needs one: logs without GTID events begin with BEGIN, or with the statement itself. */
  #opened(): OpenTransaction {
    if (this.#open === undefined) this.#begin('', 0, false, false);
    return this.#open as OpenTransaction;
  }

  #commit(): void {
    const open = this.#open;
    this.#rows.clear();
    if (open === undefined || (this.#spool.count === 0 && !open.hasUnseen)) {
      this.#finishEmpty();
      return;
    }
    this.#spool.seal();
    this.#open = undefined;
    this.#ready = open;
  }

  /** The end of a transaction that holds nothing for us. */
  #finishEmpty(): void {
    const gtid = this.#open?.id.gtid ?? '';
    this.#open = undefined;
    this.#spool.clear();
    this.#rows.clear();
    this.#boundary.pass(gtid);
  }

  /** A new file or transaction begins: what was open never ended (the server crashed while it wrote it). */
  #abandon(): void {
    if (this.#open !== undefined) {
      this.#logger.debug({ position: formatBinlogPosition(this.#open.id) }, 'a transaction has no end in the log');
    }
    this.#open = undefined;
    this.#spool.clear();
    this.#rows.clear();
  }

  // --- statements -----------------------------------------------------------------------------------------------

  /** The server writes statements down, also those that it words itself, in the charset of their client (seen on both). */
  async #queryInCharset(event: LogEvent, bytes: Buffer, database: string): Promise<void> {
    const { clientCollation } = this.#context(event);
    await this.#query(event, await this.#book.statementText(bytes, clientCollation), database);
  }

  /** A promise only where definitions of tables may change. */
  #query(event: LogEvent, statement: string, database: string): Promise<void> | undefined {
    const meaning = readStatement(statement, database);
    switch (meaning.kind) {
      case 'begin':
        this.#opened().inBlock = true;
        return undefined;
      case 'xa-start':
        this.#opened().inBlock = true;
        this.#opened().isXa = true;
        return undefined;
      case 'xa-end':
        return undefined;
      case 'xa-outcome':
        this.#finishEmpty();
        return undefined;
      case 'commit':
        this.#commit();
        return undefined;
      case 'rollback':
        this.#spool.clear();
        if (this.#open !== undefined) this.#open.ordinals = 0;
        this.#commit();
        return undefined;
      case 'savepoint':
        this.#opened();
        this.#spool.mark(meaning.name);
        return undefined;
      case 'rollback-to': {
        const open = this.#opened();
        if (!this.#spool.rollbackTo(meaning.name)) {
          throw this.#unreadable(`a rollback to the savepoint ${meaning.name}, which was not set before`);
        }
        open.ordinals = this.#spool.count;
        return undefined;
      }
      default: {
        const open = this.#opened();
        if (open.isIdle) {
          this.#finishEmpty();
          return undefined;
        }
        const noted = this.#note(event, statement, database);
        const asked = this.#noteKeys(open, meaning, statement);
        if (noted !== undefined || asked !== undefined) {
          return Promise.all([noted, asked]).then(() => this.#take(open, meaning, statement));
        }
        this.#take(open, meaning, statement);
        return undefined;
      }
    }
  }

  #note(event: LogEvent, statement: string, database: string): Promise<void> | undefined {
    const { definitions } = this.#options;
    if (definitions === undefined) return undefined;
    const place = this.#place;
    const last = this.boundary;
    const context = (): QueryContext => this.#context(event);
    return definitions.note(statement, database, context, place, last.file === '' ? place : last);
  }

  /** A promise only where the server must be asked. */
  #noteKeys(open: OpenTransaction, meaning: StatementMeaning, statement: string): Promise<unknown> | undefined {
    const { cascades } = this.#options;
    const tables = this.#effects.redefined(meaning, statement);
    if (tables !== undefined) cascades.noteDdl({ gtid: open.id.gtid, tables });
    return this.#effects.needsKeys(meaning, statement, this.#place) ? cascades.ask() : undefined;
  }

  get #place(): BinlogPosition {
    const { file, offset, readFile } = this.#spot;
    return { file: file === '' ? readFile : file, offset };
  }

  #take(open: OpenTransaction, meaning: StatementMeaning, statement: string): void {
    for (const effect of this.#effects.of(meaning, statement, this.#place)) this.#change(effect, statement);
    // MySQL logs CREATE TABLE … SELECT as one group that goes on with rows
    if (open.inBlock || (!open.standalone && /\bSTART TRANSACTION\s*$/i.test(statement))) {
      open.inBlock = true;
      return;
    }
    this.#commit();
  }

  #change(effect: TableEffect, statement: string): void {
    const open = this.#open as OpenTransaction;
    if (effect.kind === 'unseen') {
      open.unseen(effect.table, effect.cause, statement);
      return;
    }
    open.ordinals += 1;
    const from = this.#spool.tail.length;
    this.#spool.tail.push({ ...effect, statement, ordinal: open.ordinals });
    this.#spool.grown(from);
    this.#book.forget(effect.table);
  }

  // --- everything else ------------------------------------------------------------------------------------------

  /** A promise only where something must be asked from the server. */
  #other(event: LogEvent): Promise<void> | undefined {
    const kind = readOtherEvent(event);
    switch (kind) {
      case 'nothing':
        return undefined;
      case 'heartbeat':
        // the server has nothing newer: its log is read up to now
        if (this.#open !== undefined) return undefined;
        this.#timeMicros = this.#options.clock.now() * 1000;
        this.#boundary.pass('');
        return undefined;
      case 'between':
        if (this.#open === undefined) this.#boundary.pass('');
        return undefined;
      case 'format':
        this.#boundary.learnFile(event.seconds);
        return undefined;
      case 'partial-update':
        if (this.#rows.isForNobody(event)) return this.#rows.partialUpdate(event, this.#opened());
        // those of captured tables come as whole ones
        throw this.#unreadable('a partial JSON update');
      case 'incident':
        throw this.#unreadable('an incident: the server says that changes are missing from its log');
      case 'unknown':
        throw this.#unreadable(`an event of the unknown type ${event.type}`);
    }
  }

  #context(event: LogEvent): QueryContext {
    try {
      return readQueryContext(event.buffer, event.start, event.end);
    } catch (cause) {
      throw this.#unreadable('a statement whose session cannot be read', cause);
    }
  }

  #unreadable(what: string, cause?: unknown): Error {
    return sourceErrors.SOURCE_EVENT_UNREADABLE({
      message: `the log holds ${what}`,
      where: { position: this.#spot.place },
      ...(cause === undefined ? {} : { cause }),
    });
  }
}
