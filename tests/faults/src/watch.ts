/**
 * Looks at the sinks all along: how old their newest probe rows are, whether a key or a marker went backwards, whether an offset
 * was committed that the sink does not have, whether the checkpoint stands before what the log holds; and at the memory of the processes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '@mysync/harness';
import type { Looks } from './blind-spots.ts';
import { CheckpointJudge } from './checkpoint-judge.ts';
import { Dice } from './dice.ts';
import { untilMysync } from './finding.ts';
import { textOf } from './findings.ts';
import { Judge } from './judge.ts';
import { COUNTERS, PROBES } from './load.ts';
import type { LogEye } from './log-eye.ts';
import { LookCount } from './look-count.ts';
import { MarkerJudge } from './marker-judge.ts';
import type { SinkEye, Target } from './sink-eye.ts';
import { type PartRead, readWholeLog } from './whole-log.ts';

const LOOK_MS = 40;
const BOOKS_MS = 250;
const SAMPLE = 150;
/** A server that has just come back needs a moment. */
const SEEN_AGAIN_MS = 60_000;

export interface WatchOptions {
  readonly seed: number;
  readonly eyes: readonly SinkEye[];
  /** Opens the log, null while that cannot be. */
  readonly openLog: () => Promise<LogEye | null>;
  readonly groupOf: (sink: string) => string;
  readonly topic: string;
  readonly partitions: number;
  /** As it is stored; null: there is none yet. */
  readonly readCheckpoint: (log: LogEye) => Promise<string | null>;
  /** Numbers that were rolled back. */
  readonly never: ReadonlySet<number>;
  /** Keys worth a look, at random. */
  readonly sample: (dice: Dice) => Target;
  /** Called again and again: how much memory the processes take. */
  readonly noteMemory: () => void;
}

interface SinkWatch {
  readonly eye: SinkEye;
  readonly judge: Judge;
  readonly markers: MarkerJudge;
  /** Commit time of the oldest of the newest probes, in ms since 1970. */
  oldestProbe: number;
  /** When a look succeeded last, in ms since 1970. */
  lookedMs: number;
  readonly looks: LookCount;
  paused: boolean;
  /** Rises when the sink was put back: what was asked before says nothing about what is there now. */
  era: number;
  looking: Promise<void>;
}

