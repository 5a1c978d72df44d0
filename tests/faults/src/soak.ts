/** A long run: steady load, a fault each minute, and a look every few seconds at what might creep up. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findAbilities } from './abilities.ts';
import { conclude } from './conclusion.ts';
import { Dice } from './dice.ts';
import { FAULT_KINDS, type FaultKind } from './fault-kinds.ts';
import { Findings } from './findings.ts';
import { onScene } from './on-scene.ts';
import type { Step } from './plan.ts';
import { caughtUp, recover } from './recovery.ts';
import { type FigureKind, folderMb, Samples } from './samples.ts';
import type { Scene } from './scene.ts';
import type { Setting, TransportName } from './setting.ts';
import type { SlopeVerdict } from './slope.ts';
import { Stage } from './stage.ts';

const FIRST_ROWS_MS = 120_000;
const STUCK_MS = 120_000;
const SAMPLE_MS = 3000;
const FAULT_EVERY_MS = 60_000;
/** The lag of most looks. */
const MOST_LAG_SECONDS = 1;

export interface SoakOptions {
  readonly minutes: number;
  readonly transport: TransportName;
  /** Rows per second. */
  readonly rate: number;
  readonly seed: number;
  /** Folder for what a run leaves that failed. */
  readonly folder: string;
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
}

type Figures = Readonly<Record<string, SlopeVerdict>>;

export interface SoakResult {
  readonly minutes: number;
  readonly faults: number;
  readonly rows: number;
  readonly lost: number;
  readonly wrong: number;
  readonly backward: number;
  /** MB of memory of each process's own. */
  readonly rss: Figures;
  /** The same with mapped files; told, not judged. */
  readonly mapped: Figures;
  /** Open handles. */
  readonly handles: Figures;
  /** Seconds, by sink. */
  readonly lag: Figures;
  /** MB on disk. */
  readonly log: Figures;
  readonly checkpoint: Figures;
  readonly flat: boolean;
  /** Everything that speaks against MySync. */
  readonly complaints: readonly string[];
  /** What the suite itself could not do. */
  readonly suiteErrors: readonly string[];
}

/**
 * The first half has all kinds of faults, the second spares the processes: one that begins anew has nothing to leak. So each is watched
 * for half of the run, while servers, ways and disks fail around it.
 */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { minutes, transport, rate, seed, folder, say } = options;
  const { clockLibrary } = await findAbilities(say);
  const setting: Setting = {
    transport,
    source: 'mariadb',
    sinks: ['redis'],
    cluster: false,
    oneProcess: false,
    writers: 2,
    partitions: 4,
    ownClock: false,
    ownDisk: false,
    // changes are compacted away after two minutes, so that the log stays as large as it is
    shortRetention: true,
    compactionMs: 5000,
    checkpoint: 'file',
    rowsPerSecond: rate,
    reader: {},
    sink: {},
    sourceOptions: {},
    transportOptions: { deleteRetentionMs: 3_600_000, minCompactionLagMs: 120_000, allowWeakerTopic: true },
  };
  const findings = new Findings();
  const stage = new Stage();
  let faults = 0;
  let figures: ReturnType<Samples['judge']> = [];
  const ownFolder = join(folder, `soak-${transport}`);
  const { rows, lost, wrong, backward } = await onScene(
    { stage, setting, seed, folder: ownFolder, clockLibrary, findings },
    false,
    async (set) => {
      const run = new SoakRun(set, options);
      figures = await run.play().finally(() => {
        faults = run.faults;
      });
      await conclude(set, () => undefined);
    },
  );
  for (const trouble of await stage.clear()) say(trouble);
  const of = (kind: FigureKind): Figures =>
    Object.fromEntries(figures.filter((figure) => figure.kind === kind).map((figure) => [figure.of, rounded(figure)]));
  const steady = figures.every((figure) => figure.flat && (figure.kind !== 'lag' || figure.median < MOST_LAG_SECONDS));
  // a reader and two writers must have lived through it
  const seen = figures.filter(({ kind }) => kind === 'rss').length >= 3;
  return {
    minutes,
    faults,
    rows,
    lost,
    wrong,
    backward,
    rss: of('rss'),
    mapped: of('mapped'),
    handles: of('handles'),
    lag: of('lag'),
    log: of('log'),
    checkpoint: of('checkpoint'),
    flat: steady && seen,
    complaints: findings.complaints.slice(0, 10),
    suiteErrors: findings.suiteErrors,
  };
}

class SoakRun {
  readonly #scene: Scene;
  readonly #options: SoakOptions;
  readonly #samples = new Samples();
  readonly #dice: Dice;
  faults = 0;

  constructor(scene: Scene, options: SoakOptions) {
    this.#scene = scene;
    this.#options = options;
    this.#dice = new Dice(options.seed);
  }

  async play(): Promise<ReturnType<Samples['judge']>> {
    const { watch, load, actors } = this.#scene;
    const { minutes, say, signal } = this.#options;
    watch.start();
    for (const actor of actors) actor.start();
    load.start();
    await caughtUp(this.#scene, Date.now(), FIRST_ROWS_MS, 'the existing rows');
    const seconds = minutes * 60;
    const stopping = new AbortController();
    const looking = this.#look(stopping.signal);
    let calm: number | null = null;
    try {
      for (let next = FAULT_EVERY_MS / 1000; next < seconds && !signal.aborted; next += FAULT_EVERY_MS / 1000) {
        const late = next > seconds / 2;
        if (late) calm ??= this.#samples.now;
        await sleep(Math.max(0, next - this.#samples.now) * 1000, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) break;
        say(`minute ${Math.round(next / 60)}, ${load.rows} rows, lag ${watch.lags()}`);
        await this.#strike(late);
      }
      await sleep(Math.max(0, seconds - this.#samples.now) * 1000, undefined, { signal }).catch(() => undefined);
    } finally {
      stopping.abort();
      await looking;
    }
    return this.#samples.judge(calm ?? seconds / 2);
  }

  async #strike(late: boolean): Promise<void> {
    const { setting } = this.#scene;
    const fits = (kind: FaultKind): boolean => kind.ends !== true && kind.fits(setting);
    const kinds = FAULT_KINDS.filter((kind) => fits(kind) && !(late && kind.endsProcesses === true));
    const kind = this.#dice.weighted(kinds);
    const holdMs = this.#dice.integer(...kind.holdMs);
    const step: Step = { kind, beforeMs: 0, holdMs, overlaps: false, dice: new Dice(this.faults + 1) };
    const struck = Date.now();
    const mends = [await kind.strike(this.#scene, step.dice)];
    const { say } = this.#options;
    await recover({ scene: this.#scene, step, struck, mends, alone: true, stuckMs: STUCK_MS, say });
    this.faults += 1;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { watch, dataFolder, setting } = this.#scene;
    const samples = this.#samples;
    while (!signal.aborted) {
      for (const actor of this.#scene.actors) samples.process(actor);
      for (const [sink, seconds] of watch.lagSeconds()) samples.add('lag', sink, seconds);
      if (setting.transport === 'log') samples.add('log', 'log', folderMb(join(dataFolder, 'log')));
      samples.add('checkpoint', 'checkpoint', folderMb(join(dataFolder, 'checkpoints')));
      await sleep(SAMPLE_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

function rounded({ median, most, growth, allowed, flat }: SlopeVerdict): SlopeVerdict {
  const short = (value: number): number => Math.round(value * 100) / 100;
  return { median: short(median), most: short(most), growth: short(growth), allowed: short(allowed), flat };
}
