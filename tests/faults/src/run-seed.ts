/** Plays one plan and judges it. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Verdict } from './compare.ts';
import { conclude } from './conclusion.ts';
import { describe, type Plan } from './plan.ts';
import { caughtUp, recover } from './recovery.ts';
import { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

/** A load that is longer under way is struck by no further fault. */
const LAST_STRIKE_MS = 28_000;
const FIRST_ROWS_MS = 120_000;

export interface FaultResult {
  readonly kind: string;
  /** From fault gone to lag under a second; null: not measured, since another fault was under way. */
  readonly recoverySeconds: number | null;
}

export interface SeedResult {
  readonly seed: number;
  readonly transport: string;
  readonly what: string;
  readonly faults: readonly FaultResult[];
  readonly rows: number;
  readonly lost: number;
  readonly wrong: number;
  readonly backward: number;
  /** After what the sinks followed, but for the whole time not within a second. */
  readonly slow?: readonly string[];
  /** Everything that speaks against the seed; empty: it passed. */
  readonly complaints: readonly string[];
  readonly seconds: number;
  /** Where they went. */
  readonly phases: Readonly<Record<string, number>>;
  readonly looks: number;
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
  await stage.heal();
  phase('heal');
  const ownFolder = join(folder, `${setting.transport}-${seed}`);
  const scene = await Scene.set({ stage, setting, seed, folder: ownFolder, clockLibrary });
  phase('set');
  const faults: FaultResult[] = [];
  let verdict: Verdict = { lost: 0, wrong: 0, examples: [] };
  try {
    verdict = await play({ scene, plan, faults, phase, say });
  } catch (error) {
    scene.complaints.push(error instanceof Error ? error.message : String(error));
  } finally {
    const { backward, wrong, ahead } = scene.watch;
    scene.complaints.push(...verdict.examples, ...backward.slice(0, 5), ...wrong.slice(0, 5), ...ahead.slice(0, 5));
    await stage.heal();
    await scene.clear(keep || scene.complaints.length > 0);
    await scene.drop();
    phase('clear');
  }
  const { watch, load, complaints, slow } = scene;
  return {
    seed,
    transport: setting.transport,
    what,
    faults,
    rows: load.rows,
    lost: verdict.lost,
    wrong: verdict.wrong + watch.wrong.length + watch.ahead.length,
    backward: watch.backward.length,
    slow,
    complaints,
    seconds: Math.round((performance.now() - began) / 100) / 10,
    phases,
    looks: watch.looks,
  };
}

interface Play {
  readonly scene: Scene;
  readonly plan: Plan;
  readonly faults: FaultResult[];
  readonly phase: (name: string) => void;
  readonly say: (text: string) => void;
}

async function play({ scene, plan, faults, phase, say }: Play): Promise<Verdict> {
  const { load, watch } = scene;
  watch.start();
  for (const actor of scene.actors) actor.start();
  load.start();
  if (!plan.early) await caughtUp(scene, Date.now(), FIRST_ROWS_MS, 'the existing rows');
  phase('rows');
  const loaded = performance.now();
  let mends: (() => Promise<void>)[] = [];
  for (const step of plan.steps) {
    if (performance.now() - loaded > LAST_STRIKE_MS) break;
    await sleep(step.beforeMs);
    const struck = Date.now();
    const mend = await step.kind.strike(scene, step.dice);
    mends.push(mend);
    if (step.overlaps) continue;
    const alone = mends.length === 1 && step.kind.ends !== true && !(plan.early && step === plan.steps[0]);
    faults.push({
      kind: step.kind.name,
      recoverySeconds: await recover({ scene, step, struck, mends, alone, say, stuckMs: plan.stuckMs }),
    });
    mends = [];
  }
  for (const mend of mends) await mend();
  for (const step of plan.steps.slice(0))
    if (step.overlaps) faults.push({ kind: step.kind.name, recoverySeconds: null });
  phase('play');
  return await conclude(scene, phase);
}
