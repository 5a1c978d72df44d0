/** `mysync verify --repair` where not everything can be repaired: what is refused or set aside is told, the rest is mended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, Pipeline, runMysync, until } from '@mysync/harness';
import { dlq } from './dlq.fixture.ts';

interface Found {
  readonly kind: string;
  readonly target: string;
  readonly repaired: boolean;
  readonly hindrance: { readonly kind: string; readonly code: string; readonly reason: string } | null;
}

async function verify(
  pipeline: Pipeline,
  sink: string,
  ...more: readonly string[]
): Promise<{ code: number | null; stdout: string }> {
  const args = ['verify', '--sink', sink, '--config', pipeline.configFile, ...more];
  const { code, stdout, stderr } = await runMysync(args);
  assert.notEqual(stdout, '', stderr);
  return { code, stdout };
}

function differences(stdout: string): readonly string[] {
  const [report] = JSON.parse(stdout).reports;
  return (report.tables[0].differences as readonly Found[])
    .map(
      ({ kind, target, repaired, hindrance }) =>
        `${target} ${kind} ${repaired ? 'repaired' : `${hindrance?.kind} ${hindrance?.code}`}`,
    )
    .sort();
}

async function dlqIds(pipeline: Pipeline): Promise<readonly string[]> {
  return (await dlq<readonly { id: string }[]>(pipeline, ['list'])).map(({ id }) => id);
}

test('Redis: keys of a wrong type and a row that is set aside are told, all others are repaired', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: 2,
    sinkConfig: { onPoison: 'park' },
    config: { reader: { checkpointMs: 200 } },
  });
  const { sql, database } = pipeline;
  const redis = async (...args: string[]): Promise<string> => (await pipeline.redis?.client('cli', args))?.trim() ?? '';
  const key = (id: number): string => `${database}:t:${id}`;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  await sql.query("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (5, 'five')");
  const mysync = pipeline.start('run');
  await pipeline.equal(['t']);
  // the row's changes are set aside behind a list, which is then taken away
  await redis('DEL', key(2));
  await redis('RPUSH', key(2), 'a', 'list');
  await sql.query("UPDATE t SET v = 'newer' WHERE id = 2");
  const [id = ''] = await until('the key is set aside', async () => {
    const ids = await dlqIds(pipeline);
    return ids.length === 1 && ids;
  });
  await redis('DEL', key(2));
  // wrong types at the key of a row, at the key of a record that is too much, and beside a row
  await redis('DEL', key(1));
  await redis('RPUSH', key(1), 'a', 'list');
  for (const extra of [98, 99]) await redis('COPY', `mysync:v:{${key(4)}}`, `mysync:v:{${key(extra)}}`);
  await redis('RPUSH', key(98), 'a', 'list');
  await redis('COPY', key(4), key(99));
  await redis('HSET', key(3), 'v', 'spoilt');
  await redis('DEL', key(5));
  const refused = 'refused SINK_WRONG_TYPE';
  const seen = await verify(pipeline, 'redis', '--json');
  assert.equal(seen.code, 3);
  assert.equal(differences(seen.stdout).length, 6);
  const mended = await verify(pipeline, 'redis', '--json', '--repair');
  assert.equal(mended.code, 3);
  assert.deepEqual(differences(mended.stdout), [
    `${key(1)} different ${refused}`,
    `${key(2)} missing parked SINK_WRONG_TYPE`,
    `${key(3)} different repaired`,
    `${key(5)} missing repaired`,
    `${key(98)} extra ${refused}`,
    `${key(99)} extra repaired`,
  ]);
  assert.equal(await redis('HGET', key(3), 'v'), 'three');
  assert.equal(await redis('LRANGE', key(1), '0', '0'), 'a');
  const told = await verify(pipeline, 'redis', '--repair');
  assert.equal(told.code, 3);
  assert.match(
    told.stdout,
    /t:1: different: the key holds a list\n {4}not repaired: SINK_WRONG_TYPE: .*the key holds (no hash|a list)/,
  );
  assert.ok(told.stdout.includes(`mysync dlq retry ${id} --sink redis`), told.stdout);

  await redis('DEL', key(1), key(98));
  const { code, stderr } = await runMysync(['dlq', 'retry', id, '--sink', 'redis', '--config', pipeline.configFile]);
  assert.equal(code, 0, stderr);
  assert.equal((await verify(pipeline, 'redis', '--repair')).code, 0);
  assert.equal((await verify(pipeline, 'redis')).code, 0);
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});

test('Elasticsearch: documents that it refuses are told, all others are repaired', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['elasticsearch'],
    partitions: 1,
    sinkConfig: { templates: false, onPoison: 'dead-letter' },
    config: { reader: { checkpointMs: 200 } },
  });
  const { sql, database } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(20))');
  const index = `${pipeline.elasticsearchUrl}/${database}-t`;
  const created = await fetch(index, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ mappings: { properties: { id: { type: 'integer' }, n: { type: 'long' } } } }),
  });
  assert.equal(created.status, 200, await created.text());
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO t VALUES (1, '1'), (2, 'no number'), (3, '3')");
  await until('the change is put away', async () => (await dlqIds(pipeline)).length === 1);
  await sql.query("INSERT INTO t VALUES (4, '4')");
  await until('the row behind it', async () => (await fetch(`${index}/_doc/4`)).status === 200);
  // by its digits: a version is beyond what a double holds exactly
  const [, version] = /"_version":(\d+)/.exec(await (await fetch(`${index}/_doc/3`)).text()) ?? [];
  const gone = await fetch(`${index}/_doc/3?version=${version}&version_type=external_gte`, { method: 'DELETE' });
  assert.equal(gone.status, 200, await gone.text());
  const mended = await verify(pipeline, 'elasticsearch', '--json', '--repair');
  assert.equal(mended.code, 3);
  assert.deepEqual(differences(mended.stdout), ['2 missing refused SINK_VALUE_REFUSED', '3 missing repaired']);
  await sql.query("UPDATE t SET n = '2' WHERE id = 2");
  assert.equal((await verify(pipeline, 'elasticsearch')).code, 0);
  await pipeline.stopped(mysync);
});

for (const [onPoison, hindrance] of [
  ['dead-letter', 'refused'],
  ['park', 'parked'],
] as const) {
  test(`Elasticsearch, ${onPoison}: a row whose id it cannot take is missing and ${hindrance}, and no end`, async () => {
    await using pipeline = await Pipeline.create({
      transport: 'log',
      sinks: ['elasticsearch'],
      partitions: 1,
      config: { reader: { checkpointMs: 200 } },
    });
    const { sql, database } = pipeline;
    const tables = [{ match: [`${database}.*`], index: '{database}-{table}', longIds: 'refuse' }];
    await pipeline.configure({ ...pipeline.options, sinkConfig: { onPoison, tables } });
    await sql.query('CREATE TABLE t (id VARCHAR(700) PRIMARY KEY, n INT) CHARSET latin1');
    const mysync = pipeline.start('run');
    await mysync.logged(/"msg":"reader started"/);
    await sql.query("INSERT INTO t VALUES ('a', 1), (REPEAT('x', 600), 2), ('z', 3)");
    await until('the change is put away', async () => (await dlqIds(pipeline)).length === 1);
    const { code, stdout } = await verify(pipeline, 'elasticsearch', '--json', '--repair');
    assert.equal(code, 3);
    assert.deepEqual(differences(stdout), [`${database}.t ${'x'.repeat(600)} missing ${hindrance} SINK_VALUE_REFUSED`]);
    const [table] = JSON.parse(stdout).reports[0].tables;
    assert.deepEqual([table.rows, table.equal, table.missing, table.repaired], [3, 2, 1, 0]);
    await pipeline.stopped(mysync);
  });
}
