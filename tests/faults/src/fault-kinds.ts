/** Every kind of fault: which seeds it fits, how it strikes, how it is mended. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Actor } from './actor.ts';
import { CLUSTER_FAULTS } from './cluster-faults.ts';
import { DESTRUCTIVE_FAULTS } from './destructive-faults.ts';
import type { Dice } from './dice.ts';
import { endedReplaced } from './ending.ts';
import { Finding, untilMysync } from './finding.ts';
import { fillUp } from './full-disk.ts';
import { KAFKA_FAULTS } from './kafka-faults.ts';
import type { Scene } from './scene.ts';
import { hasRedisServer, type Setting, storeOf } from './setting.ts';
import { TROUBLES } from './troubles.ts';

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
  /** Not while existing rows are still being read. */
  readonly settled?: true;
  /** It needs the checkpoint to be a file. */
  readonly needsFile?: true;
  /** No other strikes while it lasts, and it not while another does. */
  readonly alone?: true;
  /** Nothing can follow it. */
  readonly ends?: true;
  /** MySync waits for half a minute before it says anything: with others, a seed would take too long. */
  readonly patient?: true;
  /** Processes of MySync begin anew by it. */
  readonly endsProcesses?: true;
}

const STARTED_MS = 60_000;
/** Longer than a lease, a session, and what a writer waits for an answer. */
const LATE_MS = 14_500;
/** Below what the log keeps free, and enough for everything else. */
const FREE_FOR_CHECKPOINTS = 16 * 2 ** 20;

/** Rows of the transaction that a reader is killed in, and how long it is waited for that it is read so far. */
const BURST_ROWS = 20_000;
const BURST_ROWS_SLOW_SINK = 3000;
const BURST_SEEN_MS = 15_000;
const BURST_STEP_MS = 4;

const always = (_: Setting): boolean => true;
const apart = (setting: Setting): boolean => !setting.oneProcess;

