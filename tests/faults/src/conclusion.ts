/** The end of a run: the load stops, everything is looked at, the processes are stopped in order. */
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
  for (const actor of scene.actors) {
    const peak = actor.peakMb();
    if (peak > MOST_RSS_MB) findings.complain(`${actor.name} took ${peak} MB`);
  }
  if (!scene.setting.shortRetention) findings.complain(...(await watch.audit(scene.strangers)).slice(0, 5));
  const { looks, bookLooks, bookTrouble, audited } = watch;
  phase('audit');
  await Promise.all(scene.actors.map((actor) => scene.stopInOrder(actor)));
  phase('stop');
  if (looks === 0 || bookLooks === 0 || (audited === 0 && !scene.setting.shortRetention)) {
    throw new Error(`nobody looked: ${looks} looks, ${bookLooks} at the books (${bookTrouble}), ${audited} partitions`);
  }
}
