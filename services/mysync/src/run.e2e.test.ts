/** Everything in one process against real servers: a row's way from MariaDB to Redis, starts, stops, and what the verbs say of it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MysyncProcess, randomName, runMysync, startServer, type TestServer, until } from '@mysync/harness';

const folder = mkdtempSync(join(tmpdir(), 'mysync-run-'));
const database = randomName('shop');
let mariadb: TestServer;
let redis: TestServer;
let config = '';

before(async () => {
  mariadb = await startServer('mariadb');
  redis = await startServer('redis');
  await sql(`CREATE DATABASE ${database}`);
  await sql(`CREATE TABLE ${database}.orders (id BIGINT PRIMARY KEY, note VARCHAR(50))`);
  await sql(`INSERT INTO ${database}.orders VALUES (1, 'there before')`);
  config = join(folder, 'mysync.yaml');
  const content = {
    sources: {
      shop: {
        hosts: `${mariadb.get('MYSQL_HOST')}:${mariadb.get('MYSQL_PORT')}`,
        user: mariadb.get('MYSQL_USER'),
        password: { env: 'SHOP_PASSWORD' },
        tables: `${database}.*`,
      },
    },
    transport: { partitions: 2, log: { path: join(folder, 'log') } },
    checkpoint: { path: join(folder, 'checkpoints') },
    sinks: { cache: { kind: 'redis', url: redis.get('REDIS_URL'), tables: { match: `${database}.*`, as: 'hash' } } },
    telemetry: { port: 0 },
  };
  writeFileSync(config, JSON.stringify(content));
});

after(async () => {
  rmSync(folder, { recursive: true });
  await mariadb?.wipe();
  await redis?.wipe();
});

async function sql(statement: string): Promise<string> {
  return await mariadb.client('sql', ['-N', '-e', statement]);
}

function start(...args: string[]): MysyncProcess {
  return new MysyncProcess([...args, '-c', config], { env: { SHOP_PASSWORD: mariadb.get('MYSQL_PASSWORD') } });
}

async function note(id: number, wanted: string | null, processes: readonly MysyncProcess[]): Promise<void> {
  const probe = async (): Promise<boolean> => {
    for (const each of processes) if (!each.running) throw new Error(each.stderr);
    const found = (await redis.client('cli', ['HGET', `orders:${id}`, 'note'])).trim();
    return found === (wanted ?? '');
  };
  await until(`note of order ${id} is ${wanted}`, probe);
}

async function ask(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMysync([...args, '-c', config], {
    env: { SHOP_PASSWORD: mariadb.get('MYSQL_PASSWORD') },
  });
  assert.equal(code, 0, stderr);
  return stdout;
}

test('existing rows, then every change; SIGTERM ends with 0, and the next start goes on', async () => {
  const first = start('run');
  try {
    await note(1, 'there before', [first]);
    await sql(
      `INSERT INTO ${database}.orders VALUES (2, 'new'); UPDATE ${database}.orders SET note = 'changed' WHERE id = 1`,
    );
    await note(2, 'new', [first]);
    await note(1, 'changed', [first]);
    assert.deepEqual(await first.stop(), { code: 0, signal: null });
    assert.match(first.stderr, /"msg":"stopped"/);
  } finally {
    await first[Symbol.asyncDispose]();
  }
  await sql(`DELETE FROM ${database}.orders WHERE id = 2; INSERT INTO ${database}.orders VALUES (3, 'while it stood')`);
  await using second = start('run');
  await note(3, 'while it stood', [second]);
  await note(2, null, [second]);
  assert.deepEqual(await second.stop(), { code: 0, signal: null });
});

test('reader and writer apart; the writer is there first and waits', async () => {
  await using writer = start('writer', '--sink', 'cache');
  await writer.logged(/"msg":"started"/);
  await using reader = start('reader', '--source', 'shop');
  await sql(`INSERT INTO ${database}.orders VALUES (4, 'apart')`);
  await note(4, 'apart', [reader, writer]);
  const second = await runMysync(['reader', '-c', config], { env: { SHOP_PASSWORD: mariadb.get('MYSQL_PASSWORD') } });
  assert.equal(second.code, 1, 'two readers of one source on one machine');
  assert.match(second.stderr, /^CHECKPOINT_LOCKED: /m);
  assert.equal((await reader.stop()).code, 0);
  assert.equal((await writer.stop()).code, 0);
});

test('status: from the process while it runs, from what is stored afterwards', async () => {
  const port = await freePort();
  {
    await using running = start('run', `--telemetry.port=${port}`);
    await running.logged(/"msg":"reading the log"/);
    const live = await until('the writers run', async () => {
      const report = JSON.parse(await ask('status', '--json', `--telemetry.port=${port}`));
      return report.sinks[0]?.partitions.every((each: { state: string }) => each.state === 'running') && report;
    });
    assert.equal(live.process.pid, running.pid);
    assert.equal(live.sources[0].state, 'streaming');
    assert.deepEqual(live.sources[0].completeTables, [`${database}.orders`]);
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.match(metrics, /mysync_reader_up\{source="shop"\} 1/);
    assert.match(metrics, /mysync_writer_backlog_messages\{sink="cache",source="shop",partition="0"\} 0/);
    assert.equal((await running.stop()).code, 0);
  }
  const stored = JSON.parse(await ask('status', '--json'));
  assert.equal(stored.process, null);
  assert.equal(stored.sources[0].state, 'stopped');
  assert.match(stored.sources[0].checkpoint, /^\S+\.\d+:\d+$/);
  assert.equal(stored.sources[0].snapshot, 'done');
  const text = await ask('status');
  assert.match(text, /complete tables +shop_\w+\.orders/);
  assert.match(text, /partition +state +next +end +backlog +lag/);
});

test('tail prints what was published, exactly', async () => {
  const lines = (await ask('tail'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const changes = lines.filter(({ operation, key }) => key.kind === 'row' && operation !== 'read');
  const told = changes.map(({ operation, key, after: row }) => [operation, key.columns.id, row?.note ?? null]);
  assert.deepEqual(told.sort(), [
    ['delete', 2, null],
    ['insert', 2, 'new'],
    ['insert', 3, 'while it stood'],
    ['insert', 4, 'apart'],
    ['update', 1, 'changed'],
  ]);
  assert.equal((await ask('tail', '--limit', '2')).trim().split('\n').length, 2);
  const [last] = lines.filter(({ partition }) => partition === 1).slice(-1);
  const one = JSON.parse(await ask('tail', '--partition', '1', '--from', String(last.offset)));
  assert.deepEqual(one, last);
});

test('tail --follow goes on until it is stopped, and ends with 0', async () => {
  await using running = start('run');
  await running.logged(/"msg":"reading the log"/);
  await using tail = start('tail', '--follow', '--from', 'latest');
  let id = 100;
  await until('a line is printed', async () => {
    id += 1;
    await sql(`INSERT INTO ${database}.orders VALUES (${id}, 'followed')`);
    return tail.stdout.includes('"followed"');
  });
  assert.deepEqual(await tail.stop(), { code: 0, signal: null });
  assert.equal((await running.stop()).code, 0);
});

test('a second signal ends a stop at once; what was held up comes with the next start', async () => {
  const port = await freePort();
  await using running = start('run', `--telemetry.port=${port}`);
  await running.logged(/"msg":"reading the log"/);
  await redis.pause();
  try {
    await sql(`INSERT INTO ${database}.orders VALUES (200, 'held up')`);
    await until('the write is in flight', async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return /^mysync_writer_backlog_messages\{.*\} [1-9]/m.test(metrics);
    });
    running.signal('SIGTERM');
    await running.logged(/"msg":"stopping"/);
    running.signal('SIGTERM');
    assert.deepEqual(await running.exited, { code: 130, signal: null });
    assert.match(running.stderr, /SIGTERM again: ending at once/);
  } finally {
    await redis.resume();
  }
  await using again = start('run');
  await again.logged(/"msg":"started"/);
  await note(200, 'held up', [again]);
  assert.equal((await again.stop()).code, 0);
});

test('a partition that halts is not ready, says why, and the process still stops with 0', async () => {
  await redis.client('cli', ['DEL', 'orders:300']);
  await redis.client('cli', ['LPUSH', 'orders:300', 'something else']);
  const port = await freePort();
  await using running = start('run', `--telemetry.port=${port}`);
  await sql(`INSERT INTO ${database}.orders VALUES (300, 'refused')`);
  await running.logged(/"msg":"partition halted"/);
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  assert.equal(ready.status, 503);
  assert.match(await ready.text(), /WRITER_CHANGE_REFUSED/);
  assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200, 'a restart would not help');
  assert.equal((await running.stop()).code, 0);
  await redis.client('cli', ['DEL', 'orders:300']);
  await using mended = start('run');
  await note(300, 'refused', [mended]);
  assert.equal((await mended.stop()).code, 0);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
