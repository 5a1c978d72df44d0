/** Rows that MySQL's engine changes by foreign keys without logging them (innodb_native_foreign_keys, as every MySQL before 9.6): the copies equal the tables again. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pipeline, type PipelineOptions, runMysync, startServer, type TestServer, until } from '@mysync/harness';

const FAST = { reader: { checkpointMs: 200, heartbeatMs: 500 } };
let mysql: TestServer;
before(async () => {
  mysql = await startServer('mysql', { args: ['--innodb-native-foreign-keys=ON'] });
});
after(() => mysql?.wipe());

async function pipelineOf(more: Partial<PipelineOptions> = {}): Promise<Pipeline> {
  const pipeline = await Pipeline.create({
    source: 'mysql',
    transport: 'log',
    sinks: ['redis'],
    servers: { mysql },
    config: FAST,
    sourceConfig: { heartbeatMs: 500 },
    ...more,
  });
  await pipeline.sql.query(`
    CREATE TABLE parent (id INT PRIMARY KEY, n INT);
    CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE orphan (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE);
    CREATE TABLE grandchild (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE CASCADE);
    INSERT INTO parent SELECT 0, 0;
    INSERT INTO parent WITH RECURSIVE s AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM s WHERE i < 400) SELECT i, i FROM s;
    INSERT INTO child SELECT id, id FROM parent;
    INSERT INTO orphan SELECT id, id FROM parent;
    INSERT INTO grandchild SELECT id, id FROM parent`);
  return pipeline;
}

const TABLES = ['parent', 'child', 'orphan', 'grandchild'];

test('children that are deleted, emptied and renumbered, also through tables that are not captured', {
  timeout: 300_000,
}, async () => {
  await using pipeline = await pipelineOf();
  const { sql, database } = pipeline;
  await sql.query(`
    CREATE DATABASE ${database}_far;
    CREATE TABLE ${database}_far.root (id INT PRIMARY KEY);
    CREATE TABLE ${database}_far.middle (id INT PRIMARY KEY, r INT, FOREIGN KEY (r) REFERENCES ${database}_far.root (id) ON DELETE CASCADE);
    CREATE TABLE leaf (id INT PRIMARY KEY, m INT, FOREIGN KEY (m) REFERENCES ${database}_far.middle (id) ON DELETE SET NULL);
    CREATE TABLE late (id INT PRIMARY KEY, p INT);
    INSERT INTO ${database}_far.root VALUES (1), (2);
    INSERT INTO ${database}_far.middle VALUES (1, 1), (2, 2);
    INSERT INTO leaf VALUES (1, 1), (2, 2);
    INSERT INTO late VALUES (7, 7), (8, 8)`);
  const tables = [...TABLES, 'leaf', 'late'];
  const mysync = pipeline.start('run');
  try {
    await pipeline.equal(tables);
    await mysync.logged(/"msg":"reading the log"/);
    await sql.query('DELETE FROM parent WHERE id = 1');
    await pipeline.equal(tables);
    await sql.query('UPDATE parent SET id = 2000 WHERE id = 2; UPDATE parent SET n = n + 1');
    await pipeline.equal(tables);
    await sql.query(`DELETE FROM ${database}_far.root WHERE id = 1`);
    await pipeline.equal(tables);
    // rows of the child in the transaction of the cascade, before and after it
    await sql.query(
      'BEGIN; INSERT INTO child VALUES (1000, 3), (1001, 2000); DELETE FROM parent WHERE id = 3; INSERT INTO child VALUES (1002, 2000); COMMIT',
    );
    await pipeline.equal(tables);
    await sql.query(
      'ALTER TABLE late ADD FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE; DELETE FROM parent WHERE id = 7',
    );
    await pipeline.equal(tables);
    // the reader comes to it when the key is long gone
    await mysync.kill();
    await sql.query('DELETE FROM parent WHERE id = 8; ALTER TABLE late DROP FOREIGN KEY late_ibfk_1');
    const again = pipeline.start('run');
    await pipeline.equal(tables);
    await pipeline.stopped(again);
    const { stdout } = await runMysync(['check', '--config', pipeline.configFile]);
    assert.match(stdout, /SOURCE_CASCADE_SUSPECTED[^\n]*rows of \S*\.child with those of \S*\.parent/);
  } finally {
    await sql.query(`DROP TABLE leaf; DROP DATABASE ${database}_far`);
  }
});

test('a burst of causes has the tables read again a few times', { timeout: 300_000 }, async () => {
  await using pipeline = await pipelineOf();
  const { sql } = pipeline;
  const mysync = pipeline.start('run');
  await pipeline.equal(TABLES);
  await mysync.logged(/"msg":"reading the log"/);
  for (let id = 1; id <= 400; id += 1) {
    await sql.query(
      id % 2 === 0 ? 'DELETE FROM parent WHERE id = ?' : 'UPDATE parent SET id = id + 10000 WHERE id = ?',
      [id],
    );
  }
  await pipeline.equal(TABLES);
  const readings = mysync.stderr.match(/"table":"[^"]*\.child"[^\n]*"msg":"table read again"/g)?.length ?? 0;
  assert.ok(readings >= 1 && readings < 200, `read ${readings} times`);
  await pipeline.stopped(mysync);
});

test('onUnseenChange: warn names the tables as incomplete, stop ends the reader', { timeout: 300_000 }, async () => {
  await using pipeline = await pipelineOf();
  const { sql, database } = pipeline;
  const policy = { onUnseenChange: 'warn', onUnseenChangeOf: { [`${database}.orphan`]: 'resync' } };
  await pipeline.configure({ ...pipeline.options, sourceConfig: { heartbeatMs: 500, ...policy } });
  const warned = pipeline.start('run');
  await pipeline.equal(TABLES);
  await warned.logged(/"msg":"reading the log"/);
  await sql.query('DELETE FROM parent WHERE id = 1');
  await pipeline.equal(['parent', 'orphan']);
  await warned.logged(/rows of the table may have changed: the log does not show how/);
  assert.deepEqual(
    (await pipeline.differences('redis', ['child', 'grandchild'])).length,
    2,
    'one row of each is still there',
  );
  await pipeline.stopped(warned);
  const { stdout } = await runMysync(['status', '--config', pipeline.configFile]);
  assert.match(stdout, new RegExp(`complete tables +${database}\\.orphan, ${database}\\.parent\\n`));

  await pipeline.configure({ ...pipeline.options, sourceConfig: { heartbeatMs: 500, onUnseenChange: 'stop' } });
  const stopping = pipeline.start('run');
  await stopping.logged(/"msg":"reading the log"/);
  await sql.query('UPDATE parent SET n = 5');
  await pipeline.equal(['parent']);
  await sql.query('DELETE FROM parent WHERE id = 2');
  await until('it has ended', () => !stopping.running);
  assert.match(stopping.stderr, /READER_CHANGE_UNSEEN[^\n]*by a foreign key, with those of a parent table/);
});
