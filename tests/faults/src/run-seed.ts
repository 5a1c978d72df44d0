/** Plays one plan and judges it. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { compareAll, type Verdict } from './compare.ts';
import { describe, type Plan, type Step } from './plan.ts';
import { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

/** A load that is longer under way is struck by no further fault. */
const LAST_STRIKE_MS = 28_000;
const EQUAL_MS = 90_000;
const FIRST_ROWS_MS = 120_000;
/** Memory of one process, of all its peaks (docs/performance.md says what bounds it). */
const MOST_RSS_MB = 600;

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
  /** Everything that speaks against the seed; empty: it passed. */
  readonly complaints: readonly string[];
  readonly seconds: number;
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
  await stage.heal();
  const ownFolder = join(folder, `${setting.transport}-${seed}`);
  const scene = await Scene.set({ stage, setting, seed, folder: ownFolder, clockLibrary });
  const faults: FaultResult[] = [];
  let verdict: Verdict = { lost: 0, wrong: 0, examples: [] };
  try {
    verdict = await play(scene, plan, faults, say);
  } catch (error) {
    scene.complaints.push(error instanceof Error ? error.message : String(error));
  } finally {
    const { backward, wrong, ahead } = scene.watch;
    scene.complaints.push(...verdict.examples, ...backward.slice(0, 5), ...wrong.slice(0, 5), ...ahead.slice(0, 5));
    await stage.heal();
    await scene.clear(keep || scene.complaints.length > 0);
    await scene.drop();
  }
  const { watch, load, complaints } = scene;
  return {
    seed,
    transport: setting.transport,
    what,
    faults,
    rows: load.rows,
    lost: verdict.lost,
    wrong: verdict.wrong + watch.wrong.length + watch.ahead.length,
    backward: watch.backward.length,
    complaints,
    seconds: Math.round((performance.now() - began) / 100) / 10,
    looks: watch.looks,
  };
}

async function play(scene: Scene, plan: Plan, faults: FaultResult[], say: (text: string) => void): Promise<Verdict> {
  const { load, watch } = scene;
  watch.start();
  for (const actor of scene.actors) actor.start();
  load.start();
  if (!plan.early) await caughtUp(scene, Date.now(), FIRST_ROWS_MS, 'the existing rows');
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
  await load.stop();
  const verdict = await untilEqual(scene);
  for (const actor of scene.actors) {
    const peak = actor.peakMb();
    if (peak > MOST_RSS_MB) scene.complaints.push(`${actor.name} took ${peak} MB`);
  }
  if (!scene.setting.shortRetention) scene.complaints.push(...(await watch.audit(scene.strangers)).slice(0, 5));
  const { looks, bookLooks, bookTrouble, audited } = watch;
  const blind = looks === 0 || bookLooks === 0 || (audited === 0 && !scene.setting.shortRetention);
  if (blind)
    scene.complaints.push(
      `nobody looked: ${looks} looks, ${bookLooks} at the books (${bookTrouble}), ${audited} partitions`,
    );
  const stops = await Promise.all(scene.actors.map((actor) => actor.stop()));
  for (const complaint of stops) if (complaint !== null) scene.complaints.push(complaint);
  return verdict;
}

/** Mends what is broken, waits until the sinks follow again; gives the seconds that took. */
interface Recovery {
  readonly scene: Scene;
  readonly step: Step;
  /** When it struck, in ms since 1970. */
  readonly struck: number;
  readonly mends: readonly (() => Promise<void>)[];
  readonly alone: boolean;
  readonly stuckMs: number;
  readonly say: (text: string) => void;
}

async function recover({ scene, step, struck, mends, alone, stuckMs, say }: Recovery): Promise<number | null> {
  const name = step.kind.name;
  let since = struck;
  if (step.kind.carriedBy === true && alone) {
    await caughtUp(scene, since, stuckMs, name);
    const seconds = (Date.now() - since) / 1000;
    say(`  ${name}: ${seconds.toFixed(1)} s`);
    for (const mend of mends) await mend();
    await caughtUp(scene, Date.now(), stuckMs, `${name}, when it was over`);
    return seconds;
  }
  await sleep(step.holdMs);
  for (const mend of mends) await mend();
  since = Date.now();
  await caughtUp(scene, since, stuckMs, name);
  const seconds = (Date.now() - since) / 1000;
  say(`  ${name}: ${seconds.toFixed(1)} s${alone ? '' : ' (with others)'}`);
  return alone ? seconds : null;
}

async function caughtUp(scene: Scene, sinceMs: number, timeoutMs: number, after: string): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!scene.watch.caughtUp(sinceMs)) {
    if (performance.now() > end)
      throw new Error(`stuck for ${timeoutMs / 1000} s after ${after}: lag ${scene.watch.lags()}`);
    await sleep(25);
  }
}

async function untilEqual(scene: Scene): Promise<Verdict> {
  const end = performance.now() + EQUAL_MS;
  for (;;) {
    const verdict = await compareAll(scene, scene.eyes).catch(
      (error: unknown): Verdict => ({ lost: 1, wrong: 0, examples: [`could not compare: ${String(error)}`] }),
    );
    if (verdict.lost + verdict.wrong === 0 || performance.now() > end) return verdict;
    await sleep(150);
  }
}
