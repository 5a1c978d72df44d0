/** An id of `mysync dlq` names a change of the log: when several sinks refused it, which one is meant must be said. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pipeline, runMysync, until } from '@mysync/harness';

test('a change that two sinks refused is shown, retried and discarded only of the sink that is named', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['redis'],
    partitions: 1,
    sinkConfig: { onPoison: 'park' },
  });
  const { sql, database, redis } = pipeline;
  const url = redis?.get('REDIS_URL');
  const rule = (key: string): object => ({
    match: [`${database}.*`],
    as: 'hash',
    key: `${key}{database}:{table}:{key}`,
  });
  const second = { kind: 'redis', url, prefix: 'second:', onPoison: 'park', tables: [rule('2:')] };
  await pipeline.configure({
    ...pipeline.options,
    config: { sinks: { second } },
    sinkConfig: { onPoison: 'park', tables: [rule('1:')] },
  });
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))');
  for (const sink of [1, 2]) await redis?.client('cli', ['RPUSH', `${sink}:${database}:t:1`, 'a', 'list']);
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await sql.query("INSERT INTO t VALUES (1, 'one')");
  const dlq = (...args: string[]): ReturnType<typeof runMysync> =>
    runMysync(['dlq', ...args, '--config', pipeline.configFile]);
  const list = async (): Promise<readonly { id: string; sink: string }[]> =>
    JSON.parse((await dlq('list', '--json')).stdout);
  const items = await until('both sinks refuse it', async () => {
    const found = await list();
    return found.length === 2 && found;
  });
  const id = items[0]?.id ?? '';
  assert.deepEqual(
    items.map((item) => `${item.sink} ${item.id}`),
    [`redis ${id}`, `second ${id}`],
  );
  for (const verb of ['show', 'retry', 'discard']) {
    const { code, stderr, stdout } = await dlq(verb, id);
    assert.equal(code, 2, `${verb}: ${stdout}${stderr}`);
    assert.match(stderr, /COMMAND_INVALID: several sinks[\s\S]*--sink with one of: redis, second/);
  }
  assert.equal((await list()).length, 2);
  const shown = await dlq('show', id, '--sink', 'second');
  assert.equal(JSON.parse(shown.stdout).sink, 'second');
  const discarded = await dlq('discard', id, '--sink', 'second');
  assert.equal(discarded.code, 0, discarded.stderr);
  assert.deepEqual(
    (await list()).map(({ sink }) => sink),
    ['redis'],
  );
  // of one sink alone it needs no name
  assert.equal((await dlq('discard', id)).code, 0);
  assert.deepEqual(await list(), []);
  await pipeline.stopped(mysync);
});
