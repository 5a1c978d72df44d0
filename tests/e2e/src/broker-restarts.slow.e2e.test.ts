/** Three brokers: one frozen while the reader is killed (D2), each restarted in turn under load (G3), and leaders killed beneath one counter (G2). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pipeline, type PipelineOptions, startServer, type TestServer, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import { PacedLoad } from './paced-load.fixture.ts';

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

async function pipelineOf(config: PipelineOptions['config'] = {}): Promise<Pipeline> {
  const options = { transport: 'kafka', sinks: ['redis'], servers: { kafka }, partitions: 6, config } as const;
  const pipeline = await Pipeline.create(options);
  await pipeline.sql.query(
    'CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(80)); CREATE TABLE counter (id INT PRIMARY KEY, n INT)',
  );
  await pipeline.sql.query('INSERT INTO counter VALUES ?', [Array.from({ length: 50 }, (_, id) => [id, 0])]);
  return pipeline;
}

/** Asks brokers of the cluster, by a client of its own. */
async function asked<T>(nodes: readonly string[], question: (admin: Admin) => Promise<T>): Promise<T> {
  const all = kafka.get('KAFKA_BROKERS').split(',');
  const brokers = nodes.map((node) => all[Number(node.slice(1)) - 1] ?? '');
  const retry = { retries: 0 };
  const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING, requestTimeout: 1_000, retry }).admin({ retry });
  await admin.connect();
  try {
    return await question(admin);
  } finally {
    await admin.disconnect();
  }
}

/** By partition. */
async function leadersOf(topic: string, nodes: readonly string[] = NODES): Promise<readonly string[]> {
  const { topics } = await asked(nodes, (admin) => admin.fetchTopicMetadata({ topics: [topic] }));
  const partitions = [...(topics[0]?.partitions ?? [])].sort((a, b) => a.partitionId - b.partitionId);
  return partitions.map(({ leader }) => `n${leader}`);
}

/** By partition: the offset behind what is stored by all replicas in sync. */
async function endsOf(topic: string, nodes: readonly string[] = NODES): Promise<readonly number[]> {
  const partitions = await asked(nodes, (admin) => admin.fetchTopicOffsets(topic));
  return [...partitions].sort((a, b) => a.partition - b.partition).map(({ high }) => Number(high));
}

test('D2: one statement of 1000 rows over all partitions, a leader frozen, the reader killed when all others have stored theirs', async () => {
  // no heartbeat makes a partition grow
  await using pipeline = await pipelineOf({ reader: { heartbeatMs: 3_600_000 } });
  const { sql, database } = pipeline;
  const writer = pipeline.start('writer --sink redis');
  const reader = pipeline.start('reader');
  await pipeline.equal(['counter']);
  await reader.logged(/"msg":"reading the log"/);
  const isFrozen = (await leadersOf(database)).map((leader) => leader === 'n1');
  assert.ok(isFrozen.includes(true) && isFrozen.includes(false), `${isFrozen}`);
  const before = await endsOf(database);
  /** By partition. */
  const grown = async (): Promise<readonly boolean[]> =>
    (await endsOf(database, ['n2', 'n3'])).map((end, partition) => end > (before[partition] ?? 0));
  await kafka.pause('n1');
  try {
    await sql.query('INSERT INTO bulk VALUES ?', [Array.from({ length: 1000 }, (_, id) => [id, `row ${id}`])]);
    await sql.query('UPDATE counter SET n = n + 1');
    // Once the frozen broker is shut out, its partitions have other leaders, which the reader still has to find.
    const others = async (): Promise<boolean> =>
      (await grown()).every((isGrown, partition) => isGrown || isFrozen[partition]);
    await until('all partitions of the other brokers to grow', others, { everyMs: 5 });
    await reader.kill();
    assert.deepEqual(
      await grown(),
      isFrozen.map((frozen) => !frozen),
      'what the frozen broker led was not stored',
    );
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
    // a row committed after the restart arrives in 30 s, whatever the brokers were up to
    await other.query('CREATE TABLE seen_?? (id INT PRIMARY KEY)'.replace('??', String(round)));
    await other.query('INSERT INTO seen_?? VALUES (1)'.replace('??', String(round)));
    await pipeline.equal([`seen_${round}`], 30_000);
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
  const redis = new Redis(pipeline.redis?.get('REDIS_URL') ?? '');
  const copy = async (): Promise<number> => Number(await redis.hget(`${database}:counter:1`, 'n'));
  const load = new PacedLoad(RISES, KILLS);
  const write = async (): Promise<void> => {
    while (!load.isOver) {
      await load.turn();
      await sql.query('UPDATE counter SET n = ?', [load.done + 1]);
      load.done += 1;
    }
  };
  const seen: number[] = [];
  let over = false;
  const watch = async (): Promise<void> => {
    while (!over) {
      const value = await copy();
      if (value !== seen.at(-1)) seen.push(value);
    }
  };
  /** The copy is below what had been committed before it was looked at. */
  const isUnderWay = async (): Promise<boolean> => {
    const committed = load.done;
    return (await copy()) < committed;
  };
  const watching = watch();
  const writing = write();
  try {
    let lastKillAt = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      await load.reached(kill + 0.25);
      await until('the copy to rise again after the last kill', async () => (await copy()) > lastKillAt);
      const leader = await until('a leader', async () => {
        const [node] = await leadersOf(database);
        return NODES.find((each) => each === node);
      });
      await until('work under way', isUnderWay, { everyMs: 1 });
      await kafka.kill(leader);
      lastKillAt = load.done;
      assert.ok(await isUnderWay(), 'the leader was killed beneath work under way');
      // the rest of the part is committed while a broker is missing
      await load.reached(kill + 1);
      await kafka.upPart(leader);
      load.next();
    }
    await writing;
    await pipeline.equal(['counter']);
  } finally {
    load.end();
    over = true;
    await Promise.allSettled([writing, watching]);
    redis.disconnect();
  }
  assert.deepEqual(
    seen.filter((value, at) => value < (seen[at - 1] ?? 0)),
    [],
  );
  await pipeline.stopped(mysync);
});
