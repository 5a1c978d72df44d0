/** Faults that destroy what MySync keeps. It must halt and say what to do; then what it says is done, and that must be enough. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MysyncProcess, runMysync, textConnection } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';
import type { Dice } from './dice.ts';
import type { FaultKind } from './fault-kinds.ts';
import { Finding, untilMysync } from './finding.ts';
import { KafkaEye } from './kafka-eye.ts';
import type { Scene } from './scene.ts';
import { FORGOTTEN_MS, hasRedisServer, type Setting } from './setting.ts';

const TOLD_MS = 90_000;
const CHURN_MS = 40_000;
const MENDED_MS = 90_000;
/** Keys of `bulk`. */
const DOOMED = Array.from({ length: 200 }, (_, i) => 8_000_000 + i);

const onlyRedis = (setting: Setting): boolean => hasRedisServer(setting) && setting.sinks.length === 1;

/** Waits until a running process has told that code; `every`: about each partition. */
async function told(scene: Scene, codes: readonly string[], every: boolean): Promise<void> {
  const partitions = scene.setting.partitions;
  const found = new Set<number>();
  await untilMysync(
    `${codes.join(' or ')} is told`,
    () => {
      for (const { printed } of scene.actors) {
        for (const line of printed.split('\n')) {
          if (!codes.some((code) => line.includes(code))) continue;
          if (!every) return true;
          found.add(Number(/"partition":(\d+)/.exec(line)?.[1] ?? -1));
        }
      }
      return [...Array(partitions).keys()].every((partition) => found.has(partition));
    },
    { timeoutMs: TOLD_MS, everyMs: 100 },
  );
}

/** The remedy: the sink emptied, a group that begins at the log's beginning. */
async function rebuildSinks(scene: Scene): Promise<void> {
  for (const actor of scene.actors) await actor.kill();
  await scene.redisCli(['FLUSHALL']);
  await scene.newGroup();
}

/** The other remedy: the sinks go on as they are, and verify removes what is gone. Half the time the first one is killed at some moment. */
async function mendSinks(scene: Scene, dice: Dice): Promise<void> {
  const args = ['verify', '--sink', 'redis', '--repair', '--lost-deletions', '--json', '--config', scene.configFile];
  const stood = await doomedShown(scene);
  if (stood === 0) throw new Error('no row that is gone stands in the sink: there is nothing to mend');
  const isKilled = dice.chance(0.5);
  if (isKilled) {
    const first = new MysyncProcess(args);
    await sleep(dice.integer(500, 8_000));
    await first.kill();
  }
  let removed = 0;
  await untilMysync(
    'verify has mended the sink',
    async () => {
      const { code, stdout, stderr } = await runMysync(args);
      if (code !== 0 && code !== 3) throw new Finding(`mysync verify ended with ${code}: ${stderr.slice(0, 1000)}`);
      const { reports } = JSON.parse(stdout) as VerifyJson;
      for (const { tables } of reports) for (const { extra, unremoved } of tables) removed += extra - unremoved;
      // 3: a row is hot, or a connection was made anew meanwhile
      return code === 0;
    },
    { timeoutMs: MENDED_MS, everyMs: 1_000 },
  );
  // one that was killed may have removed all of them and told nobody
  if (removed === 0 && !isKilled) throw new Error(`verify removed none of ${stood} rows: the fault has tried nothing`);
}

interface VerifyJson {
  readonly reports: readonly {
    readonly tables: readonly { readonly extra: number; readonly unremoved: number }[];
  }[];
}

/** Of the rows that are gone when the writers come back, how many the sink has. */
async function doomedShown(scene: Scene): Promise<number> {
  const [eye] = scene.eyes;
  const rows = await eye?.look(DOOMED.map((id) => ({ table: 'bulk', key: String(id) })));
  return rows?.filter((n) => n !== null).length ?? 0;
}

function startWriters(scene: Scene): void {
  for (const writer of scene.writers) writer.start();
}

function startAll(scene: Scene): void {
  for (const actor of scene.actors) actor.start();
}

