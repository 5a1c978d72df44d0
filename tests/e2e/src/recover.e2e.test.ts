/** The log itself is lost: the sinks that are there go on, from the place in the source that the one furthest behind needs. */
import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertClean, assertTold, Pipeline, runMysync, startServer, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import { Kafka, logLevel } from 'kafkajs';

const COUNTERS = 20;

interface Report {
  readonly done: boolean;
  readonly position: { readonly file: string; readonly offset: number };
  readonly checkpoint: { readonly file: string; readonly offset: number };
  readonly lagging: readonly { readonly sink: string; readonly row?: string }[];
}

async function recover(pipeline: Pipeline, args: readonly string[] = [], expected = 0): Promise<Report> {
  const all = ['recover', '--json', '--config', pipeline.configFile, ...args];
  const { code, stdout, stderr } = await runMysync(all);
  assert.equal(code, expected, stdout + stderr);
  assertClean(stderr, []);
  return JSON.parse(stdout === '' ? 'null' : stdout);
}

/** Reads the counters again and again until stopped; gives the times that one was seen lower than before. */
async function watch(url: string, prefix: string, stopped: () => boolean): Promise<string[]> {
  const redis = new Redis(url);
  const highest = new Array<number>(COUNTERS).fill(0);
  const backward: string[] = [];
  while (!stopped()) {
    const pipeline = redis.pipeline();
    for (let id = 0; id < COUNTERS; id += 1) pipeline.hget(`${prefix}${id}`, 'v');
    for (const [id, [, text]] of ((await pipeline.exec()) ?? []).entries()) {
      const value = Number(text ?? highest[id]);
      if (value < (highest[id] ?? 0)) backward.push(`counter ${id}: ${highest[id]} then ${value}`);
      highest[id] = value;
    }
  }
  redis.disconnect();
  return backward;
}

async function change({ sql }: Pipeline, base: number, times: number): Promise<void> {
  for (let round = 0; round < times; round += 1) {
    await sql.query('BEGIN');
    await sql.query('UPDATE counter SET v = v + 1');
    await sql.query('INSERT INTO t VALUES (?, ?), (?, ?)', [base + 2 * round, 'even', base + 2 * round + 1, 'odd']);
    await sql.query('COMMIT');
    await sql.query('DELETE FROM t WHERE id = ?', [base + 2 * round - 3]);
    await sql.query('UPDATE t SET v = CONCAT(v, ?) WHERE id = ?', ['.', base + 2 * round]);
  }
}

