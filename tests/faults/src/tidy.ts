/** Putting things in order: every step is taken, whatever becomes of the others. */
import { textOf } from './findings.ts';

/** Longer than any server takes to start. */
const STEP_MS = 180_000;

export type TidyStep = readonly [what: string, run: () => Promise<unknown>];

/** Takes the steps in turn, each for `stepMs` at most; gives what went wrong. */
export async function tidy(steps: readonly TidyStep[], stepMs = STEP_MS): Promise<readonly string[]> {
  const troubles: string[] = [];
  for (const [what, run] of steps) {
    try {
      await within(stepMs, run);
    } catch (error) {
      troubles.push(`${what}: ${textOf(error)}`);
    }
  }
  return troubles;
}

async function within(ms: number, run: () => Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms / 1000} s`)), ms);
  });
  try {
    await Promise.race([run(), late]);
  } finally {
    clearTimeout(timer);
  }
}
