import {
  type BinlogPosition,
  type ChangeId,
  type Clock,
  compareBinlogPositions,
  errorForLog,
  formatBinlogPosition,
  formatTableRef,
  type Logger,
  type SourcePosition,
  type TableRef,
  tableRefKey,
} from '@mysync/core';
import { Backoff, isRetriableError, unlessAborted } from '@mysync/flow';
import type { BinlogSource, Snapshot, SnapshotProgress, UnseenCause } from '@mysync/source-mysql';

/** Why a table is read again: what the log told, an ALTER, that its rows were never read, that it is gone and the log may not tell, or one of these in an earlier life. */
export type ResyncCause = UnseenCause | 'alter' | 'captured' | 'gone' | 'unfinished';

export interface TableResyncOptions {
  readonly source: Pick<BinlogSource, 'snapshot'>;
  /** The server whose log is read: another one's tables tell nothing of it. */
  readonly serverUuid: string;
  readonly onProgress: (progress: SnapshotProgress) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Wanted {
  readonly table: TableRef;
  readonly causes: Set<ResyncCause>;
  /** Monotonic time before which it is not read: it was read just before. */
  readonly notBeforeMs: number;
}

interface View {
  readonly table: TableRef;
  readonly snapshot: Snapshot;
  /** Monotonic time at which its reading began. */
  readingSinceMs: number;
  readonly timer: AbortController;
}

/**
 * How long a view waits for the stream to come to its place: meanwhile DDL on the table waits for us, and who comes after that DDL.
 * Waiting for longer, the stream is far behind: a later view is opened once it has come to where this one was.
 */
export const VIEW_WAIT_MS = 9_000;
/** A table rests after it was read, as long as the reading took and at least so long: others come first, the stream too. */
const REST_MS = 1_000;
/** A view may be older than what the stream already read (MariaDB shows a commit in the log first): tries, and the pause between. */
const TRIES = 5;
const TRY_AGAIN_MS = 50;

/**
 * Which tables are to be read again, and the view through which the next of them is (spec: docs/spec/table-resync.md).
 *
 * 1. A table is wanted from the moment its cause is met until its rows as of a place behind the cause are acked. Every checkpoint names those
 *    that are wanted when it is saved, so that a restart which does not meet the cause again wants them, too.
 * 2. A view is opened between transactions only, while the stream stands still, and kept only if it is no older than anything the stream
 *    handed over, in this life or in the one before.
 * 3. One view at a time, of one table.
 */
export class TableResync {
  readonly #options: TableResyncOptions;
  /** By key; the order in which they are read. */
  readonly #wanted = new Map<string, Wanted>();
  readonly #rests = new Map<string, number>();
  readonly #backoff = new Backoff({ minMs: 500, maxMs: 30_000 });
  #view: View | null = null;
  #notBeforeMs = 0;
  /** The stream has to come here before a view is worth opening. */
  #notBefore: BinlogPosition | null = null;

  constructor(options: TableResyncOptions) {
    this.#options = options;
  }

  /** Some table is wanted. */
  get isDue(): boolean {
    return this.#wanted.size > 0;
  }

  wants(table: TableRef): boolean {
    return this.#wanted.has(tableRefKey(table));
  }