function killed(name: string, weight: number, among: (scene: Scene) => readonly Actor[], fits = always): FaultKind {
  return {
    name,
    weight,
    holdMs: [0, 1500],
    fits,
    endsProcesses: true,
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

function burstRows({ sinks }: Setting): number {
  return sinks.includes('elasticsearch') ? BURST_ROWS_SLOW_SINK : BURST_ROWS;
}

/**
 * A large transaction of which the reader has published some rows, and not all: it is let go on for moments only, and is frozen when it is there. Where
 * the database is down just now, there is none.
 */
async function frozenInBurst(scene: Scene, reader: Actor, dice: Dice): Promise<{ readonly committed: Promise<void> }> {
  const rows = burstRows(scene.setting);
  const ends = async (): Promise<number> => (await scene.logEnds()).reduce((sum, end) => sum + end, 0);
  const before = await ends();
  const enough = before + dice.integer(rows / 10, rows * 0.7);
  const committed = scene.load.burst(rows).catch(() => undefined);
  const end = performance.now() + BURST_SEEN_MS;
  for (;;) {
    reader.signal('SIGSTOP');
    if ((await ends()) >= enough || performance.now() > end) return { committed };
    reader.signal('SIGCONT');
    await sleep(BURST_STEP_MS);
  }
}

const processFaults: readonly FaultKind[] = [
  killed('kill reader', 4, ({ readers }) => readers),
  killed('kill writer', 4, ({ writers }) => writers, apart),
  {
    // what was published of it is not published again, the rest is
    name: 'reader killed inside a transaction',
    endsProcesses: true,
    weight: 2,
    holdMs: [0, 1000],
    fits: always,
    settled: true,
    strike: async (scene, dice) => {
      const reader = dice.pick(scene.readers);
      const { committed } = await frozenInBurst(scene, reader, dice);
      await reader.kill();
      await committed;
      return async () => reader.start();
    },
  },
  frozen('freeze reader', 2, [500, 4000], ({ readers }) => readers),
  frozen('freeze writer', 2, [500, 4000], ({ writers }) => writers, apart),
  // past the lease and the session: the others take over, and it wakes as a stranger
  {
    name: 'freeze writer past its lease',
    weight: 1,
    holdMs: [12_000, 13_000],
    fits: (setting) => apart(setting) && setting.writers > 1,
    strike: async ({ stage, setting, writers, load }, dice) => {
      const writer = dice.pick(writers);
      // what it sends now arrives only when the others have taken over: they give up waiting for their own, on connections that they open anew
      const ways = setting.sinks.flatMap((sink) => stage.waysTo(storeOf(setting, sink)));
      for (const way of ways) way.strike({ kind: 'delay', ms: LATE_MS });
      await sleep(400);
      writer.signal('SIGSTOP');
      for (const way of ways) way.mend();
      const frozen = performance.now();
      return async () => {
        // the others rest: whatever comes late, and whatever the stranger does when it wakes, stays to be seen
        load.paused = true;
        await sleep(Math.max(0, frozen + LATE_MS - performance.now()) + 1000);
        writer.signal('SIGCONT');
        await sleep(1500);
        load.paused = false;
      };
    },
  },
  {
    name: 'reader replaced while frozen',
    endsProcesses: true,
    weight: 2,
    holdMs: [500, 3000],
    fits: apart,
    settled: true,
    needsFile: true,
    strike: async (scene, dice) => {
      const [old] = scene.readers;
      if (old === undefined) throw new Error('there is no reader');
      await old.logged(/"msg":"reader started"/, STARTED_MS);
      // sometimes with its hands full
      const burst = dice.chance(0.5) ? await frozenInBurst(scene, old, dice) : undefined;
      old.signal('SIGSTOP');
      old.retire();
      // what an operator must not do, and does: the lock of a living process is removed
      await rm(join(scene.dataFolder, 'checkpoints', `${scene.database}.json.lock`), { force: true });
      const successor = scene.actor('reader', null);
      scene.readers.splice(0, 1, successor);
      successor.start();
      return async () => {
        // it has taken over by then, unless the frozen one holds the log's write lock
        await successor.logged(/"msg":"telemetry listens"/, STARTED_MS);
        await successor.logged(/"msg":"reader started"/, STARTED_MS / 3).catch(() => undefined);
        old.signal('SIGCONT');
        // it must notice by itself that it was replaced
        await untilMysync('the replaced reader ends', () => !old.running, { timeoutMs: 40_000 });
        await old.settled();
        if (!endedReplaced(old.printed)) {
          throw new Finding(`the replaced reader ended, but not since it was told so: ${old.printed.slice(-1500)}`);
        }
        await burst?.committed;
      };
    },
  },
  {
    name: 'restart in order',
    endsProcesses: true,
    weight: 2,
    holdMs: [0, 500],
    fits: always,
    strike: async (scene, dice) => {
      const actor = dice.pick(scene.actors);
      await scene.stopInOrder(actor);
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
          else await scene.stopInOrder(guest);
          scene.writers.splice(scene.writers.indexOf(guest), 1);
        }
      };
    },
  },
];

/** There is one server of that kind, behind a proxy. */
function reaches(part: 'source' | 'redis' | 'elasticsearch'): (setting: Setting) => boolean {
  if (part === 'source') return always;
  return part === 'redis' ? hasRedisServer : ({ sinks }) => sinks.includes(part);
}

