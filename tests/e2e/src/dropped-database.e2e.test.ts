/**
 * Tables are dropped while nobody reads their log. With their database: the catalogue no longer says what was in it, the log names the database only.
 * All of them: there is nothing to capture for now, and the log has still to be read.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Pipeline, runMysync, sharedServer, type TestServer, until } from '@mysync/harness';

let mariadb: TestServer;

before(async () => {
  mariadb = await sharedServer('mariadb');
});

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: sinks lose the rows of its tables, those that are made again have the new ones only`, {
    timeout: 300_000,
  }, async () => {
    await using pipeline = await Pipeline.create({ transport, sinks: ['redis'], servers: { mariadb }, partitions: 2 });
    const { sql, database } = pipeline;
    await sql.query('CREATE TABLE old (id INT PRIMARY KEY, v INT); INSERT INTO old VALUES (1, 1), (2, 2)');
    const first = pipeline.start('run');
    await pipeline.equal(['old']);
    // known by its statement, not by the catalogue at the start
    await sql.query('CREATE TABLE young (id INT PRIMARY KEY, v INT); INSERT INTO young VALUES (1, 1), (2, 2)');
    await pipeline.equal(['old', 'young']);
    await pipeline.stopped(first);

    await sql.query(`INSERT INTO old VALUES (3, 3); DROP DATABASE ${database}; CREATE DATABASE ${database}`);
    await sql.query(`USE ${database}`);
    // a life that has seen the catalogue, and dies before it has seen the statement
    const second = pipeline.start('run');
    await second.logged(/"msg":"reader started"/);
    await second.kill();

    const third = pipeline.start('run');
    for (const table of ['old', 'young']) {
      await sql.query(`CREATE TABLE ${table} (id INT PRIMARY KEY, v INT); INSERT INTO ${table} VALUES (9, 9)`);
    }
    await pipeline.equal(['old', 'young']);
    await pipeline.stopped(third);
    assert.deepEqual(await pipeline.differences('redis', ['old', 'young']), []);
  });
}

test('every captured table is dropped: the log is read on, with a warning; without a checkpoint nothing starts', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], servers: { mariadb } });
  const { sql, database, redis } = pipeline;
  const check = async () => {
    const { code, stdout } = await runMysync(['check', '--json', '--config', pipeline.configFile]);
    const { findings } = JSON.parse(stdout) as { findings: { code: string; level: string }[] };
    return { code, level: findings.find((finding) => finding.code === 'SOURCE_TABLES_NONE')?.level };
  };
  assert.deepEqual(await check(), { code: 3, level: 'error' });
  const refused = pipeline.start('run');
  assert.equal((await refused.ended()).code, 1);
  assert.match(refused.stderr, /^SOURCE_TABLES_NONE: /m);

  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 2)');
  const first = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.snapshotDone();
  await pipeline.stopped(first);
  await sql.query('INSERT INTO t VALUES (3, 3); DROP TABLE t');
  assert.deepEqual(await check(), { code: 0, level: 'warning' });

  const second = pipeline.start('run');
  await second.logged(/no captured table is there/);
  const rows = async (): Promise<string> =>
    (await redis?.client('cli', ['--scan', '--pattern', `${database}:t:*`])) ?? '';
  await until('the rows of the dropped table are gone', async () => (await rows()).trim() === '');
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (2, 9)');
  await pipeline.equal(['t']);
  await pipeline.stopped(second);
});
