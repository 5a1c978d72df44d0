import { compareBinlogPositions, type SourcePosition } from '@mysync/core';
import { unlessAborted } from '@mysync/flow';
import type { SourceItem } from '@mysync/source-mysql';
import type { CapturedTables } from './captured-tables.ts';
import type { ChangeIntake } from './change-intake.ts';
import type { ChangeRouter } from './change-router.ts';
import type { ReaderOptions } from './options.ts';
import type { SourceContact } from './source-contact.ts';
import type { Standing } from './standing.ts';
import type { TableResync } from './table-resync.ts';
import type { ViewReader } from './view-reader.ts';

export interface LogFollowerOptions {
  readonly reader: Pick<ReaderOptions, 'source' | 'sourceName' | 'metrics'>;
  readonly router: ChangeRouter;
  readonly intake: ChangeIntake;
  readonly views: ViewReader;
  readonly tables: CapturedTables;
  readonly resync: TableResync;
  readonly standing: Standing;
  readonly contact: SourceContact;
}

/**
 * The source, transaction by transaction: the existing rows of a new one, then its log, and between transactions the tables that are to be read
 * again. One item at a time, in the order of the log; a full window stops the pulling, which pauses the source's socket.
 */
export class LogFollower {
  readonly #options: LogFollowerOptions;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** Until stopped. `position` null: a snapshot first. */
  async run(position: SourcePosition | null, stop: AbortSignal): Promise<void> {
    const { reader, views, tables, resync, standing, contact } = this.#options;
    const from = position ?? (await views.readFirst());
    if (from === null) return;
    standing.phase = 'streaming';
    standing.position = from;
    const schemas = await unlessAborted(reader.source.tableSchemas(), stop);
    // their names only: the checkpoint holds them
    const captured = schemas.map(({ database, table }) => ({ database, table }));
    const absent = tables.absentFrom(captured);
    if (absent.length > 0) tables.findGone(await unlessAborted(reader.source.fates(absent), stop));
    tables.findLacking(captured, standing.snapshotState === 'done');
    if (tables.isWhole) await views.fill();
    if (resync.isDue) await views.readDue(from);
    contact.asks();
    const log = reader.source.stream({ from, signal: stop, knownTables: tables.known.all, observer: contact });
    for await (const items of log) {
      for (const item of items) {
        const waiting = this.#take(item);
        if (waiting !== null) await waiting;
      }
      this.#options.intake.endBatch();
    }
  }

  /** Takes an item over at once (null), or gives a promise that resolves once that is done. */
  #take(item: SourceItem): Promise<void> | null {
    const { reader, router, intake, resync, tables, standing } = this.#options;
    switch (item.kind) {
      case 'row':
        return intake.row(item);
      case 'begin':
        if (resync.place !== null && compareBinlogPositions(item.id, resync.place) >= 0) {
          return this.#beginBehindView(item);
        }
        this.#begin(item);
        return null;
      case 'commit':
        router.commit(item);
        standing.inTransaction = false;
        reader.metrics.reader.transactions.inc({ source: reader.sourceName });
        standing.settle(item.position);
        return this.#readDue(item.position);
      case 'keepalive':
        if (item.timeMicros > 0) standing.timeMicros = item.timeMicros;
        standing.pass(item.position);
        return this.#readDue(item.position);
      case 'unseen':
        tables.noteUnseen(item, router.openTransaction);
        return null;
      case 'truncate':
      case 'ddl':
      case 'sweep':
        return intake.tableChange(item);
    }
  }

  #begin(item: SourceItem & { kind: 'begin' }): void {
    const { router, standing } = this.#options;
    router.begin(item);
    standing.inTransaction = true;
    standing.timeMicros = item.commitTimeMicros;
  }

  /** A place between transactions was reached. */
  #readDue(position: SourcePosition): Promise<void> | null {
    const { views, resync } = this.#options;
    return resync.isDue ? views.readDue(position) : null;
  }

  async #beginBehindView(item: SourceItem & { kind: 'begin' }): Promise<void> {
    const { views, standing } = this.#options;
    await views.readAgain();
    if (standing.position !== null) standing.settle(standing.position);
    this.#begin(item);
  }
}