for (const transport of ['log', 'kafka'] as const) {
  test(`G8: ${transport}: lost with its data; one sink lags, the other one has everything`, async () => {
    await using kafka = transport === 'kafka' ? await startServer('kafka') : null;
    await using pipeline = await Pipeline.create({
      transport,
      sinks: ['redis', 'elasticsearch'],
      partitions: 3,
      servers: kafka === null ? {} : { kafka },
      config: { reader: { checkpointMs: 200, heartbeatMs: 300 } },
      sinkConfig: { onPoison: 'park' },
      // Over the embedded log nobody fills it again.
      sourceConfig: transport === 'log' ? { onUnseenChange: 'warn' } : {},
    });
    const { sql, database, redis } = pipeline;
    await sql.query(
      'CREATE TABLE counter (id INT PRIMARY KEY, v INT); CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(90))',
    );
    await sql.query('INSERT INTO counter VALUES ?', [Array.from({ length: COUNTERS }, (_, id) => [id, 0])]);
    let reader = pipeline.start('reader');
    let ahead = pipeline.start('writer --sink redis');
    let behind = pipeline.start('writer --sink elasticsearch');
    // Every partition has applied more than its rows of the snapshot.
    await pipeline.equal(['counter']);
    await change(pipeline, 0, 20);
    await pipeline.equal(['counter', 't']);
    await pipeline.stopped(behind);
    // A row of the sink that has everything else is set aside.
    await redis?.client('cli', ['RPUSH', `${database}:t:777`, 'a', 'list']);
    await change(pipeline, 1_000, 30);
    await sql.query("INSERT INTO t VALUES (777, 'set aside')");
    await change(pipeline, 2_000, 10);
    await until('redis has everything but the row', async () => {
      const found = [
        ...(await pipeline.differences('redis', ['t'])),
        ...(await pipeline.differences('redis', ['counter'])),
      ];
      return found.length > 0 && found.every(({ key }) => key === '777');
    });
    // The checkpoint is past all of it.
    await pipeline.stopped(reader);
    await pipeline.stopped(ahead);

    await recover(pipeline, [], 1);
    if (kafka === null) {
      await rm(`${pipeline.folder}/log`, { recursive: true });
    } else {
      const brokers = kafka.get('KAFKA_BROKERS').split(',');
      const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin();
      await admin.connect();
      await admin.deleteTopics({ topics: [database] });
      await until('the topic is gone', async () => !(await admin.listTopics()).includes(database));
      await admin.disconnect();
    }
    await redis?.client('cli', ['DEL', `${database}:t:777`]);
    await change(pipeline, 3_000, 10);
    const refused = pipeline.start('reader');
    await refused.ended();
    assertTold(refused.stderr, { code: 'READER_TOPIC_CHANGED', where: [/\bid\b/], remedy: /recover/ });

    const plan = await recover(pipeline);
    assert.equal(plan.done, false);
    const lagging = new Set(plan.lagging.map(({ sink, row }) => `${sink}${row === undefined ? '' : ' row'}`));
    assert.deepEqual([...lagging].sort(), ['elasticsearch', 'redis row']);
    assert.ok(plan.position.offset < plan.checkpoint.offset || plan.position.file < plan.checkpoint.file);

    let done = false;
    const watching = watch(redis?.get('REDIS_URL') ?? '', `${database}:counter:`, () => done);
    assert.deepEqual((await recover(pipeline, ['--yes'])).position, plan.position);
    await recover(pipeline, ['--yes'], 1);
    reader = pipeline.start('reader');
    ahead = pipeline.start('writer --sink redis');
    behind = pipeline.start('writer --sink elasticsearch');
    await change(pipeline, 4_000, 10);
    await pipeline.equal(['counter', 't']);
    done = true;
    assert.deepEqual(await watching, []);

    // A sink that is filled from this log alone.
    const config = JSON.parse(await readFile(pipeline.configFile, 'utf8'));
    const url = new URL(config.sinks.redis.url);
    url.pathname = '/1';
    config.sinks.fresh = { ...config.sinks.redis, url: String(url) };
    await writeFile(pipeline.configFile, JSON.stringify(config));
    if (transport === 'kafka') await reader.logged(/"table":"[^"]*\.(t|counter)".*read again[\s\S]*read again/);
    const fresh = pipeline.start('writer --sink fresh');
    if (transport === 'log') {
      await fresh.logged(/"msg":"partition halted"/);
      assertTold(fresh.stderr, { code: 'WRITER_LOG_INCOMPLETE', where: [/sink fresh/], remedy: /snapshot/ });
    } else {
      const copy = new Redis(String(url));
      const [rows] = await sql.query('SELECT COUNT(*) AS n FROM t');
      const expected = Number((rows as { n: string }[])[0]?.n);
      await until('the fresh sink is whole', async () => (await copy.keys(`${database}:t:*`)).length === expected);
      copy.disconnect();
    }
    for (const process of [reader, ahead, behind, fresh]) await pipeline.stopped(process);
  });
}

test('before the first start there is nothing to recover; a checkpoint that is gone is something else', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'] });
  const { sql, folder, configFile } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)');
  const told = async () => {
    const { code, stderr } = await runMysync(['recover', '--config', configFile]);
    assert.equal(code, 1);
    return stderr;
  };
  assertTold(await told(), { code: 'RECOVER_NOT_NEEDED', where: [/was not read yet/], remedy: /Start the reader/ });
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  await rm(join(folder, 'checkpoints'), { recursive: true });
  assertTold(await told(), { code: 'RECOVER_IMPOSSIBLE', where: [/no checkpoint/], remedy: /start-again/ });
  await rm(join(folder, 'log'), { recursive: true });
  assertTold(await told(), { code: 'RECOVER_IMPOSSIBLE', where: [/no checkpoint/], remedy: /start-again/ });
});