export class Watch {
  readonly #options: WatchOptions;
  readonly #sinks: readonly SinkWatch[];
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];
  #log: LogEye | null = null;
  #booking: Promise<void> = Promise.resolve();
  #booksClosed = false;
  readonly #checkpoints = new CheckpointJudge();
  readonly #books = new LookCount();

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#sinks = options.eyes.map((eye) => ({
      eye,
      judge: new Judge(options.never),
      markers: new MarkerJudge(),
      oldestProbe: 0,
      lookedMs: Date.now(),
      looks: new LookCount(),
      paused: false,
      era: 0,
      looking: Promise.resolve(),
    }));
  }

  start(): void {
    for (const sink of this.#sinks) this.#loops.push(this.#follow(sink));
    this.#loops.push(this.#keepBooks(), this.#noteMemory());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
    for (const { eye } of this.#sinks) eye.close();
    await this.#log?.close().catch(() => undefined);
  }

  get backward(): readonly string[] {
    return this.#sinks.flatMap(({ eye, judge }) => judge.backward.map((text) => `${eye.name}: ${text}`));
  }

  get wrong(): readonly string[] {
    return this.#sinks.flatMap(({ eye, judge }) => judge.wrong.map((text) => `${eye.name}: ${text}`));
  }

  /** Looks at all sinks that succeeded. */
  get looks(): number {
    return this.#sinks.reduce((sum, { looks }) => sum + looks.done, 0);
  }

  /** What was seen, as far as the watch knows. */
  get sight(): {
    readonly sinks: Readonly<Record<string, Looks>>;
    readonly books: Looks;
    readonly checkpoints: number;
    readonly held: number;
    readonly commits: Readonly<Record<string, number>>;
  } {
    const { looks: checkpoints, held } = this.#checkpoints;
    const sinks = Object.fromEntries(this.#sinks.map(({ eye, looks }) => [eye.name, looks]));
    const commits = Object.fromEntries(this.#sinks.map(({ eye, markers }) => [eye.name, markers.held]));
    return { sinks, books: this.#books, checkpoints, held, commits };
  }

  /** Commits beyond the marker, markers that went back, checkpoints beyond the log or ahead of the acks. */
  get ahead(): readonly string[] {
    const books = this.#sinks.flatMap(({ eye, markers }) => markers.wrong.map((text) => `${eye.name}: ${text}`));
    return [...books, ...this.#checkpoints.complaints];
  }

  /** Every probe that was written after that time, or a later one, is in every sink, and none is older than a second. */
  caughtUp(sinceMs: number): boolean {
    return this.#sinks.every(({ oldestProbe }) => oldestProbe >= sinceMs && Date.now() - oldestProbe < 1000);
  }

  /** Every sink shows what was written at that time, or later. */
  follows(sinceMs: number): boolean {
    return this.#sinks.every(({ oldestProbe }) => oldestProbe >= sinceMs);
  }

  /** The sink that could not be looked at for so long; null: there is none. */
  blindness(ms: number): string | null {
    const blind = this.#sinks.find(({ lookedMs }) => Date.now() - lookedMs > ms);
    return blind === undefined ? null : `${blind.eye.name} could not be looked at: ${blind.looks.trouble}`;
  }

  /** Age of the oldest of the newest probes, by sink. */
  lags(): string {
    return this.#sinks.map(({ eye, oldestProbe }) => `${eye.name} ${Date.now() - oldestProbe} ms`).join(', ');
  }

  lagSeconds(): readonly (readonly [string, number])[] {
    return this.#sinks.map(({ eye, oldestProbe }) => [eye.name, (Date.now() - oldestProbe) / 1000]);
  }

  async log(): Promise<LogEye> {
    return await untilMysync('MySync has made the log', async () => {
      this.#log ??= await this.#options.openLog();
      return this.#log ?? false;
    });
  }

  /** Every sink and the books were looked at once more, from now on. Throws where that cannot be. */
  async seenAgain(): Promise<void> {
    const counts = [...this.#sinks.map(({ looks }) => looks), this.#books];
    // one may be under way, and have begun before
    const wanted = counts.map(({ done }) => done + 2);
    const isDone = (): boolean => counts.every(({ done }, index) => done >= (wanted[index] ?? 0));
    await until('a look at the sinks and at the books', isDone, { timeoutMs: SEEN_AGAIN_MS }).catch(
      (error: unknown) => {
        const troubles = counts.map(({ trouble }) => trouble).filter((trouble) => trouble !== '');
        throw new Error(troubles.join('; '), { cause: error });
      },
    );
  }

  /**
   * What the whole log says of those who wrote it, and how far it was read; records of strangers, by partition and offset, are passed over. What it says of
   * the checkpoints stands in `ahead`.
   */
  async audit(
    strangers: ReadonlySet<string>,
    compacted: boolean,
  ): Promise<{ readonly complaints: readonly string[]; readonly parts: readonly PartRead[] }> {
    return await readWholeLog(await this.log(), { strangers, compacted, checkpoints: this.#checkpoints });
  }

  /** The log is about to be destroyed: checkpoint and commits are not compared with it until it is made again. */
  async closeBooks(): Promise<void> {
    this.#booksClosed = true;
    await this.#booking;
  }

  openBooks(): void {
    this.#booksClosed = false;
  }

  async closeLog(): Promise<void> {
    const log = this.#log;
    this.#log = null;
    await this.#booking;
    await log?.close().catch(() => undefined);
  }

  /** Nobody looks at that sink while `action` puts it back to an older state, after which it starts afresh. */
  async unseen(sinkName: string, action: () => Promise<void>): Promise<void> {
    const sink = this.#named(sinkName);
    sink.paused = true;
    sink.era += 1;
    await sink.looking;
    await action();
    sink.judge.forget();
    sink.markers.putBack(this.#options.partitions);
    sink.oldestProbe = 0;
    sink.paused = false;
  }

  /** The sink's markers were removed on purpose: those to come begin anew. */
  markersRemoved(sinkName: string): void {
    const sink = this.#named(sinkName);
    sink.era += 1;
    sink.markers.removed();
  }

  /** The sink's markers were put onto another log on purpose; its rows are what they were, and must not go back. */
  markersMoved(sinkName: string): void {
    const sink = this.#named(sinkName);
    sink.era += 1;
    sink.markers.putBack(this.#options.partitions);
  }

  #named(sinkName: string): SinkWatch {
    const sink = this.#sinks.find(({ eye }) => eye.name === sinkName);
    if (sink === undefined) throw new Error(`no sink ${sinkName}`);
    return sink;
  }

  async #follow(sink: SinkWatch): Promise<void> {
    const dice = new Dice(this.#options.seed ^ 0x77);
    while (!this.#stopping.signal.aborted) {
      if (!sink.paused) {
        sink.looking = this.#look(sink, dice).catch((error: unknown) => {
          sink.looks.failed(textOf(error), performance.now());
        });
        await sink.looking;
      }
      // a look at documents by their ids makes Elasticsearch refresh what was written
      await sleep(sink.eye.name === 'redis' ? LOOK_MS : LOOK_MS * 12);
    }
  }

  async #look(sink: SinkWatch, dice: Dice): Promise<void> {
    const targets: Target[] = [];
    for (let id = 0; id < PROBES; id += 1) targets.push({ table: 'probe', key: String(id) });
    for (let id = 0; id < COUNTERS; id += 1) targets.push({ table: 'counter', key: String(id) });
    for (let i = 0; i < SAMPLE; i += 1) targets.push(this.#options.sample(dice));
    const { era } = sink;
    const found = await sink.eye.look(targets);
    sink.lookedMs = Date.now();
    if (sink.era !== era) return;
    let oldest = Number.POSITIVE_INFINITY;
    for (const [index, { table, key }] of targets.entries()) {
      const n = found[index] ?? null;
      if (table === 'probe') oldest = Math.min(oldest, n ?? 0);
      sink.judge.look(`${table}:${key}`, n);
    }
    sink.oldestProbe = oldest;
    sink.looks.succeeded();
  }

  async #keepBooks(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await sleep(BOOKS_MS);
      // a server that is down just now: what it would have shown is still there when it is back
      this.#booking = this.#compareBooks().catch((error: unknown) => {
        this.#books.failed(textOf(error), performance.now());
      });
      await this.#booking;
    }
  }

  async #noteMemory(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#options.noteMemory();
      await sleep(BOOKS_MS);
    }
  }

  async #compareBooks(): Promise<void> {
    if (this.#booksClosed) return;
    this.#log ??= await this.#options.openLog();
    const log = this.#log;
    if (log === null) return;
    await this.#compareCheckpoint(log);
    for (const sink of this.#sinks) await this.#compareCommits(log, sink);
    this.#books.succeeded();
  }

  /** The checkpoint is read first: the log's end only grows. */
  async #compareCheckpoint(log: LogEye): Promise<void> {
    const text = await this.#options.readCheckpoint(log);
    if (text !== null) this.#checkpoints.see(text, await log.ends());
  }

  async #compareCommits(log: LogEye, sink: SinkWatch): Promise<void> {
    const { topic, partitions, groupOf } = this.#options;
    const { eye, era } = sink;
    const committed = await log.committed(groupOf(eye.name));
    const markers = await eye.markers(topic, partitions);
    if (sink.era !== era || sink.paused) return;
    sink.markers.look(committed, markers);
  }
}
