/** Which keys of the sinks are looked at all along, besides probes and counters. */
import type { Dice } from './dice.ts';
import { burstKey, WATCHED_OF_BURST } from './load.ts';
import type { Target } from './sink-eye.ts';

/** A key worth a look, at random. */
export function chooseTarget(dice: Dice): Target {
  if (dice.chance(0.15)) {
    const index = dice.integer(0, WATCHED_OF_BURST.count - 1) * WATCHED_OF_BURST.every;
    return { table: 'bulk', key: String(burstKey(index)) };
  }
  const session = dice.integer(0, 2);
  if (dice.chance(0.2)) {
    return { table: 'pair', key: `${dice.integer(0, 39) * 3 + session},${dice.integer(0, 4)}` };
  }
  // keys that move and are removed most lie at both ends of a session's stretch
  const index = dice.chance(0.5) ? dice.integer(0, 1500) : dice.integer(1600, 1810);
  return { table: 'bulk', key: String(session * 1_000_000 + index) };
}
