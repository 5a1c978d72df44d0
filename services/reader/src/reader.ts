import { causeText, errorForLog, formatTableRef, isMysyncError, type Logger, type SourcePosition } from '@mysync/core';
import { retryForever } from '@mysync/flow';
import { type HealthReport, LagTracker } from '@mysync/telemetry';
import type { ReaderOptions } from './options.ts';
import { openSession, type Session } from './session.ts';
import { type StartState, start } from './startup.ts';

/** What `mysync status` shows of a reader. */
export interface ReaderStatus {
  readonly source: string;
  /** `disconnected`: its source does not answer; it goes on by itself. */
  readonly state: 'starting' | 'snapshot' | 'streaming' | 'disconnected' | 'stopped' | 'failed';
  /** Why it does not do its work, or not all of it; empty when all is well. */
  readonly detail: string;
  readonly server: string;
  readonly epoch: number;
  readonly position: SourcePosition | null;
  readonly checkpoint: SourcePosition | null;
  /** Age of the oldest change that is not published; while the source does not answer, at least since when. */
  readonly lagSeconds: number;
  /** Tables of which the log holds every row. */
  readonly completeTables: readonly string[];
  /** Captured tables of which the log lacks rows. */
  readonly missingTables: readonly string[];
  /** Captured tables that are to be read again. */
  readonly resyncingTables: readonly string[];
}

/**
 * Reads one source and publishes its changes: source → route → ack window → transport, checkpoints behind the acks.
 *
 * 1. One transaction at a time, in log order; a full window stops the pulling, which pauses the source's socket (`LogFollower`).
 * 2. The checkpoint moves only at transaction ends, only behind the contiguous ack of all partitions, and survives a kill at
 *    any point: what it does not cover is read again, and what was already published is found in the log and skipped (`start`, `CheckpointSaver`).
 * 3. The existing rows of a new source enter the windows before any change beyond their position (`ViewReader`).
 * 4. A heartbeat goes into every partition now and then: an idle partition's consumers and checkpoint still move (`Heartbeats`).
 * 5. A table that the log does not show whole is read again, beside the stream (`TableResync`, `ViewReader`).
 * 6. Whom it is cut off from is told, and for how long, while it tries again by itself (`CutOff`).
 */
export class Reader {
  readonly #options: ReaderOptions;
  readonly #logger: Logger;
  readonly #lag: LagTracker;
  #ended: 'stopped' | 'failed' | null = null;
  #detail = '';
  #session: Session | null = null;

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
      this.#ended = 'stopped';
    } catch (error) {
      if (signal.aborted && error === signal.reason) {
        this.#ended = 'stopped';
        return;
      }
      this.#ended = 'failed';
      this.#detail = isMysyncError(error) ? error.toString() : causeText(error);
      throw error;
    } finally {
      inner.abort();
      this.#options.metrics.reader.up.set({ source: this.#options.sourceName }, 0);
    }
  }

  status(): ReaderStatus {
    this.#noteLag();
    const checkpoint = this.#session?.started.keeper.current ?? null;
    const server = this.#session?.started.server;
    return {
      source: this.#options.sourceName,
      state: this.#state,
      detail: this.#detail || (this.#session?.cutOff.detail ?? ''),
      server: server === undefined ? '' : `${server.flavor} ${server.version} ${server.uuid}`,
      epoch: this.#session?.started.epoch ?? 0,
      position: this.#session?.standing.position ?? null,
      checkpoint: checkpoint?.position ?? null,
      lagSeconds: this.#lag.current(),
      completeTables: checkpoint?.snapshot.completeTables ?? [],
      missingTables: this.#session?.tables.missing ?? [],
      resyncingTables: (this.#session?.resync.tables ?? []).map(formatTableRef).sort(),
    };
  }

  refresh(): void {
    const { metrics, sourceName: source } = this.#options;
    this.#noteLag();
    metrics.reader.lag.set({ source }, this.#lag.peak());
    metrics.reader.up.set({ source }, this.#isReading ? 1 : 0);
    if (this.#session !== null) {
      metrics.reader.checkpointAge.set({ source }, this.#session.started.keeper.ageSeconds());
      metrics.reader.incompleteTables.set({ source }, this.#session.tables.missing.length);
      metrics.reader.resyncingTables.set({ source }, this.#session.resync.tables.length);
      this.#session.pump.refresh();
    }
  }

  health(): HealthReport {
    const { detail: why } = this.status();
    const detail = `${this.#state}${why === '' ? '' : `: ${why}`}`;
    return {
      name: `reader ${this.#options.sourceName}`,
      alive: this.#ended !== 'failed',
      ready: this.#isReading,
      detail,
    };
  }

  /** Whoever asks gets the lag of now, also between two scrapes. */
  #noteLag(): void {
    const unstored = this.#session?.pump.oldestMicros() ?? null;
    const unknown = this.#session?.contact.unknownSinceMicros() ?? null;
    this.#lag.outstanding(unstored === null || unknown === null ? (unstored ?? unknown) : Math.min(unstored, unknown));
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

  get #state(): ReaderStatus['state'] {
    if (this.#ended !== null || this.#session === null) return this.#ended ?? 'starting';
    const { standing, cutOff } = this.#session;
    return standing.phase === 'streaming' && cutOff.source !== '' ? 'disconnected' : standing.phase;
  }

  get #isReading(): boolean {
    const state = this.#state;
    return (state === 'streaming' || state === 'snapshot') && this.#session?.cutOff.isReady === true;
  }

  async #publish(started: StartState, signal: AbortSignal, stop: AbortSignal, inner: AbortController): Promise<void> {
    const session = openSession(this.#options, started, this.#logger, stop);
    const { pump, resync, follower, heartbeats, saver } = session;
    this.#session = session;
    this.#detail = '';
    const periodic = Promise.all([heartbeats.run(stop), saver.run(stop)]);
    // a question that a stop cut short is the end of following
    const follow = follower.run(started.position, stop).catch((error: unknown) => {
      if (!stop.aborted || error !== stop.reason) throw error;
    });
    try {
      await Promise.race([follow, pump.failed, periodic]);
      if (signal.aborted) await this.#drain(session);
    } finally {
      inner.abort();
      // First: what follows the source may wait for room that no ack makes any more.
      await pump.close();
      resync.close();
      await Promise.allSettled([follow, periodic]);
    }
  }

  /** Waits for what is in flight, then saves the checkpoint behind it. */
  async #drain({ pump, saver }: Session): Promise<void> {
    await this.#atMost(this.#options.drainMs, pump.drain());
    await this.#atMost(LAST_SAVE_MS, saver.save());
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

/** How long a stop waits for a store that does not answer. */
const LAST_SAVE_MS = 3_000;