/** The remedy for a log that is gone: a new snapshot into a new log, and the sinks filled from there. */
async function startAgain(scene: Scene): Promise<void> {
  await rebuildSinks(scene);
  await rm(join(scene.dataFolder, 'checkpoints'), { recursive: true, force: true });
}

/** The other remedy: the sinks go on as they are. Not where the checkpoint was in the lost log, too. */
async function recoverLog(scene: Scene): Promise<void> {
  for (const actor of scene.actors) await actor.kill();
  const { code, stderr } = await runMysync(['recover', '--yes', '--config', scene.configFile]);
  if (code !== 0) throw new Finding(`mysync recover ended with ${code}: ${stderr.slice(0, 1000)}`);
  scene.watch.markersMoved('redis');
}

/** One of the remedies for a log that is gone, and what belongs to it. Nobody looks at a sink that is emptied. */
async function remedy(scene: Scene, dice: Dice, until: () => Promise<void>, then: () => Promise<void>): Promise<void> {
  if (scene.setting.checkpoint !== 'topic' && dice.chance(0.5)) {
    await until();
    await recoverLog(scene);
    await then();
    return;
  }
  await scene.watch.unseen('redis', async () => {
    await until();
    await startAgain(scene);
    await then();
  });
}

const emptied: FaultKind = {
  name: 'redis emptied',
  weight: 0.4,
  holdMs: [0, 0],
  fits: onlyRedis,
  settled: true,
  ends: true,
  strike: async (scene) => {
    return async () => {
      await scene.watch.unseen('redis', async () => {
        await scene.redisCli(['FLUSHALL']);
        await told(scene, ['WRITER_SINK_LOST'], true);
        await rebuildSinks(scene);
      });
      startAll(scene);
    };
  },
};

const logRemoved: FaultKind = {
  name: 'log removed',
  weight: 0.4,
  holdMs: [0, 0],
  fits: (setting) => setting.transport === 'log' && onlyRedis(setting),
  settled: true,
  ends: true,
  strike: async (scene, dice) => {
    // the log has changes that no sink has
    for (const writer of scene.writers) await writer.kill();
    await sleep(500);
    for (const actor of scene.actors) await actor.kill();
    await scene.watch.closeBooks();
    await scene.closeLog();
    await rm(join(scene.dataFolder, 'log'), { recursive: true });
    const refused = async (): Promise<void> => {
      for (const reader of scene.readers) {
        reader.start();
        reader.mayEnd();
        await told(scene, ['READER_TOPIC_CHANGED'], false);
      }
    };
    return async () => {
      await remedy(scene, dice, refused, async () => scene.watch.openBooks());
      startAll(scene);
    };
  },
};

/** Writers away for longer than the log keeps deletions, while it is compacted over and over. */
const tombstones: FaultKind = {
  name: 'writers away past the tombstones',
  weight: 6,
  holdMs: [0, 0],
  fits: (setting) => setting.shortRetention && !setting.oneProcess && onlyRedis(setting),
  settled: true,
  ends: true,
  strike: async (scene, dice) => {
    await withSql(scene, async (sql) => {
      // rows that the sink has, and that are gone when the writers come back
      await sql.query('REPLACE INTO bulk VALUES ?', [DOOMED.map((id) => [id, 0, 0, 'doomed'])]);
      await untilMysync('the sink has what will be deleted', async () => (await doomedShown(scene)) === DOOMED.length, {
        timeoutMs: TOLD_MS,
        everyMs: 100,
      });
      for (const writer of scene.writers) await writer.kill();
      const left = await scene.logEnds();
      await sql.query('DELETE FROM bulk WHERE id BETWEEN 8000000 AND 8999999');
      const isLogged = async (): Promise<boolean> => (await deletions(scene, left)) >= DOOMED.length;
      await untilMysync('the deletions are in the log', isLogged, { timeoutMs: TOLD_MS, everyMs: 100 });
      await churn(scene, sql, left);
    });
    return async () => {
      if (dice.chance(0.75)) {
        startWriters(scene);
        await told(scene, ['WRITER_TOMBSTONES_LOST'], false);
        await mendSinks(scene, dice);
        return;
      }
      await scene.watch.unseen('redis', async () => {
        startWriters(scene);
        await told(scene, ['WRITER_TOMBSTONES_LOST'], false);
        await rebuildSinks(scene);
      });
      startAll(scene);
    };
  },
};

