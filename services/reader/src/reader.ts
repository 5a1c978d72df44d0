import type { SnapshotState } from '@mysync/checkpoint';
import {
  causeText,
  compareBinlogPositions,
  errorForLog,
  formatBinlogPosition,
  formatTableRef,
  isMysyncError,
  NO_POSITION,
  type SourcePosition,
} from '@mysync/core';
import { CheckpointTracker, isRetriableError, retryForever } from '@mysync/flow';
import type { SnapshotProgress, SourceItem } from '@mysync/source-mysql';
import { type HealthReport, LagTracker, type Logger } from '@mysync/telemetry';
import { IncompleteLog } from '@mysync/transport';
import { encodeControl, encodeTransaction } from '@mysync/wire';
import { CapturedTables } from './captured-tables.ts';
import { ChangeRouter, type Frontier, type RoutedTransaction, type WindowEntry } from './change-router.ts';
import type { ReaderOptions } from './options.ts';
import { PublishPump } from './publish-pump.ts';
import { type StartState, start } from './startup.ts';
import { TableResync } from './table-resync.ts';

/** What `mysync status` shows of a reader. */
export interface ReaderStatus {
  readonly source: string;
  readonly state: 'starting' | 'snapshot' | 'streaming' | 'stopped' | 'failed';
  readonly detail: string;
  readonly server: string;
  readonly epoch: number;
  readonly position: SourcePosition | null;
  readonly checkpoint: SourcePosition | null;
  readonly lagSeconds: number;
  /** Tables of which the log holds every row. */
  readonly completeTables: readonly string[];
  /** Captured tables of which the log lacks rows. */
  readonly missingTables: readonly string[];
  /** Captured tables that are to be read again. */
  readonly resyncingTables: readonly string[];
}

interface LastChange {
  readonly transaction: Pick<RoutedTransaction, 'id' | 'counter'>;
  readonly ordinal: number;
}

const COUNTED = ['insert', 'update', 'delete', 'read', 'truncate', 'ddl', 'sweep'] as const;

/** The parts of a started reader. */
interface Session {
  readonly started: StartState;
  readonly pump: PublishPump;
  readonly tracker: CheckpointTracker;
  readonly router: ChangeRouter;
  /** Per partition the change put last and the counter of its version, for heartbeats. */
  readonly lastChanges: LastChange[];
  lastTimeMicros: number;
  /** Between a transaction's begin and its commit, or amid the rows of a view. */
  inTransaction: boolean;
  savedRevision: number;
  readonly tables: CapturedTables;
  readonly resync: TableResync;
  readonly stop: AbortSignal;
  snapshotState: SnapshotState['state'];
}

/**
 * Reads one source and publishes its changes: source → route → ack window → transport, checkpoints behind the acks.
 *
 * 1. One transaction at a time, in log order; a full window stops the pulling, which pauses the source's socket.
 * 2. The checkpoint moves only at transaction ends, only behind the contiguous ack of all partitions, and survives a kill at
 *    any point: what it does not cover is read again, and what was already published is found in the log and skipped.
 * 3. The existing rows of a new source enter the windows before any change beyond their position.
 * 4. A heartbeat goes into every partition now and then: an idle partition's consumers and checkpoint still move.
 * 5. A table that the log does not show whole is read again, beside the stream (`TableResync`).
 */
