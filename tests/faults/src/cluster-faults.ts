/** Faults of a Redis Cluster: masters that die, freeze, lose what they had not passed on; slots that move under the load; ways to masters that go wrong. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '@mysync/harness';
import type { Redis } from 'ioredis';
import type { Dice } from './dice.ts';
import type { FaultKind } from './fault-kinds.ts';
import type { Scene } from './scene.ts';
import type { Setting } from './setting.ts';
import { TROUBLES } from './troubles.ts';

const FAILOVER_MS = 60_000;
/** Slots that are moved to one master before it is lost. */
const MOVED_SLOTS = 4;

const onCluster = ({ cluster }: Setting): boolean => cluster;

/** A master with a replica that has all that it has, so that it can take over. */
async function aPair(scene: Scene, dice: Dice): Promise<{ readonly master: Redis; readonly replica: Redis }> {
  const cluster = scene.stage.cluster();
  return await until('a master has a replica', async () => {
    const left = await cluster.masters();
    while (left.length > 0) {
      const master = dice.pick(left);
      left.splice(left.indexOf(master), 1);
      const replica = await cluster.replicaOf(master);
      // one that does not answer is frozen by another fault
      const state = (await replica?.info('replication').catch(() => '')) ?? '';
      if (replica !== undefined && /master_link_status:up/.test(state)) return { master, replica };
    }
    return undefined;
  });
}

async function takenOver(scene: Scene, replica: Redis): Promise<void> {
  const cluster = scene.stage.cluster();
  await until('the replica takes over', () => cluster.isMaster(replica), { timeoutMs: FAILOVER_MS, everyMs: 100 });
}

/** The replica hears no more of its master, as over a slow network: it will lack the last second. */
async function cutOff(replica: Redis): Promise<() => Promise<void>> {
  await replica.config('SET', 'masterauth', 'cut off');
  await replica.call('CLIENT', 'KILL', 'TYPE', 'master');
  return async () => void (await replica.config('SET', 'masterauth', ''));
}

/** Nobody looks at the sink until `over` is called: which of two nodes is asked decides what is seen. */
function unseenUntil(scene: Scene): (last: () => Promise<void>) => Promise<void> {
  let begin: (last: () => Promise<void>) => void = () => undefined;
  const over = new Promise<() => Promise<void>>((resolve) => {
    begin = resolve;
  });
  const unseen = scene.watch.unseen('redis', async () => await (await over)());
  return async (last) => {
    begin(last);
    await unseen;
  };
}

async function moveSlot(scene: Scene, slot: number, target: Redis): Promise<void> {
  const cluster = scene.stage.cluster();
  const finish = await cluster.beginMove(slot, target);
  await finish();
  await cluster.settled();
}

interface Loss {
  readonly master: Redis;
  readonly replica: Redis;
  /** Of a replica that was cut off: it hears of the others again. */
  readonly rejoin?: () => Promise<void>;
}

/** The master dies, and its replica takes over what it has; nobody looks at the sink meanwhile. Gives what brings the dead one back. */
async function lose(scene: Scene, { master, replica, rejoin }: Loss): Promise<() => Promise<void>> {
  const part = scene.stage.cluster().partOf(master);
  const server = scene.stage.server('redis-cluster');
  await scene.watch.unseen('redis', async () => {
    await server.kill(part);
    await takenOver(scene, replica);
    await rejoin?.();
  });
  return () => server.upPart(part);
}

/** Some node goes, and comes back before another one can take its place. */
async function whileAway(
  scene: Scene,
  dice: Dice,
  leave: 'pause' | 'kill',
  comeBack: 'resume' | 'upPart',
): Promise<() => Promise<void>> {
  const cluster = scene.stage.cluster();
  const server = scene.stage.server('redis-cluster');
  const part = cluster.partOf(dice.pick(cluster.clients));
  const over = unseenUntil(scene);
  await server[leave](part);
  return () =>
    over(async () => {
      await server[comeBack](part);
      await cluster.settled();
    });
}

