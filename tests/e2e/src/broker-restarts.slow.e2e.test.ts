/** Three brokers: one frozen while the reader is killed (D2), each restarted in turn under load (G3), and leaders killed beneath one counter (G2). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pipeline, startServer, type TestServer, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';

const SLOW = process.env['MYSYNC_SLOW'] === '1';
/** Of the leader of the one partition. */
const KILLS = SLOW ? 20 : 3;
const RISES = SLOW ? 100_000 : 20_000;

const NODES = ['n1', 'n2', 'n3'] as const;
let kafka: TestServer;

before(async () => {
  kafka = await startServer('kafka', { env: { NODES: '3' } });
});
after(() => kafka?.wipe());

async function pipelineOf(): Promise<Pipeline> {
  const pipeline = await Pipeline.create({ transport: 'kafka', sinks: ['redis'], servers: { kafka }, partitions: 6 });
  await pipeline.sql.query(
    'CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(80)); CREATE TABLE counter (id INT PRIMARY KEY, n INT)',
  );
  await pipeline.sql.query('INSERT INTO counter VALUES ?', [Array.from({ length: 50 }, (_, id) => [id, 0])]);
  return pipeline;
}

test('D2: one statement of 1000 rows over all partitions, a leader frozen, the reader killed', async () => {
  await using pipeline = await pipelineOf();
  const { sql } = pipeline;
  const writer = pipeline.start('writer --sink redis');
  const reader = pipeline.start('reader');
  await pipeline.equal(['counter']);
  await reader.logged(/"msg":"reading the log"/);
  await kafka.pause('n1');
  try {
    await sql.query('INSERT INTO bulk VALUES ?', [Array.from({ length: 1000 }, (_, id) => [id, `row ${id}`])]);
    await sql.query('UPDATE counter SET n = n + 1');
    await reader.kill();
  } finally {
    await kafka.resume('n1');
  }
  const again = pipeline.start('reader');
  await pipeline.equal(['bulk', 'counter']);
  await pipeline.stopped(again);
  await pipeline.stopped(writer);
});

test('G3: a rolling restart of the three brokers under load, two with MYSYNC_SLOW=1', async () => {
  await using pipeline = await pipelineOf();
  const { sql } = pipeline;
  const mysync = pipeline.start('run');
  await pipeline.equal(['counter']);
  let id = 0;
  let done = false;
  const load = async (): Promise<void> => {
    while (!done) {
      await sql.query('INSERT INTO bulk VALUES ?', [Array.from({ length: 20 }, () => [id++, `row ${id}`])]);
      await sql.query('UPDATE counter SET n = n + 1; DELETE FROM bulk WHERE id < ? AND id % 3 = 0', [id - 100]);
    }
  };
  const loading = load();
  const other = await pipeline.connect();
  for (const [round, node] of [...NODES, ...(SLOW ? NODES : [])].entries()) {
    await kafka.kill(node);
    await kafka.upPart(node);
    // a row committed after the restart arrives, whatever the brokers were up to
    await other.query('CREATE TABLE seen_?? (id INT PRIMARY KEY)'.replace('??', String(round)));
    await other.query('INSERT INTO seen_?? VALUES (1)'.replace('??', String(round)));
    await pipeline.equal([`seen_${round}`], 60_000);
  }
  done = true;
  await loading;
  await pipeline.equal(['bulk', 'counter']);
  await pipeline.stopped(mysync);
});

test(`G2: the leader is killed ${KILLS} times while one counter rises to ${RISES}: the copy never falls, and ends there`, async () => {
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    servers: { kafka },
    partitions: 1,
  });
  const { sql, database } = pipeline;
  await sql.query('CREATE TABLE counter (id INT PRIMARY KEY, n INT); INSERT INTO counter VALUES (1, 0)');
  const mysync = pipeline.start('run');
  await pipeline.equal(['counter']);
  const brokers = kafka.get('KAFKA_BROKERS').split(',');
  const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin({ retry: { retries: 20 } });
  await admin.connect();
  const redis = new Redis(pipeline.redis?.get('REDIS_URL') ?? '');
  const seen: number[] = [];
  let n = 0;
  const load = async (): Promise<void> => {
    while (n < RISES) await sql.query('UPDATE counter SET n = ?', [++n]);
  };
  const watch = async (): Promise<void> => {
    while (seen.at(-1) !== RISES) {
      const value = Number(await redis.hget(`${database}:counter:1`, 'n'));
      if (value !== seen.at(-1)) seen.push(value);
    }
  };
  try {
    const loading = load();
    const watching = watch();
    for (let kill = 0; kill < KILLS; kill += 1) {
      await until('the next part of the load', () => n >= (kill * RISES) / KILLS, { everyMs: 5, timeoutMs: 240_000 });
      const leader = await until('a leader', async () => {
        const { topics } = await admin.fetchTopicMetadata({ topics: [database] });
        const id = topics[0]?.partitions[0]?.leader ?? -1;
        return id > 0 && id;
      });
      const node = NODES[leader - 1];
      assert.ok(node, `leader ${leader}`);
      await kafka.kill(node);
      await kafka.upPart(node);
    }
    await loading;
    await pipeline.equal(['counter']);
    await watching;
    assert.deepEqual(
      seen.filter((value, at) => value < (seen[at - 1] ?? 0)),
      [],
    );
  } finally {
    n = RISES;
    redis.disconnect();
    await admin.disconnect();
  }
  await pipeline.stopped(mysync);
});
