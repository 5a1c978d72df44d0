/** From a fault to the moment at which the sinks follow again, and to their equality. */
import { setTimeout as sleep } from 'node:timers/promises';
import { compareAll, type Verdict } from './compare.ts';
import { Finding } from './finding.ts';
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

/** Lets it last, mends what is broken, waits until the sinks follow again; gives the seconds that took (where they never came within one of the present, all that were waited), null where others were under way. */
export async function recover({ scene, step, struck, mends, alone, stuckMs, say }: Recovery): Promise<number | null> {
  const name = step.kind.name;
  let since = struck;
  if (step.kind.carriedBy === true && alone) {
    const close = await caughtUp(scene, since, stuckMs, name);
    const seconds = (Date.now() - since) / 1000;
    say(`  ${name}: ${seconds.toFixed(1)} s${close ? '' : ', and not within a second'}`);
    for (const mend of mends) await mend();
    await caughtUp(scene, Date.now(), stuckMs, `${name}, when it was over`);
    return seconds;
  }
  await sleep(step.holdMs);
  for (const mend of mends) await mend();
  since = Date.now();
  const close = await caughtUp(scene, since, stuckMs, name);
  const seconds = (Date.now() - since) / 1000;
  say(`  ${name}: ${seconds.toFixed(1)} s${alone ? '' : ' (with others)'}${close ? '' : ', and not within a second'}`);
  return alone ? seconds : null;
}

/**
 * Waits until the sinks show what was written after `sinceMs`, and are less than a second behind. A Finding when they stand still. False: they follow, but
 * not as closely as that in all the time: the machine, or a store, is too slow for the load, which the result tells (`slow`).
 */
export async function caughtUp(scene: Scene, sinceMs: number, timeoutMs: number, after: string): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  while (!scene.watch.caughtUp(sinceMs)) {
    if (performance.now() > end) {
      const lags = scene.watch.lags();
      if (!scene.watch.follows(Math.max(sinceMs, Date.now() - timeoutMs / 4))) {
        const blind = scene.blindness();
        if (blind !== null) throw new Error(`nobody knows whether the sinks follow after ${after}: ${blind}`);
        throw new Finding(`stuck for ${timeoutMs / 1000} s after ${after}: lag ${lags}`);
      }
      scene.slow.push(`after ${after}: ${lags}`);
      return false;
    }
    await sleep(25);
  }
  return true;
}

/** The tables against the sinks, again and again until they are equal or the time is over. Throws when they could not be compared until the end. */
export async function untilEqual(scene: Scene): Promise<Verdict> {
  const end = performance.now() + EQUAL_MS;
  for (;;) {
    const late = performance.now() > end;
    try {
      const verdict = await compareAll(scene, scene.eyes);
      if (verdict.lost + verdict.wrong === 0 || late) return verdict;
    } catch (error) {
      if (late) throw new Error('source and sinks could not be compared', { cause: error });
    }
    await sleep(150);
  }
}
