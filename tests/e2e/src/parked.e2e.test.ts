/** Rows that a sink can never take are set aside or put away; all others go on, and what is released is the newest state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, Pipeline, runMysync, until } from '@mysync/harness';
import { dlq } from './dlq.fixture.ts';

interface Item {
  readonly id: string;
  readonly kind: string;
  readonly table: string;
  readonly key: string;
  readonly code: string;
  readonly reason: string;
  readonly waiting: number;
  readonly result?: string;
}

interface Act {
  readonly act: string;
  readonly phase: string;
  readonly by: string;
  readonly items: readonly { readonly id: string; readonly result?: string }[];
}

/** Waits until these keys are listed, and no others. */
async function listed(pipeline: Pipeline, keys: readonly string[]): Promise<readonly Item[]> {
  return await until(`listed: ${keys.join(', ')}`, async () => {
    const items = await dlq<Item[]>(pipeline, ['list']);
    return (
      items
        .map(({ key }) => key)
        .sort()
        .join() === [...keys].sort().join() && items
    );
  });
}

test('H9: Redis: a list stands at a key; the row waits there, its partition goes on, and its newest state is released', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: 1,
    sinkConfig: { onPoison: 'park' },
  });
  const { sql, database, redis } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  for (const id of [1, 2, 3, 4]) await redis?.client('cli', ['RPUSH', `${database}:t:${id}`, 'a', 'list']);
  let mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (9, 'nine')");
  const [first] = await listed(pipeline, ['1', '2', '3', '4']);
  assert.equal(first?.code, 'SINK_WRONG_TYPE');
  assert.match(first.reason, /list/);
  assert.match(mysync.stderr, /key set aside/);

  // Update, delete and re-insert, a key change, and a kill in between.
  await sql.query(
    "UPDATE t SET v = 'newer' WHERE id = 1; DELETE FROM t WHERE id = 2; UPDATE t SET id = 33 WHERE id = 3",
  );
  await mysync.kill();
  mysync = pipeline.start('run');
  await mysync.logged(/"msg":"started"/);
  await sql.query("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 'newest'), (10, 'ten')");
  const others = async (): Promise<boolean> => {
    const keys = (await redis?.client('cli', ['EXISTS', `${database}:t:10`, `${database}:t:33`]))?.trim();
    return keys === '2';
  };
  await until('the rows of other keys', others);
  const port = mysync.telemetryPort;
  const metrics = await mysync.metrics();
  assert.match(metrics, /^mysync_writer_parked_keys\{.*\} 4$/m);
  // of the process, and of the sink where no process answers
  for (const [more, from] of [
    [[`--telemetry.port=${port}`], /^Process \d+/],
    [[], /^No process answers here/],
  ] as const) {
    const status = await runMysync(['status', '--config', pipeline.configFile, ...more]);
    assert.equal(status.code, 0, status.stderr);
    assert.match(status.stdout, from);
    assert.ok(
      status.stdout.includes(`4 keys set aside (${database}.t 4): mysync dlq list --sink redis`),
      status.stdout,
    );
  }

  const refused = await dlq<Item[]>(pipeline, ['retry', first.id], 1);
  assert.deepEqual(
    refused.map(({ id, result }) => [id, result]),
    [[first.id, 'refused']],
  );
  for (const id of [1, 2, 3, 4]) await redis?.client('cli', ['DEL', `${database}:t:${id}`]);
  const results = await dlq<Item[]>(pipeline, ['retry', '--table', `${database}.*`]);
  assert.deepEqual(
    results.map(({ result }) => result),
    ['applied', 'applied', 'applied', 'applied'],
  );
  await sql.query("UPDATE t SET v = 'after all' WHERE id IN (4, 9); INSERT INTO t VALUES (2, 'back')");
  await pipeline.equal(['t']);
  assert.deepEqual(await dlq<Item[]>(pipeline, ['list']), []);
  const acts = await dlq<Act[]>(pipeline, ['list', '--acts']);
  assert.deepEqual(
    acts.map(({ act, phase, items }) => [act, phase, items.length]),
    [
      ['retry', 'asked', 1],
      ['retry', 'done', 1],
      ['retry', 'asked', 4],
      ['retry', 'done', 4],
    ],
  );
  assert.match(acts[0]?.by ?? '', /.@./);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});

test('Redis: a value longer than the server takes waits; the rows behind it flow', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: 1,
    sinkConfig: { onPoison: 'park' },
  });
  const { sql, redis } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)');
  await redis?.client('cli', ['CONFIG', 'SET', 'proto-max-bulk-len', `${2 ** 20}`]);
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO t VALUES (1, 'a'), (2, REPEAT('é', 600000)), (3, REPEAT('x', 1048576)), (4, 'b')");
  const [item] = await listed(pipeline, ['2']);
  assert.match(item?.reason ?? '', /1200000 bytes is longer than Redis takes \(1048576\)/);
  await sql.query("INSERT INTO t VALUES (5, 'behind it')");
  await until('the row behind it', async () => {
    const found = await pipeline.differences('redis', ['t']);
    return found.every(({ key }) => key === '2');
  });
  await redis?.client('cli', ['CONFIG', 'SET', 'proto-max-bulk-len', `${2 ** 29}`]);
  await dlq(pipeline, ['retry', '--all']);
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});

