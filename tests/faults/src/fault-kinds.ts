/** Every kind of fault: which seeds it fits, how it strikes, how it is mended. */
import type { Actor } from './actor.ts';
import type { Dice } from './dice.ts';
import type { Trouble } from './fault-proxy.ts';
import type { Scene } from './scene.ts';
import type { Setting } from './setting.ts';

/** What mends a fault: resolves when it is gone. */
export type Mend = () => Promise<void>;

export interface FaultKind {
  readonly name: string;
  readonly weight: number;
  /** How long it lasts, at least and at most. */
  readonly holdMs: readonly [number, number];
  readonly fits: (setting: Setting) => boolean;
  readonly strike: (scene: Scene, dice: Dice) => Promise<Mend>;
  /** The others are to carry on while it lasts: recovery counts from the moment it strikes. */
  readonly carriedBy?: true;
  /** Nothing can follow it. */
  readonly ends?: true;
}

const always = (_: Setting): boolean => true;
const apart = (setting: Setting): boolean => !setting.oneProcess;

function killed(name: string, weight: number, among: (scene: Scene) => readonly Actor[], fits = always): FaultKind {
  return {
    name,
    weight,
    holdMs: [0, 1500],
    fits,
    strike: async (scene, dice) => {
      const actor = dice.pick(among(scene));
      await actor.kill();
      return async () => actor.start();
    },
  };
}

function frozen(
  name: string,
  weight: number,
  holdMs: readonly [number, number],
  among: (scene: Scene) => readonly Actor[],
  fits = always,
): FaultKind {
  return {
    name,
    weight,
    holdMs,
    fits,
    strike: async (scene, dice) => {
      const actor = dice.pick(among(scene));
      actor.signal('SIGSTOP');
      return async () => actor.signal('SIGCONT');
    },
  };
}

const processFaults: readonly FaultKind[] = [
  killed('kill reader', 4, ({ readers }) => readers),
  killed('kill writer', 4, ({ writers }) => writers, apart),
  frozen('freeze reader', 2, [500, 4000], ({ readers }) => readers),
  frozen('freeze writer', 2, [500, 4000], ({ writers }) => writers, apart),
  // past the lease and the session: the others take over, and it wakes as a stranger
  frozen(
    'freeze writer past its lease',
    1,
    [12_000, 13_000],
    ({ writers }) => writers,
    (setting) => apart(setting) && setting.writers > 1,
  ),
  {
    name: 'restart in order',
    weight: 2,
    holdMs: [0, 500],
    fits: always,
    strike: async (scene, dice) => {
      const actor = dice.pick(scene.actors);
      const complaint = await actor.stop();
      if (complaint !== null) scene.complaints.push(complaint);
      return async () => actor.start();
    },
  },
  {
    name: 'writers come and go',
    weight: 2,
    holdMs: [500, 2500],
    fits: apart,
    strike: async (scene, dice) => {
      const guests = scene.setting.sinks.flatMap((sink) => [scene.actor('writer', sink), scene.actor('writer', sink)]);
      scene.writers.push(...guests);
      for (const guest of guests) guest.start();
      return async () => {
        for (const guest of guests) {
          if (dice.chance(0.5)) await guest.kill();
          else {
            const complaint = await guest.stop();
            if (complaint !== null) scene.complaints.push(complaint);
          }
          scene.writers.splice(scene.writers.indexOf(guest), 1);
        }
      };
    },
  },
];

const serverFaults: readonly FaultKind[] = (['source', 'redis', 'elasticsearch'] as const).flatMap((part) => {
  const nameOf = (setting: Setting) => (part === 'source' ? setting.source : part);
  const fits = (setting: Setting): boolean => part === 'source' || setting.sinks.includes(part);
  return [
    {
      name: `kill ${part}`,
      weight: 2,
      holdMs: [0, 2000],
      fits,
      strike: async ({ stage, setting }) => {
        const server = stage.server(nameOf(setting));
        await server.kill();
        return async () => void (await server.up());
      },
    },
    {
      name: `freeze ${part}`,
      weight: 1,
      holdMs: [500, 5000],
      fits,
      strike: async ({ stage, setting }) => {
        const server = stage.server(nameOf(setting));
        await server.pause();
        return () => server.resume();
      },
    },
  ] satisfies FaultKind[];
});

const TROUBLES: readonly {
  readonly name: string;
  readonly holdMs: readonly [number, number];
  readonly of: (dice: Dice) => Trouble;
}[] = [
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

function linkFaults(part: 'source' | 'redis' | 'elasticsearch', weight: number): readonly FaultKind[] {
  return TROUBLES.map(({ name, holdMs, of }) => ({
    name: `way to ${part} ${name}`,
    weight,
    holdMs,
    fits: (setting) => part === 'source' || setting.sinks.includes(part),
    strike: async ({ stage, setting }, dice) => {
      const proxy = stage.proxy(part === 'source' ? setting.source : part);
      proxy.strike(of(dice));
      return async () => proxy.mend();
    },
  }));
}

export const FAULT_KINDS: readonly FaultKind[] = [
  ...processFaults,
  ...serverFaults,
  ...linkFaults('source', 0.35),
  ...linkFaults('redis', 0.35),
  ...linkFaults('elasticsearch', 0.35),
];
