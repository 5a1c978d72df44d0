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
import {
  type BinlogPosition,
  formatBinlogPosition,
  type GtidSet,
  type Logger,
  parseGtidSet,
  type SourcePosition,
} from '@mysync/core';
import { EVENT, isRowsEvent } from '../binlog/column-types.ts';
import { EVENT_FLAG, isMadeUp, type LogEvent } from '../binlog/log-event.ts';
import { type QueryContext, readQueryContext } from '../binlog/query-context.ts';
import { fileReplaced, sourceErrors } from '../errors.ts';
import type { Definitions } from '../history/definitions.ts';
import type { ResolvedOptions } from '../options.ts';
import type { SourceItem } from '../port.ts';
import type { PartialRows } from '../reread/partial-rows.ts';
import type { TableBook } from '../schema/table-book.ts';
import { LogCursor } from './log-position.ts';
import { EventSpot, MappedRows } from './mapped-rows.ts';
import { OpenTransaction } from './open-transaction.ts';
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
  /** Takes down what statements make of tables; undefined: nobody asks. */
  readonly definitions: Definitions | undefined;
  /** The server writes names of tables in lower case (lower_case_table_names). */
  readonly foldsNames: boolean;
  /** Rows that a foreign key changes are in the log. */
  readonly logsCascades: boolean;
}

export class TransactionAssembler {
  readonly #options: TransactionAssemblerOptions;
  readonly #logger: Logger;
  readonly #book: TableBook;
  readonly #spool: TransactionSpool;
  readonly #rows: MappedRows;
  readonly #effects: StatementEffects;
  readonly #cursor: LogCursor;
  readonly #gtids: GtidSet;
  /** Of the file in hand, in seconds; 0 before it has said so. */
  #fileCreated: number;
  /** '' in the position means unknown unless the log is read from a file's start, which tells. */
  #gtidsKnown: boolean;
  #boundary: SourcePosition;
  /** Of the event in hand, when it stands elsewhere than where reading is; else ''. */
  #placeFile = '';
  readonly #spot = new EventSpot();
  #timeMicros = 0;
  #moved = false;
  #open: OpenTransaction | undefined;
  #ready: OpenTransaction | undefined;

  constructor(options: TransactionAssemblerOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#book = options.book;
    this.#spool = options.spool;
    this.#rows = new MappedRows({ ...options, boundary: () => this.#boundary });
    this.#effects = new StatementEffects(options);
    const { from } = options;
    this.#cursor = new LogCursor(from.file, from.offset);
    this.#gtids = parseGtidSet(options.flavor, from.gtidSet);
    this.#gtidsKnown = from.gtidSet !== '';
    this.#fileCreated = from.fileCreated ?? 0;
    this.#boundary = from;
  }

  /** The end of the last transaction that was drained or held nothing for us. */
  get boundary(): SourcePosition {
    return this.#boundary;
  }

  /** A transaction is complete: `drain` it before the next event. */
  get ready(): boolean {
    return this.#ready !== undefined;
  }

