import { type Clock, compareBinlogPositions } from '@mysync/core';
import { type CheckpointTracker, isRetriableError } from '@mysync/flow';
import type { CapturedTables } from './captured-tables.ts';
import type { CheckpointKeeper } from './checkpoint-keeper.ts';
import type { ReaderOptions } from './options.ts';
import { pause } from './pause.ts';
import type { Standing } from './standing.ts';
import type { TableResync } from './table-resync.ts';

export interface CheckpointSaverOptions {
  readonly reader: Pick<ReaderOptions, 'source' | 'schemaHistory' | 'checkpointMs'>;
  readonly tracker: CheckpointTracker;
  readonly keeper: CheckpointKeeper;
  readonly tables: CapturedTables;
  readonly resync: TableResync;
  readonly standing: Standing;
  readonly clock: Clock;
}

/**
 * Saves what the tracker says is acked, now and then.
 *
 * What is wanted and what is complete is taken down in the same step as the place that is acked (docs/spec/table-resync.md, 6).
 */
export class CheckpointSaver {
  readonly #options: CheckpointSaverOptions;
  #savedRevision = -1;

  constructor(options: CheckpointSaverOptions) {
    this.#options = options;
  }

  /** Until stopped; a store that does not answer for now is tried again the next time. */
  async run(stop: AbortSignal): Promise<void> {
    const { tracker, clock, reader } = this.#options;
    while (await pause(clock.sleep(reader.checkpointMs, stop), stop)) {
      if (tracker.revision === this.#savedRevision) continue;
      try {
        await this.save();
      } catch (error) {
        if (!isRetriableError(error)) throw error;
      }
    }
  }

  async save(): Promise<void> {
    const { tracker, keeper, tables, resync, standing, reader } = this.#options;
    const { revision } = tracker;
    const { end, partitions } = tracker.current();
    const { floors = [] } = keeper.current ?? {};
    const wanted = resync.tables;
    const ahead = floors.filter((floor) => compareBinlogPositions(floor, end.position) >= 0);
    await keeper.save({
      position: end.position,
      transactionCounter: end.transactionCounter,
      partitions,
      schemaHistory: reader.schemaHistory?.head ?? null,
      snapshot: {
        state: standing.snapshotState,
        completeTables: tables.complete,
        knownTables: tables.known.behind(end.transactionCounter),
        ...(wanted.length === 0 ? {} : { wantedTables: wanted }),
      },
      ...(ahead.length === floors.length ? {} : { floors: ahead }),
    });
    this.#savedRevision = revision;
    await reader.source.settled(end.position);
  }
}