  get tables(): readonly TableRef[] {
    return [...this.#wanted.values()].map(({ table }) => table);
  }

  /** Where the rows of the open view belong: before any transaction that begins there or later. */
  get place(): SourcePosition | null {
    return this.#view?.snapshot.position ?? null;
  }

  /** False when it was wanted already. */
  want({ database, table: name }: TableRef, cause: ResyncCause): boolean {
    // what is stored in the checkpoint holds no more than these, whatever else the caller knows of the table
    const table = { database, table: name };
    const key = tableRefKey(table);
    const wanted = this.#wanted.get(key);
    if (wanted !== undefined) {
      wanted.causes.add(cause);
      return false;
    }
    this.#wanted.set(key, { table, causes: new Set([cause]), notBeforeMs: this.#rests.get(key) ?? 0 });
    this.#rests.delete(key);
    return true;
  }

  /** The log holds every row of it after all. */
  forget(table: TableRef): void {
    const key = tableRefKey(table);
    this.#wanted.delete(key);
    if (this.#view !== null && tableRefKey(this.#view.table) === key) this.#drop();
  }

  /**
   * Opens a view if there is a table to be read and none is open. `at`: where the stream stands, between transactions; `ahead`: what an
   * earlier life published beyond that. Throws what does not pass by itself.
   */
  async open(at: SourcePosition, ahead: ChangeId | null, signal: AbortSignal): Promise<void> {
    const { source, serverUuid, onProgress, clock, logger } = this.#options;
    const wanted = this.#next(at);
    if (wanted === undefined) return;
    const { table } = wanted;
    try {
      for (let attempt = 1; !signal.aborted; attempt += 1) {
        const opening = source.snapshot({ only: [table], onProgress, signal });
        const snapshot = await unlessAborted(opening, signal, (late) => late.close());
        const isOurs = snapshot.serverUuid === serverUuid;
        if (isOurs && compareBinlogPositions(snapshot.position, at) >= 0 && isBehind(snapshot.position, ahead)) {
          this.#view = { table, snapshot, readingSinceMs: 0, timer: new AbortController() };
          this.#limit(this.#view);
          return;
        }
        await snapshot.close();
        if (attempt === TRIES) return this.#pause();
        await clock.sleep(TRY_AGAIN_MS, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#failed(table, error);
      logger.debug({ table: formatTableRef(table), at: formatBinlogPosition(at) }, 'no view of the table yet');
    }
  }

  /** The open view: whoever takes it reads it at once, closes it, and says `done` or `failed`. */
  take(): View | null {
    const view = this.#view;
    this.#view = null;
    view?.timer.abort();
    if (view !== null) view.readingSinceMs = this.#options.clock.monotonic();
    return view;
  }

  /** Every row of the view is acked. Whatever the log told of the table until its place is in it. Gives how long the reading took, in ms. */
  done({ table, readingSinceMs }: View): number {
    const now = this.#options.clock.monotonic();
    const key = tableRefKey(table);
    this.#wanted.delete(key);
    const tookMs = now - readingSinceMs;
    this.#rests.set(key, now + Math.max(REST_MS, tookMs));
    if (this.#rests.size > 1000) for (const [name, until] of this.#rests) if (until <= now) this.#rests.delete(name);
    this.#backoff.reset();
    return tookMs;
  }

  /** Rethrows what does not pass by itself; else the table is read later, in a view of then. */
  failed({ table }: View, error: unknown): void {
    this.#failed(table, error);
  }

  close(): void {
    this.#drop();
  }

  #next(at: SourcePosition): Wanted | undefined {
    if (this.#view !== null || this.#wanted.size === 0 || at.file === '') return undefined;
    if (this.#notBefore !== null && compareBinlogPositions(at, this.#notBefore) < 0) return undefined;
    const now = this.#options.clock.monotonic();
    if (now < this.#notBeforeMs) return undefined;
    this.#notBefore = null;
    for (const wanted of this.#wanted.values()) if (wanted.notBeforeMs <= now) return wanted;
    return undefined;
  }

  #failed(table: TableRef, error: unknown): void {
    if (!isRetriableError(error)) throw error;
    const { logger } = this.#options;
    logger.warn({ table: formatTableRef(table), error: errorForLog(error) }, 'the table could not be read again yet');
    // another table may be luckier
    const key = tableRefKey(table);
    const wanted = this.#wanted.get(key);
    if (wanted !== undefined && this.#wanted.delete(key)) this.#wanted.set(key, wanted);
    this.#pause();
  }

  #pause(): void {
    this.#notBeforeMs = this.#options.clock.monotonic() + this.#backoff.next();
  }

  #limit(view: View): void {
    const { clock, logger } = this.#options;
    const { timer, table, snapshot } = view;
    const expire = (): void => {
      if (this.#view !== view) return;
      this.#notBefore = snapshot.position;
      this.#drop();
      const where = { table: formatTableRef(table), position: formatBinlogPosition(snapshot.position) };
      logger.info(where, 'the stream is too far behind to read the table again: waiting until it comes here');
    };
    clock.sleep(VIEW_WAIT_MS, timer.signal).then(expire, () => undefined);
  }

  #drop(): void {
    const view = this.take();
    view?.snapshot.close().catch(() => undefined);
  }
}

/** Nothing that was published lies at the place or behind it. */
function isBehind(place: BinlogPosition, ahead: ChangeId | null): boolean {
  if (ahead === null) return true;
  const distance = compareBinlogPositions(place, ahead);
  return distance > 0 || (distance === 0 && ahead.ordinal === 0);
}
