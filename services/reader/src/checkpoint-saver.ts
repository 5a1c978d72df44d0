import { type Clock, compareBinlogPositions, type SourcePosition } from '@mysync/core';
import { type CheckpointTracker, isRetriableError } from '@mysync/flow';
import type { CapturedTables } from './captured-tables.ts';
import type { CheckpointKeeper } from './checkpoint-keeper.ts';
import type { ReaderOptions } from './options.ts';
import { pause } from './pause.ts';
import type { Standing } from './standing.ts';
import type { TableResync } from './table-resync.ts';

export interface CheckpointSaverOptions {
  readonly reader: Pick<ReaderOptions, 'source' | 'schemaHistory' | 'checkpointMs' | 'idleCheckpointMs'>;
  readonly tracker: CheckpointTracker;
  readonly keeper: CheckpointKeeper;
  readonly tables: CapturedTables;
  readonly resync: TableResync;
  readonly standing: Standing;
  readonly clock: Clock;
}

/** So much of the log that holds nothing captured is worth a save, however soon after the last one: it would be read again. */
const IDLE_LOG_BYTES = 1 << 20;

interface Saved {
  readonly revision: number;
  readonly changes: number;
  readonly position: SourcePosition;
  readonly atMs: number;
}

/**
 * Saves what the tracker says is acked, now and then.
 *
 * 1. What is wanted and what is complete is taken down in the same step as the place that is acked (docs/spec/table-resync.md, 6).
 * 2. Where nothing captured changed, saves are rare: a save may itself be a transaction of the log that is read (docs/adr/0173).
 */
export class CheckpointSaver {
  readonly #options: CheckpointSaverOptions;
  #saved: Saved | null = null;

  constructor(options: CheckpointSaverOptions) {
    this.#options = options;
  }

  /** Until stopped; a store that does not answer for now is tried again the next time. */
  async run(stop: AbortSignal): Promise<void> {
    const { clock, reader } = this.#options;
    while (await pause(clock.sleep(reader.checkpointMs, stop), stop)) {
      if (this.#isDue()) await this.save();
    }
  }

  /** Where the store does not answer for now, it is left to the next time: the checkpoint before is as right, it costs reading a little again. */
  async save(): Promise<void> {
    try {
      await this.#save();
    } catch (error) {
      if (!isRetriableError(error)) throw error;
    }
  }

  async #save(): Promise<void> {
    const { tracker, keeper, tables, resync, standing, reader, clock } = this.#options;
    const { revision, changes } = tracker;
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
    this.#saved = { revision, changes, position: end.position, atMs: clock.monotonic() };
    await reader.source.settled(end.position);
  }

  #isDue(): boolean {
    const { tracker, clock, reader } = this.#options;
    const saved = this.#saved;
    if (saved === null || tracker.changes !== saved.changes) return true;
    if (tracker.revision === saved.revision) return false;
    if (clock.monotonic() - saved.atMs >= reader.idleCheckpointMs) return true;
    const { position } = tracker.end;
    return position.file !== saved.position.file || position.offset - saved.position.offset >= IDLE_LOG_BYTES;
  }
}