const serverFaults: readonly FaultKind[] = (['source', 'redis', 'elasticsearch'] as const).flatMap((part) => {
  const nameOf = (setting: Setting) => (part === 'source' ? setting.source : part);
  const fits = reaches(part);
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

function linkFaults(part: 'source' | 'redis' | 'elasticsearch', weight: number): readonly FaultKind[] {
  return TROUBLES.map(({ name, holdMs, of }) => ({
    name: `way to ${part} ${name}`,
    weight,
    holdMs,
    fits: reaches(part),
    strike: async ({ stage, setting }, dice) => {
      const proxy = stage.proxy(part === 'source' ? setting.source : part);
      proxy.strike(of(dice));
      return async () => proxy.mend();
    },
  }));
}

/** A state of Redis that it had a while ago comes back: from a backup, or by a failover to a replica that was behind. */
function restored(name: string, holdMs: readonly [number, number]): FaultKind {
  return {
    name,
    weight: 1,
    holdMs,
    fits: hasRedisServer,
    settled: true,
    strike: async ({ stage, watch, folder }) => {
      const backup = join(folder, 'redis-backup');
      await stage.backUpRedis(backup);
      return () => watch.unseen('redis', () => stage.restoreRedis(backup));
    },
  };
}

const stateFaults: readonly FaultKind[] = [
  restored('redis loses its last second', [1000, 1000]),
  restored('redis restored from a backup', [2000, 5000]),
  {
    name: 'elasticsearch restored from a backup',
    weight: 1,
    holdMs: [2000, 5000],
    fits: ({ sinks }) => sinks.includes('elasticsearch'),
    settled: true,
    alone: true,
    strike: async ({ stage, watch, database }, dice) => {
      const backup = stage.elasticBackup();
      await backup.takeDocuments(`${database}-*`);
      await sleep(dice.integer(0, 1500));
      await backup.takeMarkers();
      return () => watch.unseen('elasticsearch', () => backup.restore());
    },
  },
  {
    name: 'full disk',
    weight: 4,
    holdMs: [500, 4000],
    fits: ({ ownDisk }) => ownDisk,
    strike: async (scene) => {
      // whoever starts now is told so, and ends
      scene.excuse = /_DISK_FULL/;
      const giveBack = await fillUp(scene.dataFolder, 0);
      return async () => {
        await giveBack();
        // one that began to start before has a moment more
        setTimeout(() => {
          scene.excuse = null;
        }, 3000);
      };
    },
  },
  {
    // the log takes nothing more, checkpoints are still written
    name: 'reader killed over a full log',
    endsProcesses: true,
    weight: 3,
    holdMs: [500, 1500],
    fits: ({ ownDisk, transport }) => ownDisk && transport === 'log',
    strike: async (scene) => {
      const giveBack = await fillUp(scene.dataFolder, FREE_FOR_CHECKPOINTS);
      return async () => {
        for (const reader of scene.readers) await reader.kill();
        await giveBack();
        for (const reader of scene.readers) reader.start();
      };
    },
  },
  {
    name: 'redis filled again over its data',
    endsProcesses: true,
    weight: 0.7,
    holdMs: [0, 0],
    fits: (setting) => hasRedisServer(setting) && setting.sinks.length === 1,
    settled: true,
    strike: async (scene) => {
      for (const actor of scene.actors) await actor.kill();
      const keys = (await scene.redisCli(['KEYS', 'mysync:m:*'])).split('\n').filter((key) => key !== '');
      if (keys.length > 0) await scene.redisCli(['DEL', ...keys]);
      scene.watch.markersRemoved('redis');
      await scene.newGroup();
      return async () => {
        for (const actor of scene.actors) actor.start();
      };
    },
  },
  {
    name: 'clock jumps',
    weight: 4,
    holdMs: [1500, 4000],
    fits: ({ ownClock }) => ownClock,
    strike: async (scene, dice) => {
      await scene.setClock(dice.pick([-7200, -600, -30, -3, 3, 30, 600, 7200]));
      return async () => {
        if (dice.chance(0.5)) await scene.setClock(0);
      };
    },
  },
];

export const FAULT_KINDS: readonly FaultKind[] = [
  ...processFaults,
  ...serverFaults,
  ...stateFaults,
  ...DESTRUCTIVE_FAULTS,
  ...CLUSTER_FAULTS,
  ...linkFaults('source', 0.35),
  ...linkFaults('redis', 0.35),
  ...linkFaults('elasticsearch', 0.35),
  ...KAFKA_FAULTS,
];
