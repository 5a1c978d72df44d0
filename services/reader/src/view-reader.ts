import {
  compareBinlogPositions,
  formatBinlogPosition,
  formatTableRef,
  type Logger,
  type SourcePosition,
} from '@mysync/core';
import { unlessAborted } from '@mysync/flow';
import type { Snapshot, SnapshotProgress } from '@mysync/source-mysql';
import { IncompleteLog } from '@mysync/transport';
import type { CapturedTables } from './captured-tables.ts';
import type { ChangeIntake } from './change-intake.ts';
import type { ChangeRouter } from './change-router.ts';
import type { CheckpointSaver } from './checkpoint-saver.ts';
import type { ReaderOptions } from './options.ts';
import type { PublishPump } from './publish-pump.ts';
import type { SourceContact } from './source-contact.ts';
import type { Standing } from './standing.ts';
import type { TableResync } from './table-resync.ts';

export interface ViewReaderOptions {
  readonly reader: Pick<ReaderOptions, 'source' | 'sourceName' | 'transport' | 'topic' | 'clock' | 'metrics'>;
  readonly router: ChangeRouter;
  readonly intake: ChangeIntake;
  readonly pump: PublishPump;
  readonly tables: CapturedTables;
  readonly resync: TableResync;
  readonly standing: Standing;
  readonly saver: CheckpointSaver;
  readonly contact: SourceContact;
  readonly onProgress: (progress: SnapshotProgress) => void;
  readonly logger: Logger;
  readonly stop: AbortSignal;
}

/**
 * Rows that are read from tables, not from the log: the first snapshot of a new source, and tables that are read again.
 *
 * 1. The rows of a view enter the windows before any change that lies behind its place, followed by a sweep.
 * 2. A view counts once all of it is acked; until then the checkpoint says that the table, or the snapshot, is to be read.
 */
export class ViewReader {
  readonly #options: ViewReaderOptions;

  constructor(options: ViewReaderOptions) {
    this.#options = options;
  }

  /** The position that the rows are of, or null when stopped before the end. */
  async readFirst(): Promise<SourcePosition | null> {
    const { reader, intake, pump, tables, standing, saver, contact, onProgress, stop } = this.#options;
    const { source } = reader;
    standing.phase = 'snapshot';
    const snapshot = await unlessAborted(source.snapshot({ signal: stop, onProgress }), stop, (late) => late.close());
    const { position } = snapshot;
    await this.#inView(snapshot, async () => {
      standing.position = position;
      for await (const items of contact.waitingForRows(snapshot.items)) {
        await intake.view(items);
        // the checkpoint says 'running' still, but its marks follow: the tail that a restart reads stays short
        standing.settle(position);
      }
      if (!stop.aborted) await pump.drain();
    });
    if (stop.aborted) return null;
    standing.settle(position);
    tables.allRead(snapshot.tables);
    standing.snapshotState = 'done';
    await saver.save();
    await this.fill();
    return position;
  }

  /** Reads what is due where the stream stands, between transactions. */
  async readDue(position: SourcePosition): Promise<void> {
    const { resync, router, standing, stop } = this.#options;
    while (resync.isDue && !stop.aborted) {
      await resync.open(position, router.ahead, stop);
      if (resync.place === null || compareBinlogPositions(position, resync.place) < 0) break;
      await this.readAgain();
      standing.settle(position);
    }
  }

  /** The stream stands at the view's place: its rows and a sweep enter the windows, before anything that lies behind it. */
  async readAgain(): Promise<void> {
    const { reader, resync, intake, pump, tables, contact, logger, stop } = this.#options;
    const view = resync.take();
    if (view === null) return;
    const { table, snapshot } = view;
    try {
      await this.#inView(snapshot, async () => {
        for await (const items of contact.waitingForRows(snapshot.items)) await intake.view(items);
        if (!stop.aborted) await pump.drain();
      });
    } catch (error) {
      if (!stop.aborted) resync.failed(view, error);
      return;
    }
    if (stop.aborted) return;
    const milliseconds = Math.round(resync.done(view));
    const isGone = snapshot.gone.length > 0;
    tables.readAgain(table, snapshot.tables.length > 0 ? 'there' : isGone ? 'gone' : 'unlisted');
    if (tables.isWhole) await this.fill();
    reader.metrics.reader.resyncs.inc({ source: reader.sourceName });
    const where = { table: formatTableRef(table), place: formatBinlogPosition(snapshot.position) };
    logger.info({ ...where, milliseconds }, isGone ? 'consumers were told that the table is gone' : 'table read again');
  }

  /** The log holds every row, also when it was lost before. */
  async fill(): Promise<void> {
    const { transport, topic } = this.#options.reader;
    await new IncompleteLog(transport, topic).filled();
  }

  async #inView(snapshot: Snapshot, read: () => Promise<void>): Promise<void> {
    const { reader, router, standing } = this.#options;
    const { metrics, sourceName: source, clock } = reader;
    metrics.reader.snapshotRunning.set({ source }, 1);
    router.beginView(snapshot.position, clock.now() * 1000);
    standing.inTransaction = true;
    try {
      await read();
    } finally {
      router.endView();
      standing.inTransaction = false;
      metrics.reader.snapshotRunning.set({ source }, 0);
      await snapshot.close();
    }
  }
}
