import { Scene, type SceneOptions } from './scene.ts';
import { tidy } from './tidy.ts';

/** What a run did, and what its checker counted. */
export interface Stock {
  readonly rows: number;
  readonly lost: number;
  readonly wrong: number;
  readonly backward: number;
  readonly looks: number;
  /** After what the sinks followed, but not within a second. */
  readonly slow: readonly string[];
  /** Most memory that any process had, in MB. */
  readonly peakMb: number;
}

const NOTHING: Stock = { rows: 0, lost: 0, wrong: 0, backward: 0, looks: 0, slow: [], peakMb: 0 };

/**
 * Sets a scene, plays on it, and leaves nothing of it, however that ends: no process, no table; logs only where they are worth a look, or `keep`. What is found,
 * and what the suite could not do, stands in the findings.
 */
export async function onScene(
  options: SceneOptions,
  keep: boolean,
  play: (scene: Scene) => Promise<void>,
): Promise<Stock> {
  const { findings, stage } = options;
  let scene: Scene | null = null;
  try {
    await stage.heal();
    scene = await Scene.set(options);
    await play(scene);
    scene.takeStock();
  } catch (error) {
    // what was seen until then counts, whatever the error is
    scene?.takeStock();
    findings.take(error);
  }
  if (scene === null) return NOTHING;
  await putAway(scene, keep);
  const { counts, load, watch, slow, peaks } = scene;
  const peakMb = peaks.reduce((most, [, mb]) => Math.max(most, mb), 0);
  return { ...counts, rows: load.rows, looks: watch.looks, slow, peakMb };
}

async function putAway(scene: Scene, keep: boolean): Promise<void> {
  const { findings, stage } = scene;
  const troubles = [
    ...(await scene.killAll()),
    // the load can only end when its server answers
    ...(await tidy([['the servers are not in order', () => stage.heal()]])),
    ...(await scene.clear(keep || findings.outcome !== 'passed')),
    ...(await tidy([['the tables could not be removed', () => scene.drop()]])),
  ];
  for (const trouble of troubles) findings.take(new Error(trouble));
}
