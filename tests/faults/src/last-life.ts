/**
 * One more life: what a commit or a checkpoint says that was written at an orderly stop shows only when somebody goes on from it. All processes are stopped in order while rows
 * change, and started again: they must go on, come to the present, and have the sinks equal.
 */
import { until } from '@mysync/harness';
import { caughtUp, untilEqual } from './recovery.ts';
import type { Scene } from './scene.ts';

/** So many rows are changed before they are stopped. */
const ROWS_BEFORE = 200;
const STUCK_MS = 90_000;

export async function lastLife(scene: Scene): Promise<void> {
  const { load, setting, actors, findings } = scene;
  // where deletions are soon forgotten, nothing is changed while nobody applies it
  if (!setting.shortRetention) await changeAgain(scene);
  await Promise.all(actors.map((actor) => scene.stopInOrder(actor)));
  for (const actor of actors) actor.start();
  if (setting.shortRetention) await changeAgain(scene);
  await caughtUp(scene, Date.now(), STUCK_MS, 'the stop in order at the end');
  await load.stop();
  const { lost, wrong, examples } = await untilEqual(scene);
  scene.counts.lost += lost;
  scene.counts.wrong += wrong;
  findings.complain(...examples.map((text) => `after the stop in order at the end: ${text}`));
}

async function changeAgain({ load }: Scene): Promise<void> {
  const before = load.rows;
  load.start();
  await until('rows are changed again', () => load.rows >= before + ROWS_BEFORE);
}