/** Deletions in the log, from those offsets on and before the others. */
async function deletions(scene: Scene, from: readonly number[], to?: readonly number[]): Promise<number> {
  let found = 0;
  await (await scene.watch.log()).read(({ partition, offset, tombstone }) => {
    if (tombstone && offset >= (from[partition] ?? 0) && offset < (to?.[partition] ?? Infinity)) found += 1;
  });
  return found;
}

/** Until the log has forgotten what was deleted since the writers left: brokers compact by time, the embedded log where rows come and go. */
async function churn(scene: Scene, sql: Connection, left: readonly number[]): Promise<void> {
  const pad = 'z'.repeat(380);
  const began = performance.now();
  const end = began + CHURN_MS;
  const ends = await scene.logEnds();
  for (let round = 0, passed = false; !passed || performance.now() - began < 1.2 * FORGOTTEN_MS; round += 1) {
    if (performance.now() > end)
      throw new Finding(`the log was not compacted: ${left} then, ${await scene.logCleaned()} now`);
    if (scene.setting.transport === 'log') {
      const rows = Array.from({ length: 500 }, (_, i) => [9_000_000 + i, round, 0, pad]);
      await sql.query('REPLACE INTO bulk VALUES ?', [rows]);
      await sql.query('DELETE FROM bulk WHERE id >= 9000000');
    }
    await sleep(50);
    const cleaned = await scene.logCleaned();
    // brokers do not say how far they have come
    passed = cleaned.length === 0 || left.every((offset, partition) => (cleaned[partition] ?? 0) > offset + 100);
    if (performance.now() - began > FORGOTTEN_MS) passed &&= (await deletions(scene, left, ends)) === 0;
  }
}

async function withSql(scene: Scene, use: (sql: Connection) => Promise<void>): Promise<void> {
  const sql = await textConnection(scene.address);
  try {
    await sql.query(`USE \`${scene.database}\``);
    await use(sql);
  } finally {
    await sql.end();
  }
}

/** What a running or a starting reader says when its topic is another one. */
const OTHER_TOPIC = /KAFKA_TOPIC_REPLACED|READER_TOPIC_CHANGED/;

/** A topic that is gone, or another of the same name: the reader must end saying so, and say so again when it is started again. */
function topicGone(
  name: string,
  destroy: (scene: Scene) => Promise<void>,
  more: Pick<FaultKind, 'patient'> = {},
): FaultKind {
  return {
    ...more,
    name,
    weight: 0.6,
    holdMs: [0, 0],
    fits: (setting) => setting.transport === 'kafka' && onlyRedis(setting),
    settled: true,
    ends: true,
    strike: async (scene, dice) => {
      scene.excuse = OTHER_TOPIC;
      await scene.watch.closeBooks();
      const refused = async (): Promise<void> => {
        await destroy(scene);
        await told(scene, ['READER_TOPIC_CHANGED'], false);
        for (const reader of scene.readers) reader.mayEnd();
      };
      const done = async (): Promise<void> => {
        await scene.closeLog();
        scene.excuse = null;
        scene.watch.openBooks();
      };
      return async () => {
        await remedy(scene, dice, refused, done);
        startAll(scene);
      };
    },
  };
}

const topicRemade = topicGone('topic deleted and made anew', async (scene) => {
  const { watch, setting } = scene;
  const log = await watch.log();
  if (log instanceof KafkaEye) await log.remake(setting.partitions);
});

const kafkaWiped = topicGone(
  'the data of all brokers gone',
  async (scene) => {
    await scene.closeLog();
    await scene.stage.wipeKafka();
  },
  // brokers that do not know a topic may be those that have just started (ADR 0142)
  { patient: true },
);

export const DESTRUCTIVE_FAULTS: readonly FaultKind[] = [emptied, logRemoved, tombstones, topicRemade, kafkaWiped];
