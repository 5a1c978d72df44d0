/** The parts of a started reader, put together. */
import type { SnapshotState } from '@mysync/checkpoint';
import { formatTableRef, type Logger, NO_POSITION } from '@mysync/core';
import { CheckpointTracker } from '@mysync/flow';
import type { SnapshotProgress } from '@mysync/source-mysql';
import { CapturedTables } from './captured-tables.ts';
import { ChangeIntake } from './change-intake.ts';
import { ChangeRouter, type Frontier } from './change-router.ts';
import { CheckpointSaver } from './checkpoint-saver.ts';
import { CutOff } from './cut-off.ts';
import { Heartbeats } from './heartbeats.ts';
import { LogFollower } from './log-follower.ts';
import type { ReaderOptions } from './options.ts';
import { PublishPump } from './publish-pump.ts';
import { SourceContact } from './source-contact.ts';
import { Standing } from './standing.ts';
import type { StartState } from './startup.ts';
import { TableResync } from './table-resync.ts';
import { ViewReader } from './view-reader.ts';
import { type LastChange, WindowFeed } from './window-feed.ts';

export interface Session {
  readonly started: StartState;
  readonly pump: PublishPump;
  readonly tables: CapturedTables;
  readonly resync: TableResync;
  readonly standing: Standing;
  readonly saver: CheckpointSaver;
  readonly heartbeats: Heartbeats;
  readonly follower: LogFollower;
  readonly contact: SourceContact;
  readonly cutOff: CutOff;
}

/** `stop` ends what it reads. */
export function openSession(reader: ReaderOptions, started: StartState, logger: Logger, stop: AbortSignal): Session {
  const { source, sourceName, clock, metrics } = reader;
  const { keeper, tails, covered, epoch, server, topic, transactionCounter, position } = started;
  const tracker = new CheckpointTracker({
    epoch,
    start: { position: position ?? NO_POSITION, transactionCounter },
    covered,
    frontier: tails.map((tail) => tail.frontier),
  });
  const pump = openPump(reader, started, tracker, logger);
  const router = new ChangeRouter({
    source: sourceName,
    serverUuid: server.uuid,
    partitions: topic.partitions,
    transactionCounter,
    floors: keeper.current?.floors ?? [],
    frontiers: frontiersOf(started),
  });
  const snapshot: SnapshotState = keeper.current?.snapshot ?? { state: 'running', completeTables: [] };
  const anomalies = tails.filter((tail) => tail.anomaly).length;
  logger.info({ epoch, server: server.version, position, anomalies }, 'reader started');
  const onProgress = (progress: SnapshotProgress): void => {
    metrics.reader.snapshotRows.set({ source: sourceName, table: formatTableRef(progress.table) }, progress.rows);
    reader.onSnapshotProgress(progress);
  };
  const resync = new TableResync({ source, serverUuid: server.uuid, onProgress, clock, logger });
  const tables = new CapturedTables({
    ...reader,
    complete: snapshot.completeTables,
    known: snapshot.knownTables ?? [],
    resync,
    logger,
  });
  if (snapshot.state !== 'running') tables.resume(snapshot.wantedTables ?? []);
  const standing = new Standing({ tracker, router, snapshotState: snapshot.state, timeMicros: clock.now() * 1000 });
  const feed = new WindowFeed({ pump, tracker, lastChanges: lastChangesOf(started) });
  const intake = new ChangeIntake({ source: sourceName, router, feed, tables, metrics });
  const saver = new CheckpointSaver({ reader, tracker, keeper, tables, resync, standing, clock });
  const contact = new SourceContact({ source: sourceName, clock, metrics });
  const views = new ViewReader({
    ...{ reader, router, intake, pump, tables, resync, standing, saver, contact },
    ...{ onProgress, logger, stop },
  });
  return {
    ...{ started, pump, tables, resync, standing, saver, contact },
    cutOff: new CutOff({ contact, pump, keeper, heartbeatMs: reader.heartbeatMs, clock }),
    heartbeats: new Heartbeats({ reader, serverUuid: server.uuid, feed, standing }),
    follower: new LogFollower({ reader, router, intake, views, tables, resync, standing, contact }),
  };
}

function openPump(
  reader: ReaderOptions,
  { publisher, keeper, tails, fences, epoch, topic }: StartState,
  tracker: CheckpointTracker,
  logger: Logger,
): PublishPump {
  const { sourceName, windowMessages, windowBytes, batchMessages, onLargeRow, clock, metrics } = reader;
  return new PublishPump({
    source: sourceName,
    publisher,
    epoch,
    starts: tails.map((tail, partition) => ({ sequence: tail.frontier.sequence, offset: fences[partition] ?? -1 })),
    windowMessages: Math.max(1, Math.floor(windowMessages / topic.partitions)),
    windowBytes: Math.max(1, Math.floor(windowBytes / topic.partitions)),
    batchMessages,
    saveIdentity: (identity) => keeper.save({ producer: identity }),
    onAcked: (partition, run) => tracker.acked(partition, run),
    onLargeRow,
    clock,
    logger,
    metrics,
  });
}

/** Null where nothing beyond the checkpoint was found, or a snapshot is taken anyway. */
function frontiersOf({ tails, covered, position, transactionCounter }: StartState): (Frontier | null)[] {
  return tails.map(({ frontier, frontierCounter }, partition) =>
    position === null || frontier.offset === covered[partition]?.offset || frontier.change.file === ''
      ? null
      : { change: frontier.change, whole: frontierCounter <= transactionCounter },
  );
}

function lastChangesOf({ tails, covered, transactionCounter }: StartState): LastChange[] {
  return tails.map(({ frontier: { change, offset }, frontierCounter }, partition) => {
    const counter = offset === covered[partition]?.offset ? transactionCounter : frontierCounter;
    return { transaction: { id: { ...change, ordinal: 0 }, counter }, ordinal: change.ordinal };
  });
}