test('Redis: a truncate over keys that are set aside leaves nothing to release', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: 2,
    sinkConfig: { onPoison: 'park' },
  });
  const { sql, database, redis } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')");
  await pipeline.equal(['t']);
  // Somebody else's list takes the place of a row that is there.
  await redis?.client('cli', ['DEL', `${database}:t:1`]);
  await redis?.client('cli', ['RPUSH', `${database}:t:1`, 'a', 'list']);
  await sql.query("UPDATE t SET v = 'new' WHERE id IN (1, 2)");
  await listed(pipeline, ['1']);
  await sql.query('TRUNCATE t');
  await sql.query("INSERT INTO t VALUES (4, 'four'), (5, 'five'), (6, 'six')");
  await listed(pipeline, []);
  await redis?.client('cli', ['DEL', `${database}:t:1`]);
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
});

test('Elasticsearch: values that do not fit the mapping wait; once it is mended, the newest state comes', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['elasticsearch'],
    partitions: 2,
    sinkConfig: { templates: false, onPoison: 'park' },
  });
  const { sql, database } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(20), d VARCHAR(20))');
  const index = `${pipeline.elasticsearchUrl}/${database}-t`;
  const mapping = (extra: object): object => ({
    properties: { id: { type: 'integer' }, n: { type: 'long', ...extra }, d: { type: 'date', ...extra } },
  });
  const put = async (path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${index}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  };
  await put('', { mappings: mapping({}) });
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  const good = Array.from({ length: 300 }, (_, id) => [id, `${id}`, '2024-05-06']);
  await sql.query('INSERT INTO t VALUES ?', [good]);
  await sql.query("UPDATE t SET n = 'abc' WHERE id IN (7, 8); UPDATE t SET d = 'no date' WHERE id = 9");
  const items = await listed(pipeline, ['7', '8', '9']);
  assert.deepEqual([...new Set(items.map(({ code }) => code))], ['SINK_VALUE_REFUSED']);
  assert.match(items.find(({ key }) => key === '7')?.reason ?? '', /document_parsing_exception/);
  await sql.query(
    "UPDATE t SET n = '4711' WHERE id = 7; DELETE FROM t WHERE id = 8; UPDATE t SET n = '1' WHERE id > 100",
  );
  // partitions are listed one after the other: a key may stand anywhere
  const seventh = (list: readonly Item[]): Item | undefined => list.find(({ key }) => key === '7');
  await until('the newer change waits', async () => seventh(await listed(pipeline, ['7', '8', '9']))?.waiting === 1);
  const id = seventh(items)?.id ?? '';
  const shown = await dlq<Item & { message: { after?: { n?: string } } }>(pipeline, ['show', id]);
  assert.equal(shown.message.after?.n, '4711', JSON.stringify(shown));
  await put('/_mapping', mapping({ ignore_malformed: true }));
  const results = await dlq<Item[]>(pipeline, ['retry', '--all']);
  assert.deepEqual(
    results.map(({ result }) => result),
    ['applied', 'applied', 'applied'],
  );
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  assertClean(mysync.stderr, []);
});

test('Elasticsearch: dates that a rule refuses wait; a rule for one table does not change the others', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['elasticsearch'], partitions: 1 });
  const { sql, database } = pipeline;
  const index = '{database}-{table}';
  const tables = [
    { match: [`${database}.d`], index, zeroDates: 'refuse', onPoison: 'park' },
    { match: [`${database}.*`], index },
  ];
  await pipeline.configure({ ...pipeline.options, sinkConfig: { tables } });
  await sql.query("SET SESSION sql_mode = ''");
  await sql.query('CREATE TABLE d (id INT PRIMARY KEY, v DATE); CREATE TABLE t (id INT PRIMARY KEY, v INT)');
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO d VALUES (1, '0000-00-00'), (2, '2024-02-00'), (3, '2024-02-29')");
  await sql.query('INSERT INTO t VALUES (1, 1)');
  const items = await listed(pipeline, ['1', '2']);
  assert.match(items[0]?.reason ?? '', /is no day of the calendar/);
  await pipeline.equal(['t']);
  await sql.query("UPDATE d SET v = '2024-03-01' WHERE id = 1; DELETE FROM d WHERE id = 2");
  await until('the later changes wait', async () =>
    (await dlq<Item[]>(pipeline, ['list'])).every(({ waiting }) => waiting === 1),
  );
  await dlq(pipeline, ['retry', '--all']);
  const rows = await until('both', async () => {
    const answer = await fetch(`${pipeline.elasticsearchUrl}/${database}-d/_search?sort=id`);
    const body = (await answer.json()) as { hits: { hits: { _source: { id: number; v: string } }[] } };
    const found = body.hits.hits.map(({ _source: { id, v } }) => `${id} ${v}`);
    return found.length === 2 && found;
  });
  assert.deepEqual(rows, ['1 2024-03-01', '3 2024-02-29']);
  await pipeline.stopped(mysync);
});

