/** The end of a run: the load stops, everything is looked at, the processes are stopped in order. */
import type { Verdict } from './compare.ts';
import { untilEqual } from './recovery.ts';
import type { Scene } from './scene.ts';

/** Memory of one process, of all its peaks (docs/performance.md says what bounds it). */
const MOST_RSS_MB = 600;

/** What speaks against the run goes to the scene's complaints, too. `phase` is told what has just ended. */
export async function conclude(scene: Scene, phase: (name: string) => void): Promise<Verdict> {
  const { load, watch } = scene;
  await load.stop();
  const verdict = await untilEqual(scene);
  phase('equal');
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
  phase('audit');
  const stops = await Promise.all(scene.actors.map((actor) => actor.stop()));
  for (const complaint of stops) if (complaint !== null) scene.complaints.push(complaint);
  phase('stop');
  return verdict;
}
