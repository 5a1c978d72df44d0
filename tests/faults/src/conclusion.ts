/** The end of a run: the load stops, everything is looked at, the processes are stopped in order, live once more, and are stopped again. */
import { blindSpots } from './blind-spots.ts';
import { errorsTold } from './ending.ts';
import { lastLife } from './last-life.ts';
import { untilEqual } from './recovery.ts';
import type { Scene } from './scene.ts';

/** Memory of one process, of all its peaks (docs/performance.md says what bounds it). */
const MOST_RSS_MB = 600;

/** What is found goes to the scene. Throws where the checker was blind. `phase` is told what has just ended. */
export async function conclude(scene: Scene, phase: (name: string) => void): Promise<void> {
  const { load, watch, findings, counts } = scene;
  await load.stop();
  const { lost, wrong, examples } = await untilEqual(scene);
  counts.lost += lost;
  counts.wrong += wrong;
  findings.complain(...examples);
  phase('equal');
  // sinks that are not equal by now would be waited for once more
  if (lost + wrong === 0) await lastLife(scene);
  phase('last life');
  const { complaints, parts } = await watch.audit(scene.strangers, scene.setting.shortRetention);
  findings.complain(...complaints.slice(0, 5));
  phase('audit');
  await Promise.all(scene.actors.map((actor) => scene.stopInOrder(actor)));
  // nothing failed any more in that life
  for (const { name, printed } of scene.actors) {
    const [error] = errorsTold(printed);
    if (error !== undefined) findings.complain(`${name} told an error in its last life: ${error.slice(0, 1500)}`);
  }
  // what was committed and saved at the stop
  await watch.seenAgain();
  phase('stop');
  for (const [name, mb] of scene.peaks) if (mb > MOST_RSS_MB) findings.complain(`${name} took ${mb} MB`);
  const blind = blindSpots({ ...watch.sight, parts, peaks: scene.peaks.map(([, mb]) => mb) });
  if (blind.length > 0) throw new Error(`nobody looked: ${blind.join('; ')}`);
}