export class Reader {
  readonly #options: ReaderOptions;
  readonly #logger: Logger;
  readonly #lag: LagTracker;
  #state: ReaderStatus['state'] = 'starting';
  #detail = '';
  #session: Session | null = null;
  #position: SourcePosition | null = null;
  /** Not yet in the metrics: a labelled counter costs more than handling a row, so it is asked once per batch. */
  readonly #rows: Record<string, number> = Object.fromEntries(COUNTED.map((operation) => [operation, 0]));

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#logger = options.logger.child({ component: 'reader', source: options.sourceName });
    this.#lag = new LagTracker({ clock: options.clock });
  }

  /** Resolves after an orderly stop; rejects when reading cannot go on. */
  async run(signal: AbortSignal): Promise<void> {
    const inner = new AbortController();
    const stop = AbortSignal.any([signal, inner.signal]);
    try {
      const started = await this.#start(stop);
      await this.#publish(started, signal, stop, inner);
      this.#state = 'stopped';
    } catch (error) {
      if (signal.aborted && error === signal.reason) {
        this.#state = 'stopped';
        return;
      }
      this.#state = 'failed';
      this.#detail = isMysyncError(error) ? error.toString() : causeText(error);
      throw error;
    } finally {
      inner.abort();
      this.#options.metrics.reader.up.set({ source: this.#options.sourceName }, 0);
    }
  }

  status(): ReaderStatus {
    const checkpoint = this.#session?.started.keeper.current ?? null;
    const server = this.#session?.started.server;
    return {
      source: this.#options.sourceName,
      state: this.#state,
      detail: this.#detail || (this.#session?.pump.trouble ?? ''),
      server: server === undefined ? '' : `${server.flavor} ${server.version} ${server.uuid}`,
      epoch: this.#session?.started.epoch ?? 0,
      position: this.#position,
      checkpoint: checkpoint?.position ?? null,
      lagSeconds: this.#lag.current(),
      completeTables: checkpoint?.snapshot.completeTables ?? [],
      missingTables: this.#session?.tables.missing ?? [],
      resyncingTables: (this.#session?.resync.tables ?? []).map(formatTableRef).sort(),
    };
  }

  refresh(): void {
    const { metrics, sourceName: source } = this.#options;
    this.#lag.outstanding(this.#session?.pump.oldestMicros() ?? null);
    metrics.reader.lag.set({ source }, this.#lag.peak());
    metrics.reader.up.set({ source }, this.#state === 'streaming' || this.#state === 'snapshot' ? 1 : 0);
    if (this.#session !== null) {
      metrics.reader.checkpointAge.set({ source }, this.#session.started.keeper.ageSeconds());
      metrics.reader.incompleteTables.set({ source }, this.#session.tables.missing.length);
      metrics.reader.resyncingTables.set({ source }, this.#session.resync.tables.length);
      this.#session.pump.refresh();
    }
  }

  health(): HealthReport {
    const ready = this.#state === 'streaming' || this.#state === 'snapshot';
    const { detail: why } = this.status();
    const detail = `${this.#state}${why === '' ? '' : `: ${why}`}`;
    return { name: `reader ${this.#options.sourceName}`, alive: this.#state !== 'failed', ready, detail };
  }

  /** Servers that are not there yet are waited for. */
  async #start(signal: AbortSignal): Promise<StartState> {
    return await retryForever(() => start(this.#options, signal), {
      signal,
      clock: this.#options.clock,
      onRetry: ({ error, attempt, delayMs }) => {
        this.#detail = causeText(error);
        if (attempt !== 1 && attempt % 10 !== 0) return;
        this.#logger.warn(
          { error: errorForLog(error), attempt, delayMs: Math.round(delayMs) },
          'cannot start yet, trying again',
        );
      },
    });
  }

  async #publish(started: StartState, signal: AbortSignal, stop: AbortSignal, inner: AbortController): Promise<void> {
    const session = this.#open(started, stop);
    this.#session = session;
    this.#detail = '';
    const periodic = Promise.all([this.#heartbeats(session, stop), this.#checkpoints(session, stop)]);
    const follow = this.#follow(session, stop);
    try {
      await Promise.race([follow, session.pump.failed, periodic]);
      if (signal.aborted) await this.#drain(session);
    } finally {
      inner.abort();
      // First: what follows the source may wait for room that no ack makes any more.
      await session.pump.close();
      session.resync.close();
      await Promise.allSettled([follow, periodic]);
    }
  }

  #open(started: StartState, stop: AbortSignal): Session {
    const { source, sourceName, windowMessages, windowBytes, batchMessages, clock, metrics } = this.#options;
    const { publisher, keeper, tails, fences, covered, epoch, server, topic, transactionCounter, position } = started;
    const tracker = new CheckpointTracker({
      epoch,
      start: { position: position ?? NO_POSITION, transactionCounter },
      covered,
      frontier: tails.map((tail) => tail.frontier),
    });
    const pump = new PublishPump({
      source: sourceName,
      publisher,
      epoch,
      starts: tails.map((tail, partition) => ({ sequence: tail.frontier.sequence, offset: fences[partition] ?? -1 })),
      windowMessages: Math.max(1, Math.floor(windowMessages / topic.partitions)),
      windowBytes: Math.max(1, Math.floor(windowBytes / topic.partitions)),
      batchMessages,
      saveIdentity: (identity) => keeper.save({ producer: identity }),
      onAcked: (partition, run) => tracker.acked(partition, run),
      clock,
      logger: this.#logger,
      metrics,
    });
    const router = new ChangeRouter({
      source: sourceName,
      serverUuid: server.uuid,
      partitions: topic.partitions,
      transactionCounter,
      floors: keeper.current?.floors ?? [],
      frontiers: tails.map((tail, partition): Frontier | null =>
        position === null || tail.frontier.offset === covered[partition]?.offset || tail.frontier.change.file === ''
          ? null
          : { change: tail.frontier.change, whole: tail.frontierCounter <= transactionCounter },
      ),
    });
    const lastChanges = tails.map(({ frontier: { change, offset }, frontierCounter }, partition) => {
      const counter = offset === covered[partition]?.offset ? transactionCounter : frontierCounter;
      return { transaction: { id: { ...change, ordinal: 0 }, counter }, ordinal: change.ordinal };
    });
    const resync = new TableResync({ source, onProgress: this.#onProgress, clock, logger: this.#logger });
    const anomalies = tails.filter((tail) => tail.anomaly).length;
    const snapshot: SnapshotState = keeper.current?.snapshot ?? { state: 'running', completeTables: [] };
    this.#logger.info({ epoch, server: server.version, position, anomalies }, 'reader started');
    const tables = new CapturedTables({
      ...this.#options,
      complete: snapshot.completeTables,
      resync,
      logger: this.#logger,
    });
    if (snapshot.state !== 'running') tables.resume(snapshot.wantedTables ?? []);
    return {
      started,
      pump,
      tracker,
      router,
      lastChanges,
      lastTimeMicros: clock.now() * 1000,
      inTransaction: false,
      savedRevision: -1,
      tables,
      resync,
      stop,
      snapshotState: snapshot.state,
    };
  }

  async #follow(session: Session, stop: AbortSignal): Promise<void> {
    let from = session.started.position;
    if (from === null) {
      from = await this.#snapshot(session, stop);
      if (from === null) return;
    }
    this.#state = 'streaming';
    this.#position = from;
    const captured = await this.#options.source.tableSchemas();
    session.tables.findLacking(captured, session.snapshotState === 'done');
    if (session.tables.isWhole) await this.#filled();
    if (session.resync.isDue) await this.#resyncAt(session, from);
    for await (const items of this.#options.source.stream({ from, signal: stop })) {
      await this.#handleAll(session, items);
    }
  }

  /** The position that the rows are of, or null when stopped before the end. */
  async #snapshot(session: Session, stop: AbortSignal): Promise<SourcePosition | null> {
    const { source, metrics, sourceName } = this.#options;
    this.#state = 'snapshot';
    const snapshot = await source.snapshot({ signal: stop, onProgress: this.#onProgress });
    metrics.reader.snapshotRunning.set({ source: sourceName }, 1);
    try {
      const { position } = snapshot;
      session.router.beginView(position, this.#options.clock.now() * 1000);
      this.#position = position;
      session.inTransaction = true;
      for await (const items of snapshot.items) {
        await this.#handleAll(session, items);
        // the checkpoint says 'running' still, but its marks follow: the tail that a restart reads stays short
        this.#settle(session, position);
      }
      session.inTransaction = false;
      if (stop.aborted) return null;
      await session.pump.drain();
      session.router.endView();
      this.#settle(session, position);
      session.tables.allRead(snapshot.tables);
      session.snapshotState = 'done';
      await this.#saveCheckpoint(session);
      await this.#filled();
      return position;
    } finally {
      metrics.reader.snapshotRunning.set({ source: sourceName }, 0);
      await snapshot.close();
    }
  }

  readonly #onProgress = (progress: SnapshotProgress): void => {
    const { metrics, sourceName: source, onSnapshotProgress } = this.#options;
    metrics.reader.snapshotRows.set({ source, table: formatTableRef(progress.table) }, progress.rows);
    onSnapshotProgress(progress);
  };

  async #handleAll(session: Session, items: readonly SourceItem[]): Promise<void> {
    for (const item of items) {
      const full = this.#handle(session, item);
      if (full !== null) await full;
    }
    this.#countRows();
    session.pump.flush();
  }

  /** Takes an item over at once, or gives a promise that resolves once there was room for it. */
  #handle(session: Session, item: SourceItem): Promise<void> | null {
    const { metrics, sourceName: source } = this.#options;
    const { router } = session;
    switch (item.kind) {
      case 'row': {
        this.#count(item.operation);
        const partition = router.route(item);
        if (partition < 0) {
          metrics.reader.skipped.inc({ source });
          return null;
        }
        return this.#put(session, partition, router.rowEntry(item));
      }
      case 'begin':
        if (session.resync.place !== null && compareBinlogPositions(item.id, session.resync.place) >= 0) {
          return this.#beginBehindView(session, item);
        }
        router.begin(item);
        session.inTransaction = true;
        session.lastTimeMicros = item.commitTimeMicros;
        return null;
      case 'commit':
        router.commit(item);
        session.inTransaction = false;
        metrics.reader.transactions.inc({ source });
        return this.#passTo(session, item.position);
      case 'keepalive':
        if (item.timeMicros > 0) session.lastTimeMicros = item.timeMicros;
        return this.#passTo(session, item.position);
      case 'unseen':
        session.tables.noteUnseen(item, router.openTransaction);
        return null;
      case 'truncate':
      case 'ddl':
      case 'sweep':
        this.#count(item.kind);
        session.tables.note(item);
        return this.#putAll(session, router.tableEntries(item));
    }
  }

  // --- tables that are read again -------------------------------------------------------------------------------

  /** A place between transactions was reached. */
  #passTo(session: Session, position: SourcePosition): Promise<void> | null {
    this.#position = position;
    this.#settle(session, position);
    return session.resync.isDue ? this.#resyncAt(session, position) : null;
  }

  #settle({ tracker, router }: Session, position: SourcePosition): void {
    router.passTo(position);
    tracker.commit({ position, transactionCounter: router.transactionCounter });
  }

  /** Reads what is due there. */
  async #resyncAt(session: Session, position: SourcePosition): Promise<void> {
    const { resync, router, stop } = session;
    while (resync.isDue && !stop.aborted) {
      await resync.open(position, router.ahead, stop);
      if (resync.place === null || compareBinlogPositions(position, resync.place) < 0) break;
      await this.#readAgain(session);
      this.#settle(session, position);
    }
  }

  async #beginBehindView(session: Session, item: SourceItem & { kind: 'begin' }): Promise<void> {
    await this.#readAgain(session);
    this.#settle(session, this.#position ?? NO_POSITION);
    session.router.begin(item);
    session.inTransaction = true;
    session.lastTimeMicros = item.commitTimeMicros;
  }

  /** The stream stands at the view's place: its rows and a sweep enter the windows, before anything that lies behind it. */
  async #readAgain(session: Session): Promise<void> {
    const { resync, router, pump, tables, stop } = session;
    const { clock, metrics, sourceName: source } = this.#options;
    const view = resync.take();
    if (view === null) return;
    const { table, snapshot } = view;
    metrics.reader.snapshotRunning.set({ source }, 1);
    router.beginView(snapshot.position, clock.now() * 1000);
    session.inTransaction = true;
    try {
      for await (const items of snapshot.items) await this.#handleAll(session, items);
      if (stop.aborted) return;
      await pump.drain();
    } catch (error) {
      if (!stop.aborted) resync.failed(view, error);
      return;
    } finally {
      router.endView();
      session.inTransaction = false;
      metrics.reader.snapshotRunning.set({ source }, 0);
      await snapshot.close();
    }
    const milliseconds = Math.round(resync.done(view));
    tables.readAgain(table, snapshot.tables.length > 0);
    if (tables.isWhole) await this.#filled();
    metrics.reader.resyncs.inc({ source });
    this.#logger.info(
      { table: formatTableRef(table), place: formatBinlogPosition(snapshot.position), milliseconds },
      'table read again',
    );
  }

  /** The log holds every row, also when it was lost before. */
  async #filled(): Promise<void> {
    const { transport, topic } = this.#options;
    await new IncompleteLog(transport, topic).filled();
  }

  #count(operation: string): void {
    this.#rows[operation] = (this.#rows[operation] ?? 0) + 1;
  }

  #countRows(): void {
    const { metrics, sourceName: source } = this.#options;
    for (const operation of COUNTED) {
      const count = this.#rows[operation] ?? 0;
      if (count === 0) continue;
      this.#rows[operation] = 0;
      metrics.reader.rows.inc({ source, operation }, count);
    }
  }

  #put(session: Session, partition: number, entry: WindowEntry): Promise<void> | null {
    const sequence = session.pump.tryPut(partition, entry);
    if (sequence === false) return this.#putWhenRoom(session, partition, entry);
    session.tracker.put(partition, sequence, entry.transaction.id, entry.ordinal);
    session.lastChanges[partition] = entry;
    return null;
  }

  async #putWhenRoom(session: Session, partition: number, entry: WindowEntry): Promise<void> {
    do await session.pump.room();
    while (!session.pump.hasRoom(partition));
    await this.#put(session, partition, entry);
  }

  async #putAll(session: Session, entries: readonly (WindowEntry | null)[]): Promise<void> {
    for (const [partition, entry] of entries.entries()) {
      if (entry !== null) await this.#put(session, partition, entry);
    }
  }

  async #heartbeats(session: Session, stop: AbortSignal): Promise<void> {
    const { clock, heartbeatMs, sourceName: source } = this.#options;
    const { server } = session.started;
    while (await pause(clock.sleep(heartbeatMs, stop), stop)) {
      for (const [partition, { transaction: last, ordinal }] of session.lastChanges.entries()) {
        if (!session.pump.hasRoom(partition)) continue;
        const { id, counter } = last;
        const commitTimeMicros = session.lastTimeMicros;
        const block = encodeTransaction({ source, serverUuid: server.uuid, id, commitTimeMicros });
        const message = encodeControl({ operation: 'heartbeat', transaction: block, ordinal });
        // Its version and its change are those of one and the same message, or a successor would misjudge how far the log is.
        const transaction = { id, counter, commitTimeMicros: clock.now() * 1000 };
        const entry = { message, transaction, ordinal, versionOrdinal: 0 };
        const waiting = this.#put(session, partition, entry);
        if (waiting !== null) await waiting;
      }
      // closes what the heartbeats opened in the tracker, so that an idle source's checkpoint moves
      if (!session.inTransaction && this.#position !== null) {
        const { transactionCounter } = session.router;
        session.tracker.keepalive({ position: this.#position, transactionCounter });
      }
      session.pump.flush();
    }
  }

  async #checkpoints(session: Session, stop: AbortSignal): Promise<void> {
    const { clock, checkpointMs } = this.#options;
    while (await pause(clock.sleep(checkpointMs, stop), stop)) {
      if (session.tracker.revision === session.savedRevision) continue;
      try {
        await this.#saveCheckpoint(session);
      } catch (error) {
        if (!isRetriableError(error)) throw error;
      }
    }
  }

  async #saveCheckpoint(session: Session): Promise<void> {
    const { tracker, started } = session;
    const { revision } = tracker;
    const { end, partitions } = tracker.current();
    const { floors = [] } = started.keeper.current ?? {};
    const wanted = session.resync.tables;
    const ahead = floors.filter((floor) => compareBinlogPositions(floor, end.position) >= 0);
    await started.keeper.save({
      position: end.position,
      transactionCounter: end.transactionCounter,
      partitions,
      schemaHistory: this.#options.schemaHistory?.head ?? null,
      snapshot: {
        state: session.snapshotState,
        completeTables: session.tables.complete,
        ...(wanted.length === 0 ? {} : { wantedTables: wanted }),
      },
      ...(ahead.length === floors.length ? {} : { floors: ahead }),
    });
    session.savedRevision = revision;
    await this.#options.source.settled(end.position);
  }

  /** Waits for what is in flight, then saves the checkpoint behind it. */
  async #drain(session: Session): Promise<void> {
    await this.#atMost(this.#options.drainMs, session.pump.drain());
    await this.#atMost(LAST_SAVE_MS, this.#saveCheckpoint(session));
  }

  async #atMost(ms: number, work: Promise<void>): Promise<void> {
    const expired = new AbortController();
    const deadline = this.#options.clock.sleep(ms, expired.signal).catch(() => undefined);
    // what comes too late comes to nobody
    work.catch(() => undefined);
    try {
      await Promise.race([work, deadline]);
    } finally {
      expired.abort();
    }
  }
}

/** How long a stop waits for a store that does not answer. The checkpoint before is as right, it costs reading a little again. */
const LAST_SAVE_MS = 3_000;

/** False when the sleep was cut short by the signal. */
async function pause(sleep: Promise<void>, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep;
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