  /** A promise only where something must be asked from the server. */
  process(event: LogEvent): Promise<void> | undefined {
    const { place } = event;
    this.#placeFile = place?.file ?? '';
    const at =
      place !== undefined
        ? place.offset
        : event.type === EVENT.ROTATE || isMadeUp(event)
          ? this.#cursor.offset
          : this.#cursor.pass(event.length, event.nextOffset);
    if (event.seconds > 0) this.#timeMicros = event.seconds * 1_000_000;
    if (event.type === EVENT.TABLE_MAP) {
      this.#opened(at);
      return this.#rows.map(event, this.#spotAt(at));
    }
    if (isRowsEvent(event.type)) return this.#rows.rows(event, this.#spotAt(at), this.#opened(at));
    const { control } = event;
    switch (control.kind) {
      case 'rotate':
        // the first thing that a server says is where it begins: we know that
        if (control.file === this.#cursor.file) return undefined;
        this.#abandon();
        this.#cursor.moveTo(control.file, control.offset);
        this.#fileCreated = 0;
        this.#pass('');
        return undefined;
      case 'gtid':
        this.#begin(at, control.gtid, control.commitTimeMicros, false, false);
        return undefined;
      case 'mariadb-gtid':
        this.#begin(at, control.gtid, 0, control.standalone, !control.standalone);
        if (control.preparedXa && this.#open !== undefined) this.#open.isXa = true;
        if (control.idle && this.#open !== undefined) this.#open.isIdle = true;
        return undefined;
      case 'gtid-set':
        this.#learnGtids(control.gtidSet);
        return undefined;
      case 'xid':
        this.#commit();
        return undefined;
      case 'xa-prepare':
        if (!control.onePhase && this.#spool.count > 0) throw this.#unreadable(at, 'prepared rows that were not held');
        if (control.onePhase) this.#commit();
        else this.#finishEmpty();
        return undefined;
      case 'query':
        if (control.bytes === null) return this.#query(event, control.statement, control.database, at);
        return this.#queryInCharset(event, control.bytes, control.database, at);
      default:
        this.#other(event, at);
        return undefined;
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
    this.#pass(open.id.gtid);
    this.#moved = false;
    items.push({ kind: 'commit', position: this.#boundary, ordinals: open.ordinals });
  }

  /** What moved since the last item without one, if anything did. */
  takeKeepalive(): SourceItem | undefined {
    if (!this.#moved || this.#open !== undefined) return undefined;
    this.#moved = false;
    return { kind: 'keepalive', position: this.#boundary, timeMicros: this.#timeMicros };
  }

  // --- transactions ---------------------------------------------------------------------------------------------

  #begin(at: number, gtid: string, commitTimeMicros: number, standalone: boolean, inBlock: boolean): void {
    this.#abandon();
    const id = { file: this.#cursor.file, offset: at, gtid, ordinal: 0 };
    const time = commitTimeMicros > 0 ? commitTimeMicros : this.#timeMicros;
    const { name, serverUuid } = this.#options;
    this.#open = new OpenTransaction({ source: name, serverUuid, id, commitTimeMicros: time, standalone, inBlock });
  }

  /** Of an event that needs one: logs without GTID events begin with BEGIN, or with the statement itself. */
  #opened(at: number): OpenTransaction {
    if (this.#open === undefined) this.#begin(at, '', 0, false, false);
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
    this.#pass(gtid);
  }

  /** A new file or transaction begins: what was open never ended (the server crashed while it wrote it). */
  #abandon(): void {
    if (this.#open !== undefined) {
      this.#logger.debug({ position: this.#place(this.#open.id.offset) }, 'a transaction has no end in the log');
    }
    this.#open = undefined;
    this.#spool.clear();
    this.#rows.clear();
  }

  #pass(gtid: string): void {
    // reading began behind a set of GTIDs: no place in the log is behind it before the first transaction that was not in it
    if (this.#boundary.file === '' && gtid === '') return;
    if (gtid !== '') this.#gtids.add(gtid);
    this.#moved = true;
    const { file, offset } = this.#cursor;
    this.#boundary = this.#stamped(file, offset, this.#gtidsKnown ? this.#gtids.toString() : '');
  }

  #stamped(file: string, offset: number, gtidSet: string): SourcePosition {
    const fileCreated = this.#fileCreated;
    return fileCreated === 0 ? { file, offset, gtidSet } : { file, offset, gtidSet, fileCreated };
  }

  /** Every connection begins with the format of its first file, from wherever in it the log is asked for. */
  #learnFile(seconds: number): void {
    if (seconds === 0) return;
    if (this.#fileCreated !== 0 && this.#fileCreated !== seconds) {
      throw fileReplaced(formatBinlogPosition(this.#boundary), this.#fileCreated, seconds);
    }
    this.#fileCreated = seconds;
    const { file, offset, gtidSet } = this.#boundary;
    if (file === this.#cursor.file) this.#boundary = this.#stamped(file, offset, gtidSet);
  }

  /** It comes before any transaction of its file, and tells what happened before that. */
  #learnGtids(text: string): void {
    // MySQL: also what was declared as executed and never logged (gtid_purged)
    if (!this.#gtidsKnown || this.#options.flavor === 'mysql') this.#gtids.addAll(text);
    this.#gtidsKnown = true;
    if (this.#open === undefined) this.#pass('');
  }

  // --- statements -----------------------------------------------------------------------------------------------

  /** The server writes statements down, also those that it words itself, in the charset of their client (seen on both). */
  async #queryInCharset(event: LogEvent, bytes: Buffer, database: string, at: number): Promise<void> {
    const { clientCollation } = this.#context(event, at);
    await this.#query(event, await this.#book.statementText(bytes, clientCollation), database, at);
  }

  /** A promise only where definitions of tables may change. */
  #query(event: LogEvent, statement: string, database: string, at: number): Promise<void> | undefined {
    const meaning = readStatement(statement, database);
    switch (meaning.kind) {
      case 'begin':
        this.#opened(at).inBlock = true;
        return undefined;
      case 'xa-start':
        this.#opened(at).inBlock = true;
        this.#opened(at).isXa = true;
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
        this.#opened(at);
        this.#spool.mark(meaning.name);
        return undefined;
      case 'rollback-to': {
        const open = this.#opened(at);
        if (!this.#spool.rollbackTo(meaning.name)) {
          throw this.#unreadable(at, `a rollback to the savepoint ${meaning.name}, which was not set before`);
        }
        open.ordinals = this.#spool.count;
        return undefined;
      }
      default: {
        const open = this.#opened(at);
        if (open.isIdle) {
          this.#finishEmpty();
          return undefined;
        }
        const noted = this.#note(event, statement, database, at);
        if (noted !== undefined) return noted.then(() => this.#take(open, meaning, statement));
        this.#take(open, meaning, statement);
        return undefined;
      }
    }
  }

  #note(event: LogEvent, statement: string, database: string, at: number): Promise<void> | undefined {
    const { definitions } = this.#options;
    if (definitions === undefined) return undefined;
    const place: BinlogPosition = { file: this.#placeFile === '' ? this.#cursor.file : this.#placeFile, offset: at };
    const context = (): QueryContext => this.#context(event, at);
    return definitions.note(statement, database, context, place, this.#boundary.file === '' ? place : this.#boundary);
  }

  #take(open: OpenTransaction, meaning: StatementMeaning, statement: string): void {
    for (const effect of this.#effects.of(meaning, statement)) this.#change(effect, statement);
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

  #other(event: LogEvent, at: number): void {
    switch (event.type) {
      case EVENT.HEARTBEAT:
      case EVENT.HEARTBEAT_V2:
        // the server has nothing newer: its log is read up to now
        if (this.#open !== undefined) return;
        this.#timeMicros = this.#options.clock.now() * 1000;
        this.#pass('');
        return;
      case EVENT.STOP:
      case EVENT.BINLOG_CHECKPOINT:
        if (this.#open === undefined) this.#pass('');
        return;
      case EVENT.FORMAT_DESCRIPTION:
        this.#learnFile(event.seconds);
        return;
      case EVENT.APPEND_BLOCK: // pieces of a file: the statement that loads them comes by itself
      case EVENT.BEGIN_LOAD_QUERY:
      case EVENT.DELETE_FILE:
      case EVENT.INTVAR:
      case EVENT.RAND:
      case EVENT.USER_VAR:
      case EVENT.IGNORABLE:
      case EVENT.ROWS_QUERY:
      case EVENT.TRANSACTION_CONTEXT:
      case EVENT.VIEW_CHANGE:
      case EVENT.ANNOTATE_ROWS:
      case EVENT.START_ENCRYPTION:
      case EVENT.TRANSACTION_PAYLOAD: // what is in it comes by itself
        return;
      case EVENT.PARTIAL_UPDATE_ROWS: {
        if (this.#rows.isForNobody(event)) return;
        // those of captured tables come as whole ones
        throw this.#unreadable(at, 'a partial JSON update');
      }
      case EVENT.INCIDENT:
        throw this.#unreadable(at, 'an incident: the server says that changes are missing from its log');
      default:
        if ((event.flags & EVENT_FLAG.IGNORABLE) !== 0) return;
        throw this.#unreadable(at, `an event of the unknown type ${event.type}`);
    }
  }

  #spotAt(offset: number): EventSpot {
    const spot = this.#spot;
    spot.file = this.#placeFile;
    spot.offset = offset;
    spot.readFile = this.#cursor.file;
    return spot;
  }

  #place(offset: number): string {
    return `${this.#placeFile === '' ? this.#cursor.file : this.#placeFile}:${offset}`;
  }

  #context(event: LogEvent, at: number): QueryContext {
    try {
      return readQueryContext(event.buffer, event.start, event.end);
    } catch (cause) {
      throw this.#unreadable(at, 'a statement whose session cannot be read', cause);
    }
  }

  #unreadable(at: number, what: string, cause?: unknown): Error {
    return sourceErrors.SOURCE_EVENT_UNREADABLE({
      message: `the log holds ${what}`,
      where: { position: this.#place(at) },
      ...(cause === undefined ? {} : { cause }),
    });
  }
}
