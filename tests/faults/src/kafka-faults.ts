/** Faults of the brokers and of the ways to them. */
import { until } from '@mysync/harness';
import type { Dice } from './dice.ts';
import type { FaultKind } from './fault-kinds.ts';
import type { Scene } from './scene.ts';
import type { Setting } from './setting.ts';
import { BROKERS, type Broker } from './stage.ts';
import { TROUBLES } from './troubles.ts';

const onKafka = ({ transport }: Setting): boolean => transport === 'kafka';

/** The leader of one of the partitions. Where another fault has killed all brokers, they are started first: it cannot end before this one has struck. */
async function aLeader(scene: Scene, dice: Dice): Promise<Broker> {
  const leaders = await until('the topic has leaders', async () => {
    const found = await scene.leaders().catch(() => []);
    if (found.length > 0) return found;
    await scene.stage.server('kafka').up();
    return false;
  });
  const leader = BROKERS[dice.pick(leaders) - 1];
  if (leader === undefined) throw new Error(`no such broker among the leaders ${leaders}`);
  return leader;
}

/** One that is dead from another fault cannot be frozen: then it is another. */
async function freeze(scene: Scene, choose: () => Promise<Broker>): Promise<Broker> {
  return await until('a broker is frozen', async () => {
    const broker = await choose();
    await scene.stage.server('kafka').pause(broker);
    return broker;
  });
}

const brokerFaults: readonly FaultKind[] = [
  {
    name: 'kill a leader',
    weight: 4,
    holdMs: [0, 0],
    fits: onKafka,
    carriedBy: true,
    strike: async (scene, dice) => {
      const kafka = scene.stage.server('kafka');
      const leader = await aLeader(scene, dice);
      await kafka.kill(leader);
      return () => kafka.upPart(leader);
    },
  },
  {
    name: 'freeze a leader',
    weight: 2,
    holdMs: [0, 0],
    fits: onKafka,
    carriedBy: true,
    strike: async (scene, dice) => {
      const kafka = scene.stage.server('kafka');
      const leader = await freeze(scene, () => aLeader(scene, dice));
      return () => kafka.resume(leader);
    },
  },
  {
    name: 'leaders change in order',
    weight: 2,
    holdMs: [0, 0],
    fits: onKafka,
    settled: true,
    alone: true,
    strike: async (scene) => {
      await scene.moveLeaders();
      return async () => undefined;
    },
  },
  {
    name: 'restart a broker in order',
    weight: 2,
    holdMs: [0, 1500],
    fits: onKafka,
    // one that is frozen cannot be asked to stop
    alone: true,
    strike: async (scene, dice) => {
      const kafka = scene.stage.server('kafka');
      const broker = await aLeader(scene, dice);
      await kafka.down(broker);
      return () => kafka.upPart(broker);
    },
  },
  {
    name: 'reader killed while a leader is frozen',
    endsProcesses: true,
    weight: 2,
    holdMs: [300, 1500],
    fits: onKafka,
    strike: async (scene, dice) => {
      const kafka = scene.stage.server('kafka');
      const leader = await freeze(scene, () => aLeader(scene, dice));
      return async () => {
        for (const reader of scene.readers) await reader.kill();
        await kafka.resume(leader);
        for (const reader of scene.readers) reader.start();
      };
    },
  },
  {
    name: 'a stranger writes into the log',
    weight: 1,
    holdMs: [500, 1500],
    fits: onKafka,
    settled: true,
    strike: async (scene) => {
      await scene.strangerWrites();
      return async () => undefined;
    },
  },
  {
    name: 'freeze a broker shortly',
    weight: 1,
    holdMs: [300, 2500],
    fits: onKafka,
    strike: async (scene, dice) => {
      const kafka = scene.stage.server('kafka');
      const broker = await freeze(scene, async () => dice.pick(BROKERS));
      return () => kafka.resume(broker);
    },
  },
  {
    name: 'kill two brokers',
    weight: 1,
    holdMs: [0, 3000],
    fits: onKafka,
    strike: async (scene, dice) => {
      const kafka = scene.stage.server('kafka');
      const spared = dice.pick(BROKERS);
      await kafka.kill(BROKERS.filter((broker) => broker !== spared).join(' '));
      return async () => void (await kafka.up());
    },
  },
  {
    name: 'kill all brokers',
    weight: 1,
    holdMs: [0, 3000],
    fits: onKafka,
    strike: async ({ stage }) => {
      const kafka = stage.server('kafka');
      await kafka.kill();
      return async () => void (await kafka.up());
    },
  },
];

const wayFaults: readonly FaultKind[] = TROUBLES.map(({ name, holdMs, of }) => ({
  name: `way to a broker ${name}`,
  weight: 0.7,
  holdMs,
  fits: onKafka,
  strike: async (scene, dice) => {
    const proxy = scene.stage.proxy(await aLeader(scene, dice));
    proxy.strike(of(dice));
    return async () => proxy.mend();
  },
}));

export const KAFKA_FAULTS: readonly FaultKind[] = [...brokerFaults, ...wayFaults];
