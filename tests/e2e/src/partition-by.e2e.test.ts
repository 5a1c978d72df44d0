/** Tables whose partition is chosen by other columns than those of their key (`partitionBy`), and sinks that name records by them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, Pipeline } from '@mysync/harness';

test('a row that moves to another value of partitionBy within its partition leaves nothing behind', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis', 'elasticsearch'],
    partitions: 1,
    keys: { t: ['region', 'id'] },
  });
  const { sql, database } = pipeline;
  await pipeline.configure({ ...pipeline.options, sourceConfig: { partitionBy: { [`${database}.t`]: ['region'] } } });
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(10), v TEXT)');
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO t VALUES (1, 'us', 'a'), (2, 'us', 'b'), (3, 'eu', 'c'), (4, 'eu', 'd')");
  await pipeline.equal(['t'], 30_000);
  await sql.query("UPDATE t SET region = 'asia'; INSERT INTO t VALUES (5, 'us', 'e')");
  await pipeline.equal(['t'], 30_000);
  await sql.query(
    "DELETE FROM t WHERE id = 1; UPDATE t SET region = 'us' WHERE id = 2; INSERT INTO t VALUES (1, 'eu', 'f')",
  );
  await pipeline.equal(['t'], 30_000);
  const exit = await mysync.stop();
  assert.equal(exit.code, 0);
  assertClean(mysync.stderr, []);
});
