/** From a fault to the moment at which the sinks follow again, and to their equality. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareAll, type Verdict } from './compare.ts';
import type { Step } from './plan.ts';
import type { Scene } from './scene.ts';

const EQUAL_MS = 90_000;

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

/** Lets it last, mends what is broken, waits until the sinks follow again; gives the seconds that took, null where others were under way. */
export async function recover({ scene, step, struck, mends, alone, stuckMs, say }: Recovery): Promise<number | null> {
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

/** Throws when the sinks do not show what was written after `sinceMs` in time. */
export async function caughtUp(scene: Scene, sinceMs: number, timeoutMs: number, after: string): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!scene.watch.caughtUp(sinceMs)) {
    if (performance.now() > end)
      throw new Error(`stuck for ${timeoutMs / 1000} s after ${after}: lag ${scene.watch.lags()}`);
    await sleep(25);
  }
}

/** The tables against the sinks, again and again until they are equal or the time is over. */
export async function untilEqual(scene: Scene): Promise<Verdict> {
  const end = performance.now() + EQUAL_MS;
  for (;;) {
    const verdict = await compareAll(scene, scene.eyes).catch(
      (error: unknown): Verdict => ({ lost: 1, wrong: 0, examples: [`could not compare: ${String(error)}`] }),
    );
    if (verdict.lost + verdict.wrong === 0 || performance.now() > end) return verdict;
    await sleep(150);
  }
}
