/** A change that the store can never take: its partition halts and says so everywhere; once that is mended, nothing is missing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, assertTold, type MysyncProcess, Pipeline, runMysync } from '@mysync/harness';

const PARTITIONS = 4;

/** What a partition that halted tells: the log, `mysync status`, /readyz and the metrics. */
async function halted(
  pipeline: Pipeline,
  mysync: MysyncProcess,
  where: readonly RegExp[],
  remedy: RegExp,
): Promise<void> {
  await mysync.logged(/"msg":"partition halted"/);
  const told = assertTold(mysync.stderr, { code: 'WRITER_CHANGE_REFUSED', where, remedy });
  const partition = Number(/partition (\d+)/.exec(told.where)?.[1]);
  const offset = Number(/offset (\d+)/.exec(told.where)?.[1]);
  assert.ok(partition >= 0 && offset >= 0, told.where);

  const port = mysync.telemetryPort;
  const args = ['--config', pipeline.configFile, `--telemetry.port=${port}`];
  const { code, stdout } = await runMysync(['status', '--json', ...args]);
  assert.equal(code, 0);
  const { partitions } = JSON.parse(stdout).sinks[0] as { partitions: { state: string; detail: string }[] };
  assert.equal(partitions.length, PARTITIONS);
  const states = partitions.map(({ state }) => state);
  assert.deepEqual(
    states,
    states.map((_, index) => (index === partition ? 'halted' : 'running')),
  );
  assert.match(partitions[partition]?.detail ?? '', /^WRITER_CHANGE_REFUSED: /);
  const text = (await runMysync(['status', ...args])).stdout;
  assert.match(text, new RegExp(`^ +${partition} +halted .*WRITER_CHANGE_REFUSED`, 'm'));

  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  const body = await ready.text();
  assert.equal(ready.status, 503);
  for (const place of where) assert.match(body, place);
  assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200, 'a restart would not mend it');
  const metrics = await mysync.metrics();
  assert.match(metrics, new RegExp(`^mysync_writer_halted\\{.*partition="${partition}".*\\} 1$`, 'm'));
}

test('another type stands at the key in Redis', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], partitions: PARTITIONS });
  const { sql, database, redis } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 50 }, (_, id) => [id, 'there before'])]);
  await redis?.client('cli', ['RPUSH', `${database}:t:77`, 'a', 'list']);
  const mysync = pipeline.start('run');
  await pipeline.stopped(await settled(pipeline, mysync, [77]));

  const second = pipeline.start('run');
  await halted(pipeline, second, [/redis/, new RegExp(`table ${database}\\.t`), /key 77\b/], /Move it away/);
  // later changes of the halted partition wait, those of the others go on
  await sql.query('UPDATE t SET v = ? WHERE id < 50', ['changed later']);
  assert.equal((await redis?.client('cli', ['LRANGE', `${database}:t:77`, '0', '-1']))?.trim(), 'a\nlist');
  await pipeline.stopped(second);
  assertClean(second.stderr, []);

  await redis?.client('cli', ['DEL', `${database}:t:77`]);
  const third = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.stopped(third);
});

/** Adds the rows once the first ones are there; resolves when the partition of those rows halted. */
async function settled(pipeline: Pipeline, mysync: MysyncProcess, ids: readonly number[]): Promise<MysyncProcess> {
  await pipeline.sql.query('SELECT 1');
  await mysync.logged(/"msg":"reader started"/);
  await pipeline.sql.query('INSERT INTO t VALUES ?', [ids.map((id) => [id, 'refused'])]);
  await mysync.logged(/"msg":"partition halted"/);
  return mysync;
}

test('Elasticsearch refuses a value for its mapping', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['elasticsearch'],
    partitions: PARTITIONS,
    // no index template, so that an index of somebody else's making stays as it is
    sinkConfig: { templates: false },
  });
  const { sql, database } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  await sql.query('INSERT INTO t VALUES ?', [Array.from({ length: 50 }, (_, id) => [id, `${id}`])]);
  const index = `${pipeline.elasticsearchUrl}/${database}-t`;
  const made = await fetch(index, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mappings: { properties: { id: { type: 'integer' }, v: { type: 'long' } } } }),
  });
  assert.equal(made.status, 200, await made.text());
  const mysync = pipeline.start('run');
  await settled(pipeline, mysync, [77].map(Number));
  await halted(
    pipeline,
    mysync,
    [/elasticsearch/, new RegExp(`table ${database}\\.t`), /key 77\b/, /\bv\b/],
    /mapping|index/,
  );
  await sql.query("UPDATE t SET v = '4711' WHERE id < 50");
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);

  // the index is mended as Elasticsearch wants it: the value is ignored where it does not fit, the document is there
  const mapping = await fetch(`${index}/_mapping`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ properties: { v: { type: 'long', ignore_malformed: true } } }),
  });
  assert.equal(mapping.status, 200, await mapping.text());
  const second = pipeline.start('run');
  await pipeline.equal(['t']);
  await pipeline.stopped(second);
});
