/** What a session or an administrator of the source can do wrong: the reader stops before it, for good, and says how to go on. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { assertTold, Pipeline, runMysync, startServer, type TestServer, until } from '@mysync/harness';

const POSITION = /binlog\.\d+:\d+/;
let mariadb: TestServer;

before(async () => {
  mariadb = await startServer('mariadb');
});
after(() => mariadb?.wipe());

async function streaming(sourceConfig: Readonly<Record<string, unknown>> = {}): Promise<Pipeline> {
  const pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    servers: { mariadb },
    partitions: 2,
    sourceConfig,
  });
  await pipeline.sql.query(
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, v TEXT); INSERT INTO t VALUES (1, 1, 'keep'), (2, 2, 'keep'), (3, 3, 'keep')",
  );
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await mysync.logged(/"msg":"reading the log"/);
  return pipeline;
}

/** "Start again with a snapshot": without checkpoint, into a new topic, the sink emptied. */
async function startedAgain(pipeline: Pipeline): Promise<void> {
  rmSync(pipeline.checkpointFile);
  await pipeline.redis?.client('cli', ['FLUSHALL']);
  const sourceConfig = { ...pipeline.options.sourceConfig, topic: `${pipeline.database}-2` };
  await pipeline.configure({ ...pipeline.options, sourceConfig });
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.sql.query("UPDATE t SET v = 'again'");
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
}

for (const { name, sourceConfig, session, statement, code, remedy } of [
  {
    name: 'a row image that is not whole, where it is to halt',
    sourceConfig: { onPartialRow: 'halt' },
    session: "SET SESSION binlog_row_image = 'MINIMAL'",
    statement: 'UPDATE t SET n = n + 100',
    code: 'SOURCE_ROW_IMAGE_PARTIAL',
    remedy: /SET GLOBAL binlog_row_image = 'FULL'.*start again with a snapshot/,
  },
  {
    name: 'DML logged as a statement',
    sourceConfig: { onUnseenChange: 'stop' },
    session: "SET SESSION binlog_format = 'STATEMENT'",
    statement: 'UPDATE t SET n = n + 100',
    code: 'READER_CHANGE_UNSEEN',
    remedy: /onUnseenChange: resync.*SET GLOBAL binlog_format = 'ROW'/,
  },
]) {
  test(`${name}: nothing of it reaches the sink, and no restart goes past it`, async () => {
    await using pipeline = await streaming(sourceConfig);
    const { sql, database } = pipeline;
    const [mysync] = pipeline.processes;
    await sql.query("UPDATE t SET v = 'good' WHERE id = 3");
    const before = await copies(pipeline, (rows) => rows.includes('good'));
    const other = await pipeline.connect();
    await other.query(session);
    await other.query(statement);
    assert.deepEqual(await mysync?.ended(), { code: 1, signal: null });
    const expected = { code, where: [new RegExp(`${database}\\.t\\b`), POSITION], remedy };
    const first = assertTold(mysync?.stderr ?? '', expected);
    const again = await runMysync(['run', '--config', pipeline.configFile]);
    assert.equal(again.code, 1);
    assert.equal(assertTold(again.stderr, expected).where, first.where, 'it stands where it stood');
    assert.equal(await copies(pipeline, () => true), before);
    await startedAgain(pipeline);
  });
}

test('statements on tables that are not captured go by', async () => {
  await using pipeline = await streaming();
  const [mysync] = pipeline.processes;
  const other = await pipeline.connect();
  await other.query('CREATE DATABASE IF NOT EXISTS elsewhere; CREATE TABLE elsewhere.t (id INT PRIMARY KEY, n INT)');
  await other.query("SET SESSION binlog_format = 'STATEMENT', SESSION binlog_row_image = 'MINIMAL'");
  await other.query('USE elsewhere; INSERT INTO t VALUES (1, 1); UPDATE t SET n = 2');
  await pipeline.sql.query("UPDATE t SET v = 'good'");
  await pipeline.equal(['t']);
  if (mysync !== undefined) await pipeline.stopped(mysync);
});

test('the log of the source was purged beyond our position', async () => {
  await using pipeline = await streaming();
  const { sql } = pipeline;
  const [mysync] = pipeline.processes;
  if (mysync !== undefined) await pipeline.stopped(mysync);
  await sql.query("UPDATE t SET v = 'unseen'");
  await sql.query('FLUSH BINARY LOGS; FLUSH BINARY LOGS');
  // the server keeps a file as long as it believes that somebody reads it
  await until('the old files are gone', async () => {
    const [files] = await sql.query('SHOW BINARY LOGS');
    const names = (files as { Log_name: string }[]).map((file) => file.Log_name);
    await sql.query('PURGE BINARY LOGS TO ?', [names.at(-1)]);
    return names.length === 1;
  });
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const { code, stderr } = await runMysync(['reader', '--config', pipeline.configFile]);
    assert.equal(code, 1, stderr);
    assertTold(stderr, {
      code: 'SOURCE_BINLOG_PURGED',
      where: [/binlog\.\d+/, POSITION],
      remedy: /start again with a snapshot.*binlog_expire_logs_seconds/,
    });
  }
  await startedAgain(pipeline);
});

/** All copies as text, once they look so. */
async function copies(pipeline: Pipeline, wanted: (rows: string) => boolean): Promise<string> {
  return await until('the copies look as wanted', async () => {
    const rows: string[] = [];
    for (const id of [1, 2, 3]) {
      rows.push((await pipeline.redis?.client('cli', ['HGETALL', `${pipeline.database}:t:${id}`])) ?? '');
    }
    const text = rows.join('\n');
    return wanted(text) && text;
  });
}