const nodeFaults: readonly FaultKind[] = [
  {
    name: 'redis cluster: kill a master',
    weight: 3,
    holdMs: [0, 1000],
    fits: onCluster,
    carriedBy: true,
    settled: true,
    strike: async (scene, dice) => lose(scene, await aPair(scene, dice)),
  },
  {
    name: 'redis cluster: freeze a master',
    weight: 2,
    holdMs: [0, 1000],
    fits: onCluster,
    carriedBy: true,
    settled: true,
    strike: async (scene, dice) => {
      const { master, replica } = await aPair(scene, dice);
      const cluster = scene.stage.cluster();
      const server = scene.stage.server('redis-cluster');
      const part = cluster.partOf(master);
      await scene.watch.unseen('redis', async () => {
        await server.pause(part);
        await takenOver(scene, replica);
      });
      return () =>
        // until it has heard of the others it still takes itself for a master
        scene.watch.unseen('redis', async () => {
          await server.resume(part);
          await until('it is a replica', async () => !(await cluster.isMaster(master)), { timeoutMs: FAILOVER_MS });
        });
    },
  },
  {
    name: 'redis cluster: freeze a node shortly',
    weight: 1,
    holdMs: [300, 2500],
    fits: onCluster,
    settled: true,
    strike: (scene, dice) => whileAway(scene, dice, 'pause', 'resume'),
  },
  {
    name: 'redis cluster: restart a node',
    weight: 2,
    holdMs: [0, 0],
    fits: onCluster,
    settled: true,
    strike: (scene, dice) => whileAway(scene, dice, 'kill', 'upPart'),
  },
  {
    name: 'redis cluster: slots move',
    weight: 3,
    holdMs: [2000, 6000],
    fits: onCluster,
    settled: true,
    alone: true,
    strike: async (scene, dice) => {
      const cluster = scene.stage.cluster();
      let moving = true;
      const mover = (async () => {
        while (moving) {
          const masters = await cluster.masters();
          const target = dice.pick(masters);
          const source = dice.pick(masters.filter((each) => each !== target));
          for (const slot of await cluster.filledSlots(source, dice.integer(1, 3))) {
            if (moving) await moveSlot(scene, slot, target);
          }
        }
      })();
      mover.catch(() => undefined); // told by the mend
      return async () => {
        moving = false;
        await mover;
      };
    },
  },
  {
    name: 'redis cluster: a master lost with its last second',
    weight: 3,
    holdMs: [0, 1000],
    fits: onCluster,
    carriedBy: true,
    settled: true,
    strike: async (scene, dice) => {
      const { master, replica } = await aPair(scene, dice);
      const rejoin = await cutOff(replica);
      await sleep(1000);
      return lose(scene, { master, replica, rejoin });
    },
  },
  {
    // The replica was told who owns the slots, and has none of their rows.
    name: 'redis cluster: slots move to a master that is lost',
    weight: 3,
    holdMs: [0, 1000],
    fits: onCluster,
    carriedBy: true,
    settled: true,
    alone: true,
    strike: async (scene, dice) => {
      const { master, replica } = await aPair(scene, dice);
      const cluster = scene.stage.cluster();
      const source = dice.pick((await cluster.masters()).filter((each) => each !== master));
      const slots = await cluster.filledSlots(source, MOVED_SLOTS);
      const rejoin = await cutOff(replica);
      for (const slot of slots) await moveSlot(scene, slot, master);
      return lose(scene, { master, replica, rejoin });
    },
  },
];

/** Nobody takes the master's place: the nodes hear each other. Its replica goes the same way as the writers. */
const wayFaults: readonly FaultKind[] = TROUBLES.map(({ name, holdMs, of }) => ({
  name: `way to a cluster node ${name}`,
  weight: 0.7,
  holdMs,
  fits: onCluster,
  strike: async ({ stage }, dice) => {
    const masters = await until('a master answers', async () => {
      const found = await stage.cluster().masters();
      return found.length > 0 && found;
    });
    const proxy = stage.proxy(`node ${stage.cluster().partOf(dice.pick(masters))}`);
    proxy.strike(of(dice));
    return async () => proxy.mend();
  },
}));

export const CLUSTER_FAULTS: readonly FaultKind[] = [...nodeFaults, ...wayFaults];
