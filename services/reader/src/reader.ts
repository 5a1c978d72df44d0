import type { SnapshotState } from '@mysync/checkpoint';
import { causeText, errorForLog, formatTableRef, isMysyncError, NO_POSITION, type SourcePosition } from '@mysync/core';
import { CheckpointTracker, isRetriableError, retryForever } from '@mysync/flow';
import type { SourceItem, SourceTableChange } from '@mysync/source-mysql';
import { type HealthReport, LagTracker, type Logger } from '@mysync/telemetry';
import { encodeControl, encodeTransaction } from '@mysync/wire';
import { ChangeRouter, type Frontier, type RoutedTransaction, type WindowEntry } from './change-router.ts';
import { CompleteTables } from './complete-tables.ts';
import type { ReaderOptions } from './options.ts';
import { PublishPump } from './publish-pump.ts';
import { type StartState, start } from './startup.ts';

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
  /** Captured tables whose earlier rows the log does not hold. */
  readonly missingTables: readonly string[];
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
  /** Between a transaction's begin and its commit. */
  inTransaction: boolean;
  savedRevision: number;
  completeTables: CompleteTables;
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
      missingTables: this.#session?.completeTables.missing ?? [],
    };
  }

  refresh(): void {
    const { metrics, sourceName: source } = this.#options;
    this.#lag.outstanding(this.#session?.pump.oldestMicros() ?? null);
    metrics.reader.lag.set({ source }, this.#lag.peak());
    metrics.reader.up.set({ source }, this.#state === 'streaming' || this.#state === 'snapshot' ? 1 : 0);
    if (this.#session !== null) {
      metrics.reader.checkpointAge.set({ source }, this.#session.started.keeper.ageSeconds());
      metrics.reader.incompleteTables.set({ source }, this.#session.completeTables.missing.length);
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
    const session = this.#open(started);
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
      await Promise.allSettled([follow, periodic]);
    }
  }

  #open(started: StartState): Session {
    const { sourceName, windowMessages, windowBytes, batchMessages, clock, metrics } = this.#options;
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
    const anomalies = tails.filter((tail) => tail.anomaly).length;
    const snapshot = keeper.current?.snapshot ?? { state: 'running', completeTables: [] };
    this.#logger.info({ epoch, server: server.version, position, anomalies }, 'reader started');
    return {
      started,
      pump,
      tracker,
      router,
      lastChanges,
      lastTimeMicros: clock.now() * 1000,
      inTransaction: false,
      savedRevision: -1,
      completeTables: new CompleteTables(snapshot.completeTables),
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
    await this.#tellMissing(session);
    for await (const items of this.#options.source.stream({ from, signal: stop })) {
      await this.#handleAll(session, items);
    }
  }

  /** The position that the rows are of, or null when stopped before the end. */
  async #snapshot(session: Session, stop: AbortSignal): Promise<SourcePosition | null> {
    const { source, onSnapshotProgress, metrics, sourceName } = this.#options;
    this.#state = 'snapshot';
    const snapshot = await source.snapshot({
      signal: stop,
      onProgress: (progress) => {
        const table = formatTableRef(progress.table);
        metrics.reader.snapshotRows.set({ source: sourceName, table }, progress.rows);
        onSnapshotProgress(progress);
      },
    });
    metrics.reader.snapshotRunning.set({ source: sourceName }, 1);
    try {
      const { position } = snapshot;
      session.router.beginSnapshot(this.#options.clock.now() * 1000);
      this.#position = position;
      session.inTransaction = true;
      for await (const items of snapshot.items) {
        await this.#handleAll(session, items);
        // the checkpoint says 'running' still, but its marks follow: the tail that a restart reads stays short
        session.tracker.commit({ position, transactionCounter: session.router.transactionCounter });
      }
      session.inTransaction = false;
      if (stop.aborted) return null;
      await session.pump.drain();
      const transactionCounter = session.router.commit({ ordinals: 0 });
      session.tracker.commit({ position, transactionCounter });
      session.completeTables = new CompleteTables(snapshot.tables.map(formatTableRef));
      session.snapshotState = 'done';
      await this.#saveCheckpoint(session);
      return position;
    } finally {
      metrics.reader.snapshotRunning.set({ source: sourceName }, 0);
      await snapshot.close();
    }
  }

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
    const { router, tracker } = session;
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
        router.begin(item);
        session.inTransaction = true;
        session.lastTimeMicros = item.commitTimeMicros;
        return null;
      case 'commit':
        tracker.commit({ position: item.position, transactionCounter: router.commit(item) });
        this.#position = item.position;
        session.inTransaction = false;
        metrics.reader.transactions.inc({ source });
        return null;
      case 'keepalive':
        tracker.keepalive({ position: item.position, transactionCounter: router.transactionCounter });
        this.#position = item.position;
        if (item.timeMicros > 0) session.lastTimeMicros = item.timeMicros;
        return null;
      case 'truncate':
      case 'ddl':
      case 'sweep':
        this.#count(item.kind);
        this.#noteTableChange(session, item);
        return this.#putAll(session, router.tableEntries(item));
    }
  }

  #noteTableChange(session: Session, item: SourceTableChange): void {
    const word = session.completeTables.note(item);
    if (word !== null) this.#logger.warn({ table: formatTableRef(item.table), statement: item.statement }, word);
  }

  /** Says which captured tables lack rows in the log: those added to the configuration later. */
  async #tellMissing(session: Session): Promise<void> {
    const captured = (await this.#options.source.tableSchemas()).map((table) => formatTableRef(table));
    session.completeTables.compare(captured);
    const { missing } = session.completeTables;
    if (missing.length === 0) return;
    const message =
      'these tables are captured, but the log does not hold their earlier rows: only what changes from now on comes';
    this.#logger.warn({ tables: missing }, message);
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
    await started.keeper.save({
      position: end.position,
      transactionCounter: end.transactionCounter,
      partitions,
      snapshot: { state: session.snapshotState, completeTables: session.completeTables.names },
    });
    session.savedRevision = revision;
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
