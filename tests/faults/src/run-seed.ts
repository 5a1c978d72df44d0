/** Plays one plan and judges it. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { conclude } from './conclusion.ts';
import { Findings, type Outcome } from './findings.ts';
import { onScene } from './on-scene.ts';
import { describe, type Plan } from './plan.ts';
import { caughtUp, recover } from './recovery.ts';
import type { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

/** A load that is longer under way is struck by no further fault. */
const LAST_STRIKE_MS = 28_000;
const FIRST_ROWS_MS = 120_000;

/** A fault that was struck. */
export interface FaultResult {
  readonly kind: string;
  /** From fault gone to lag under a second; null: not measured, since another fault was under way. */
  readonly recoverySeconds: number | null;
}

export interface SeedResult {
  readonly seed: number;
  readonly transport: string;
  readonly what: string;
  /** Of the load. */
  readonly rowsPerSecond: number;
  readonly outcome: Outcome;
  readonly faults: readonly FaultResult[];
  /** Kinds that were planned, and not struck: the load was under way for too long. */
  readonly dropped?: readonly string[];
  readonly rows: number;
  readonly lost: number;
  readonly wrong: number;
  readonly backward: number;
  /** After what the sinks followed, but for the whole time not within a second. */
  readonly slow?: readonly string[];
  /** Everything that speaks against MySync. */
  readonly complaints: readonly string[];
  /** What the suite itself could not do: where nothing speaks against MySync, nothing was shown. */
  readonly suiteErrors: readonly string[];
  readonly seconds: number;
  /** Where they went. */
  readonly phases: Readonly<Record<string, number>>;
  readonly looks: number;
  /** Most memory that any process of MySync had, in MB. */
  readonly peakMb?: number;
}

export interface RunSeedOptions {
  readonly stage: Stage;
  readonly plan: Plan;
  /** Its folder stays, also when it passes. */
  readonly keep: boolean;
  /** Folder for the seeds' folders. */
  readonly folder: string;
  readonly clockLibrary: string;
  readonly say: (text: string) => void;
}

export async function runSeed({ stage, plan, keep, folder, clockLibrary, say }: RunSeedOptions): Promise<SeedResult> {
  const { seed, setting } = plan;
  const began = performance.now();
  const what = describe(plan);
  say(`seed ${seed}: ${what}`);
  const phases: Record<string, number> = {};
  let since = began;
  const phase = (name: string): void => {
    phases[name] = Math.round((performance.now() - since) / 100) / 10;
    since = performance.now();
  };
  const findings = new Findings();
  const faults: FaultResult[] = [];
  const dropped: string[] = [];
  const ownFolder = join(folder, `${setting.transport}-${seed}`);
  const { rows, lost, wrong, backward, looks, slow, peakMb } = await onScene(
    { stage, setting, seed, folder: ownFolder, clockLibrary, findings },
    keep,
    async (set) => {
      phase('set');
      await play({ scene: set, plan, faults, dropped, phase, say });
    },
  );
  phase('clear');
  return {
    seed,
    transport: setting.transport,
    what,
    rowsPerSecond: plan.setting.rowsPerSecond,
    outcome: findings.outcome,
    faults,
    dropped,
    rows,
    lost,
    wrong,
    backward,
    slow,
    complaints: findings.complaints,
    suiteErrors: findings.suiteErrors,
    seconds: Math.round((performance.now() - began) / 100) / 10,
    phases,
    looks,
    peakMb,
  };
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface Play {
  readonly scene: Scene;
  readonly plan: Plan;
  readonly faults: FaultResult[];
  readonly dropped: string[];
  readonly phase: (name: string) => void;
  readonly say: (text: string) => void;
}

async function play({ scene, plan, faults, dropped, phase, say }: Play): Promise<void> {
  const { load, watch } = scene;
  watch.start();
  for (const actor of scene.actors) actor.start();
  load.start();
  if (!plan.early) await caughtUp(scene, Date.now(), FIRST_ROWS_MS, 'the existing rows');
  phase('rows');
  const loaded = performance.now();
  let mends: (() => Promise<void>)[] = [];
  for (const [index, step] of plan.steps.entries()) {
    if (performance.now() - loaded > LAST_STRIKE_MS) {
      dropped.push(...plan.steps.slice(index).map(({ kind }) => kind.name));
      break;
    }
    await sleep(step.beforeMs);
    const struck = Date.now();
    const mend = await step.kind.strike(scene, step.dice);
    const fault: Writable<FaultResult> = { kind: step.kind.name, recoverySeconds: null };
    faults.push(fault);
    mends.push(mend);
    if (step.overlaps) continue;
    const alone = mends.length === 1 && step.kind.ends !== true && !(plan.early && step === plan.steps[0]);
    fault.recoverySeconds = await recover({ scene, step, struck, mends, alone, say, stuckMs: plan.stuckMs });
    mends = [];
  }
  for (const mend of mends) await mend();
  phase('play');
  await conclude(scene, phase);
}
