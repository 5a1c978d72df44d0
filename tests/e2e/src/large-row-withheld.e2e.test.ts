/** A row that is larger than the transport takes: its key is set aside, everything else flows, and it comes back by itself once it fits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, Pipeline, runMysync, until } from '@mysync/harness';
import { dlq } from './dlq.fixture.ts';
import { limitTopic } from './topic-limit.fixture.ts';

const LIMIT = 64 * 1024;
const LARGE = 3 * LIMIT;

interface Item {
  readonly key: string;
  readonly code: string;
}

async function setAside(pipeline: Pipeline): Promise<readonly string[]> {
  return (await dlq<Item[]>(pipeline, ['list'])).map(({ key, code }) => `${key} ${code}`).sort();
}

async function untilSetAside(pipeline: Pipeline, keys: readonly string[]): Promise<void> {
  const wanted = keys.map((key) => `${key} WRITER_ROW_WITHHELD`).join();
  await until(`set aside: ${wanted}`, async () => (await setAside(pipeline)).join() === wanted);
}

async function withholding(
  transport: 'log' | 'kafka',
  sinkConfig: Readonly<Record<string, unknown>>,
): Promise<Pipeline> {
  const pipeline = await Pipeline.create({
    transport,
    sinks: ['redis'],
    partitions: 2,
    sourceConfig: { onLargeRow: 'withhold' },
    sinkConfig,
  });
  const { transportConfig: made } = pipeline;
  const limited = { ...(made[transport] as object), maxRecordBytes: LIMIT };
  await pipeline.configure({ ...pipeline.options, config: { transport: { [transport]: limited } } });
  return pipeline;
}

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: a row too large for it is withheld, others go on, and its next change that fits is applied`, async () => {
    await using pipeline = await withholding(transport, { onPoison: 'park' });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)');
    await sql.query(`INSERT INTO t VALUES (1, 'one'), (2, REPEAT('x', ${LARGE})), (3, 'three')`);
    let mysync = pipeline.start('run');
    await mysync.logged(/"msg":"reader started"/);
    // of the snapshot, and of the log; an update whose two images are too large only together; a deletion of a row that never fitted
    await sql.query(`INSERT INTO t VALUES (4, REPEAT('y', ${LARGE})), (5, 'five'), (6, REPEAT('z', ${LIMIT / 2}))`);
    await sql.query(
      `UPDATE t SET v = REPEAT('u', ${LIMIT / 2}) WHERE id = 6; UPDATE t SET v = REPEAT('w', ${LARGE}) WHERE id = 1`,
    );
    await sql.query(
      `INSERT INTO t VALUES (7, REPEAT('d', ${LARGE})); DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (8, 'behind it')`,
    );
    await untilSetAside(pipeline, ['1', '2', '4']);
    const found = await pipeline.differences('redis', ['t']);
    assert.deepEqual(found.map(({ key }) => key).sort(), ['1', '2', '4']);
    const metrics = await mysync.metrics();
    assert.match(metrics, /^mysync_reader_withheld_rows_total\{.*\} [1-9]/m);
    assert.match(mysync.stderr, /row withheld/);

    await mysync.kill();
    mysync = pipeline.start('run');
    await mysync.logged(/"msg":"started"/);
    // smaller, gone, and moved to another key
    await sql.query(
      "UPDATE t SET v = 'fits' WHERE id = 2; DELETE FROM t WHERE id = 4; UPDATE t SET id = 11, v = 'moved' WHERE id = 1",
    );
    await pipeline.equal(['t']);
    await untilSetAside(pipeline, []);
    await pipeline.stopped(mysync);
    assertClean(mysync.stderr, []);
  });
}

test('verify --repair writes withheld rows from the source and releases them; a retry says that it cannot', async () => {
  await using pipeline = await withholding('log', { onPoison: 'park' });
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)');
  await sql.query(`INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, REPEAT('x', ${LARGE}))`);
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query(`UPDATE t SET v = REPEAT('y', ${LARGE}) WHERE id = 1`);
  await untilSetAside(pipeline, ['1', '3']);

  const config = ['--config', pipeline.configFile];
  const retried = await runMysync(['dlq', 'retry', '--all', ...config]);
  assert.equal(retried.code, 1);
  assert.match(retried.stdout, /WRITER_ROW_WITHHELD.*mysync verify --repair --sink redis/);
  await untilSetAside(pipeline, ['1', '3']);
  const verify = ['verify', '--sink', 'redis', ...config];
  const looked = await runMysync(verify);
  assert.equal(looked.code, 3);
  assert.match(looked.stdout, /set aside: WRITER_ROW_WITHHELD.*mysync verify --repair --sink redis/);
  const repaired = await runMysync([...verify, '--repair']);
  assert.equal(repaired.code, 0, repaired.stdout + repaired.stderr);
  assert.deepEqual(repaired.stdout.match(/\(repaired\)/g)?.length, 2);
  await pipeline.equal(['t']);
  await untilSetAside(pipeline, []);

  // what is set aside while the sink has it already is released as well: as where a repair was killed in between
  await sql.query(
    'UPDATE t SET v = CONCAT(v, v) WHERE id = 3; UPDATE t SET v = LEFT(v, CHAR_LENGTH(v) / 2) WHERE id = 3',
  );
  await untilSetAside(pipeline, ['3']);
  await pipeline.equal(['t']);
  const again = await runMysync([...verify, '--repair']);
  assert.equal(again.code, 0, again.stdout + again.stderr);
  await untilSetAside(pipeline, []);
  await sql.query("UPDATE t SET v = 'fits' WHERE id = 1; DELETE FROM t WHERE id = 3");
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});

test('a sink key may hold the columns that choose the partition: what is left of a large row still names its record', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: 2,
    keys: { t: ['region', 'id'] },
    sinkConfig: { onPoison: 'park' },
  });
  const { sql, database } = pipeline;
  const sourceConfig = { onLargeRow: 'withhold', partitionBy: { [`${database}.t`]: ['region'] } };
  const limited = { ...(pipeline.transportConfig['log'] as object), maxRecordBytes: LIMIT };
  await pipeline.configure({ ...pipeline.options, sourceConfig, config: { transport: { log: limited } } });
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, note TEXT, region VARCHAR(10), v LONGTEXT)');
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query(
    `INSERT INTO t VALUES (1, 'a', 'us', 'x'), (2, 'b', 'us', 'x'), (3, NULL, 'us', 'x'), (4, 'd', 'no', 'x')`,
  );
  await pipeline.equal(['t'], 30_000);
  // withheld under the old name and under a new one
  await sql.query(
    `UPDATE t SET v = REPEAT('y', ${LARGE}) WHERE id < 4; UPDATE t SET region = 'eu', v = REPEAT('z', ${LARGE}) WHERE id = 4`,
  );
  await untilSetAside(pipeline, ['1,us', '2,us', '3,us', '4,eu']);
  const differing = async (): Promise<string> => {
    const found = await pipeline.differences('redis', ['t']);
    return found
      .map(({ key }) => key)
      .sort()
      .join(' ');
  };
  await until('the old rows stay', async () => (await differing()) === 'eu,4 us,1 us,2 us,3');
  // gone, moved to another region, smaller, gone again: the images before are all too large
  await sql.query(
    "DELETE FROM t WHERE id = 1; UPDATE t SET region = 'eu', v = 'moved' WHERE id = 2; UPDATE t SET v = 'fits' WHERE id = 3; DELETE FROM t WHERE id = 4",
  );
  await pipeline.equal(['t'], 30_000);
  await untilSetAside(pipeline, []);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});

test('a table that is read again leaves the old copies of withheld rows where they are', async () => {
  await using pipeline = await withholding('log', { onPoison: 'park' });
  const { sql, redis, database } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n INT, v LONGTEXT)');
  await sql.query("INSERT INTO t VALUES (1, 0, 'one'), (2, 0, 'two'), (3, 0, 'three'), (4, 0, 'four')");
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await pipeline.equal(['t']);
  await sql.query(`UPDATE t SET v = REPEAT('y', ${LARGE}) WHERE id IN (1, 2)`);
  await untilSetAside(pipeline, ['1', '2']);
  await sql.query("SET SESSION binlog_format = 'STATEMENT'");
  await sql.query('UPDATE t SET n = n + 1; DELETE FROM t WHERE id = 4');
  await sql.query("SET SESSION binlog_format = 'ROW'");
  const field = async (id: number, name: string): Promise<string> =>
    (await redis?.client('cli', ['HGET', `${database}:t:${id}`, name]))?.trim() ?? '';
  // the sweep comes last, and nothing else removes row 4
  await until('row 4 to go', async () => (await field(4, 'n')) === '');
  assert.deepEqual([await field(1, 'v'), await field(2, 'v'), await field(3, 'n')], ['one', 'two', '1']);
  await untilSetAside(pipeline, ['1', '2']);
  const repaired = await runMysync(['verify', '--repair', '--sink', 'redis', '--config', pipeline.configFile]);
  assert.equal(repaired.code, 0, repaired.stdout + repaired.stderr);
  await pipeline.equal(['t']);
  await untilSetAside(pipeline, []);
  await pipeline.stopped(mysync);
});

test('kafka: a topic that takes less while the reader runs: a storm of large rows costs a few rewinds, and only they are withheld', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    partitions: 2,
    sourceConfig: { onLargeRow: 'withhold' },
    sinkConfig: { onPoison: 'park', maxParkedKeys: 1000 },
  });
  const { sql } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)');
  const rows = Array.from({ length: 1200 }, (_, id) => `(${id}, 'small')`);
  await sql.query(`INSERT INTO t VALUES ${rows.join()}`);
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await limitTopic(pipeline, '20000');
  await sql.query("UPDATE t SET v = IF(id % 2, REPEAT('x', 30000), 'other')");
  await until('600 keys are set aside', async () => (await setAside(pipeline)).length === 600);
  await until('the others are equal', async () => {
    const found = await pipeline.differences('redis', ['t']);
    return found.every(({ key }) => Number(key) % 2 === 1);
  });
  const metrics = await mysync.metrics();
  const counted = [...metrics.matchAll(/^mysync_reader_rewinds_total\{.*\} (\d+)/gm)];
  const rewinds = counted.reduce((sum, [, count]) => sum + Number(count), 0);
  assert.ok(rewinds > 0 && rewinds < 40, `${rewinds} rewinds`);
  await sql.query("UPDATE t SET v = 'fits'");
  await pipeline.equal(['t']);
  await untilSetAside(pipeline, []);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});
