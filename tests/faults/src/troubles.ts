import type { Dice } from './dice.ts';
import type { Trouble } from './fault-proxy.ts';

interface TroubleKind {
  readonly name: string;
  readonly holdMs: readonly [number, number];
  readonly of: (dice: Dice) => Trouble;
}

/** What can be wrong with a way to a server, and for how long. */
export const TROUBLES: readonly TroubleKind[] = [
  { name: 'delays', holdMs: [1000, 4000], of: (dice) => ({ kind: 'delay', ms: dice.integer(5, 250) }) },
  {
    name: 'throttles',
    holdMs: [1000, 4000],
    of: (dice) => ({ kind: 'throttle', bytesPerSecond: dice.integer(20_000, 400_000) }),
  },
  { name: 'drops', holdMs: [0, 2000], of: () => ({ kind: 'drop' }) },
  { name: 'resets', holdMs: [0, 2000], of: () => ({ kind: 'reset' }) },
  { name: 'half-opens', holdMs: [0, 3000], of: () => ({ kind: 'half-open' }) },
  { name: 'passes one way', holdMs: [0, 3000], of: () => ({ kind: 'one-way' }) },
  { name: 'black-holes', holdMs: [0, 4000], of: () => ({ kind: 'black-hole' }) },
];