test('Elasticsearch: a table with too many fields waits row by row, others go on', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['elasticsearch'],
    partitions: 1,
    sinkConfig: { onPoison: 'park' },
  });
  const { sql, database } = pipeline;
  const columns = Array.from({ length: 600 }, (_, at) => `c${at} TINYTEXT`).join(', ');
  await sql.query('SET SESSION innodb_strict_mode = OFF');
  await sql.query(`CREATE TABLE wide (id INT PRIMARY KEY, ${columns}); CREATE TABLE t (id INT PRIMARY KEY, v INT)`);
  let mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO wide (id, c1) VALUES (1, 'a'), (2, 'b'); INSERT INTO t VALUES (1, 1), (2, 2)");
  const items = await listed(pipeline, ['1', '2']);
  assert.deepEqual([...new Set(items.map(({ code }) => code))], ['ES_TOO_MANY_FIELDS']);
  await sql.query("UPDATE wide SET c1 = 'newest' WHERE id = 1; UPDATE t SET v = 3 WHERE id = 1");
  await pipeline.equal(['t']);
  await pipeline.stopped(mysync);
  const tables = [
    { match: [`${database}.*`], index: '{database}-{table}', settings: { 'index.mapping.total_fields.limit': 3_000 } },
  ];
  await pipeline.configure({ ...pipeline.options, sinkConfig: { onPoison: 'park', tables } });
  mysync = pipeline.start('run');
  await mysync.logged(/"msg":"started"/);
  await dlq(pipeline, ['retry', '--all']);
  await pipeline.equal(['t', 'wide']);
  await pipeline.stopped(mysync);
});

for (const transport of ['log', 'kafka'] as const) {
  test(`dead letters over ${transport}: the bad change goes to its topic, later ones are applied; a retry applies no old state`, async () => {
    await using pipeline = await Pipeline.create({
      transport,
      sinks: ['redis'],
      partitions: 2,
      sinkConfig: { onPoison: 'dead-letter' },
    });
    const { sql, database, redis } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
    for (const id of [1, 2, 3]) await redis?.client('cli', ['RPUSH', `${database}:t:${id}`, 'a', 'list']);
    let mysync = pipeline.start('run');
    await mysync.logged(/"msg":"reader started"/);
    await sql.query("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')");
    const items = await listed(pipeline, ['1', '2', '3']);
    assert.deepEqual([...new Set(items.map(({ kind }) => kind))], ['dead-letter']);
    const status = async (): Promise<string> => (await runMysync(['status', '--config', pipeline.configFile])).stdout;
    assert.ok((await status()).includes(`  3 dead letters (${database}.t 3): mysync dlq list --sink redis`));
    await mysync.kill();
    for (const id of [1, 2, 3]) await redis?.client('cli', ['DEL', `${database}:t:${id}`]);
    mysync = pipeline.start('run');
    await mysync.logged(/"msg":"started"/);
    await sql.query("UPDATE t SET v = 'later' WHERE id = 1; DELETE FROM t WHERE id = 2");
    await until('the later change is applied', async () => {
      const value = await redis?.client('cli', ['HGET', `${database}:t:1`, 'v']);
      return value?.trim() === 'later';
    });
    await sql.query("INSERT INTO t VALUES (5, 'five')");
    await until('the deletion has passed', async () => {
      const value = await redis?.client('cli', ['EXISTS', `${database}:t:5`]);
      return value?.trim() === '1';
    });
    const shown = await dlq<{ message: { after: { v: string } } }>(pipeline, ['show', items[0]?.id ?? '']);
    assert.ok(['one', 'two', 'three'].includes(shown.message.after.v));
    const discarded = await dlq<Item[]>(pipeline, ['discard', items.find(({ key }) => key === '2')?.id ?? '']);
    assert.equal(discarded[0]?.result, 'discarded');
    const results = await dlq<Item[]>(pipeline, ['retry', '--all']);
    assert.deepEqual(
      results.map(({ result }) => result),
      ['applied', 'applied'],
    );
    await pipeline.equal(['t']);
    assert.deepEqual(await dlq<Item[]>(pipeline, ['list']), []);
    assert.doesNotMatch(await status(), /dead letter|set aside/);
    await pipeline.stopped(mysync);
    assertClean(mysync.stderr, []);
    await redis?.kill();
    const away = await runMysync(['status', '--config', pipeline.configFile]);
    assert.equal(away.code, 1);
    assert.match(away.stdout, /^sink redis: unknown\nSINK_UNREACHABLE/m);
    assert.match(away.stdout, /^ +1 +not here/m);
  });
}
