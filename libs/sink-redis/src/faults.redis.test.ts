/** Redis dies, freezes, forgets, is full, is a replica; writers wake up late. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { isMysyncError, type TableSchema } from '@mysync/core';
import { startServer, TcpProxy, type TestServer, TlsProxy, until } from '@mysync/harness';
import type { ApplyBatch } from '@mysync/sink';
import { itemRow, items, put, TrialWriter } from '@mysync/sink/conformance';
import { Redis } from 'ioredis';
import { RedisConnection } from './connection.ts';
import { Load, runLoad } from './load.fixture.ts';
import { type RedisAddress, type RedisSinkOptions, redisSettings } from './options.ts';
import { RedisSink } from './sink.ts';

const never = new AbortController().signal;

function addressOf(server: TestServer): RedisAddress {
  return { host: server.get('REDIS_HOST'), port: Number(server.get('REDIS_PORT')) };
}

function sinkOn(address: RedisAddress, options: Partial<RedisSinkOptions> = {}): RedisSink & AsyncDisposable {
  const tables = [{ match: '*.*', as: 'hash' as const }];
  const sink = new RedisSink({ hosts: [address], tables, connectTimeoutMs: 2_000, ...options });
  return Object.assign(sink, { [Symbol.asyncDispose]: () => sink.close() });
}

async function namesIn(redis: Redis, schema: TableSchema): Promise<Map<number, string>> {
  const names = new Map<number, string>();
  for (const key of await redis.keys(`${schema.table}:*`)) {
    const { id, name } = await redis.hgetall(key);
    names.set(Number(id), name ?? '');
  }
  return names;
}

const retriable = (code: string) => (error: unknown) => isMysyncError(error, code) && error.retriable;

test('kill -9 in the middle of a load, twice: nothing lost, nothing stale', async () => {
  await using server = await startServer('redis', { args: ['--appendfsync', 'always'] });
  const schema = items('db');
  const load = new Load(schema, { batches: 120, rows: 200, ids: 2_000 });
  await using sink = sinkOn(addressOf(server), { chunkRows: 20 });
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  let restart: Promise<unknown> = Promise.resolve();
  const report = await runLoad(sink, { topic: 't', partition: 0 }, load, {
    onBatch: async (at) => {
      if (at !== 40 && at !== 80) return;
      await restart;
      const kill = server.kill();
      restart = kill.then(() => server.up());
    },
  });
  await restart;
  const redis = new Redis(addressOf(server));
  assert.deepEqual(await namesIn(redis, schema), new Map(load.expected));
  redis.disconnect();
  assert.ok(report.retries > 0 && doubts.length >= 2, JSON.stringify({ report, doubts }));
});

test('a Redis that comes back with an older state is filled again from its own marker', async () => {
  await using server = await startServer('redis');
  const schema = items('db');
  const stream = { topic: 't', partition: 0 };
  const load = new Load(schema, { batches: 60, rows: 50, ids: 500 });
  const redis = new Redis(addressOf(server));
  await using sink = sinkOn(addressOf(server));
  let dump: { key: string; value: Buffer }[] = [];
  let restored = false;
  const report = await runLoad(sink, stream, load, {
    onBatch: async (at) => {
      if (at === 20 && !restored) {
        const keys = await redis.keys('*');
        dump = await Promise.all(keys.map(async (key) => ({ key, value: await redis.dumpBuffer(key) })));
      }
      // What a failover to a replica that lagged does: everything is as it was at batch 20.
      if (at === 50 && !restored) {
        restored = true;
        await redis.flushall();
        for (const { key, value } of dump.splice(0)) await redis.restore(key, 0, value);
      }
    },
  });
  assert.deepEqual(await namesIn(redis, schema), new Map(load.expected));
  assert.equal(report.resumes, 1);
  redis.disconnect();
});

test('a writer that was stopped wakes up late: its batch is refused by the marker', async () => {
  await using server = await startServer('redis');
  const address = addressOf(server);
  const schema = items('db');
  const program = `
    import { RedisSink } from ${JSON.stringify(new URL('./sink.js', import.meta.url).href)};
    import { items, itemRow, put } from ${JSON.stringify(import.meta.resolve('@mysync/sink/conformance'))};
    const sink = new RedisSink({ hosts: [${JSON.stringify(address)}], tables: [{ match: '*.*', as: 'hash' }] });
    const stream = { topic: 't', partition: 0 };
    const expected = await sink.readMarker(stream);
    const changes = Array.from({ length: 1000 }, (_, id) => put(items('db'), itemRow(id, 'late'), 1000000 + id));
    process.stdout.write('ready\\n');
    await new Promise((resolve) => process.stdin.once('data', resolve));
    const outcome = await sink.apply({ stream, changes, marker: { expected, next: 'late' } }, new AbortController().signal);
    process.stdout.write(JSON.stringify(outcome) + '\\n');
    await sink.close();
    process.exit();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  child.stdout.on('data', (data: Buffer) => lines.push(...data.toString().trim().split('\n')));
  await until('the child is ready', () => lines.includes('ready'));
  child.kill('SIGSTOP');
  child.stdin.write('go\n');
  await using sink = sinkOn(address);
  const active = await TrialWriter.start(sink, { topic: 't', partition: 0 });
  await active.applied(0, put(schema, itemRow(1, 'active'), 1));
  child.kill('SIGCONT');
  await once(child, 'exit');
  assert.deepEqual(lines.slice(1), ['{"status":"marker-moved"}']);
  const redis = new Redis(address);
  assert.deepEqual(await namesIn(redis, schema), new Map([[1, 'active']]));
  redis.disconnect();
});

test('bytes that were on the way while another writer took over change nothing', async () => {
  await using server = await startServer('redis');
  const schema = items('db');
  const stream = { topic: 't', partition: 0 };
  const proxy = await TcpProxy.open(addressOf(server).port);
  await using frozen = sinkOn(proxy.address, { commandTimeoutMs: 500, chunkRows: 10 });
  const late = await TrialWriter.start(frozen, stream);
  await late.applied(0, put(schema, itemRow(1, 'first'), 1));
  proxy.hold();
  const changes = Array.from({ length: 100 }, (_, id) => put(schema, itemRow(id, 'late'), 1000 + id));
  await assert.rejects(late.apply(...changes), retriable('SINK_UNREACHABLE'));
  assert.ok(proxy.heldBytes > 10_000);
  await using sink = sinkOn(addressOf(server));
  const active = await TrialWriter.start(sink, stream);
  await active.applied(0, put(schema, itemRow(1, 'active'), 2));
  proxy.release();
  assert.deepEqual(await late.apply(...changes), { status: 'marker-moved' });
  const redis = new Redis(addressOf(server));
  assert.deepEqual(await namesIn(redis, schema), new Map([[1, 'active']]));
  redis.disconnect();
  await proxy.close();
});

test('no answer: rejected in time, then another connection', async () => {
  await using server = await startServer('redis');
  const schema = items('db');
  const proxy = await TcpProxy.open(addressOf(server).port);
  await using sink = sinkOn(proxy.address, { commandTimeoutMs: 300, connectTimeoutMs: 300 });
  const writer = await TrialWriter.start(sink, { topic: 't', partition: 0 });
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  proxy.hold();
  await assert.rejects(writer.apply(put(schema, itemRow(1), 1)), retriable('SINK_UNREACHABLE'));
  await assert.rejects(writer.apply(put(schema, itemRow(1), 1)), retriable('SINK_UNREACHABLE'));
  const before = proxy.connections;
  assert.ok(before >= 2);
  proxy.release();
  const batch: ApplyBatch = {
    stream: writer.stream,
    changes: [put(schema, itemRow(1), 1)],
    marker: { expected: null, next: 'n' },
  };
  // What was held back arrives late, perhaps first; then its marker is another one than ours.
  assert.match((await sink.apply(batch, never)).status, /^(applied|marker-moved)$/);
  assert.ok(proxy.connections > before);
  assert.equal(doubts.length, 1);
  await proxy.close();
});

test('answers that come one behind the other may take longer in all than one of them', async () => {
  await using server = await startServer('redis');
  const address = addressOf(server);
  const settings = redisSettings({ hosts: [address], tables: [], commandTimeoutMs: 1_000 });
  const connection = await RedisConnection.open(address, settings);
  const wait = (seconds: string): string[] => ['BLPOP', 'nothing', seconds];
  const many = Array.from({ length: 10 }, () => wait('0.2'));
  assert.deepEqual(
    await connection.callAll(many),
    many.map(() => null),
  );
  await assert.rejects(connection.callAll([wait('0.2'), wait('0')]), retriable('SINK_UNREACHABLE'));
  await connection.closed;
});

test('an apply that is given up rejects with the reason', async () => {
  await using server = await startServer('redis');
  const proxy = await TcpProxy.open(addressOf(server).port);
  await using sink = sinkOn(proxy.address);
  const stream = { topic: 't', partition: 0 };
  await sink.readMarker(stream);
  proxy.hold();
  const controller = new AbortController();
  const applying = sink.apply({ stream, changes: [], marker: { expected: null, next: 'n' } }, controller.signal);
  controller.abort(new Error('revoked'));
  await assert.rejects(applying, { message: 'revoked' });
  await proxy.close();
});

test('an emptied script cache, a full memory: again later', async () => {
  await using server = await startServer('redis');
  const schema = items('db');
  const redis = new Redis(addressOf(server));
  await using sink = sinkOn(addressOf(server));
  const stream = { topic: 't', partition: 0 };
  const batch = (id: number, expected: string | null, next: string): ApplyBatch => ({
    stream,
    changes: [put(schema, itemRow(id), id)],
    marker: { expected, next },
  });
  assert.equal((await sink.apply(batch(1, null, 'a'), never)).status, 'applied');
  await redis.script('FLUSH');
  await assert.rejects(sink.apply(batch(2, 'a', 'b'), never), retriable('SINK_UNREACHABLE'));
  assert.equal((await sink.apply(batch(2, 'a', 'b'), never)).status, 'applied');
  await redis.config('SET', 'maxmemory', '1mb');
  await assert.rejects(sink.apply(batch(3, 'b', 'c'), never), retriable('SINK_OVERLOADED'));
  assert.equal(await sink.readMarker(stream), 'b');
  assert.equal(await redis.exists('items:3'), 0);
  await redis.config('SET', 'maxmemory', '0');
  assert.equal((await sink.apply(batch(3, 'b', 'c'), never)).status, 'applied');
  redis.disconnect();
});

test('eviction, role and password are found by the check; no error shows the password', async () => {
  await using server = await startServer('redis');
  const address = addressOf(server);
  const admin = new Redis({ ...address });
  await admin.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
  const codes = async (sink: RedisSink): Promise<string[]> =>
    (await sink.check())
      .filter((finding) => finding.level !== 'ok')
      .map((finding) => `${finding.level} ${finding.code}`);
  {
    await using sink = sinkOn(address);
    const findings = await sink.check();
    const eviction = findings.find((finding) => finding.code === 'REDIS_EVICTION');
    assert.equal(eviction?.level, 'error');
    assert.equal(eviction?.remedy, 'CONFIG SET maxmemory-policy noeviction');
    await admin.config('SET', 'maxmemory', '0');
    assert.deepEqual(await codes(sink), ['warning REDIS_EVICTION']);
    await admin.config('SET', 'maxmemory-policy', 'noeviction');
    assert.deepEqual(await codes(sink), []);
  }
  await using second = await startServer('redis');
  const replica = new Redis(addressOf(second));
  await replica.call('REPLICAOF', address.host, String(address.port));
  {
    await using sink = sinkOn(addressOf(second));
    await assert.rejects(sink.readMarker({ topic: 't', partition: 0 }), retriable('REDIS_READ_ONLY'));
    assert.deepEqual(await codes(sink), ['error REDIS_READ_ONLY']);
    await using both = sinkOn(addressOf(second), { hosts: [addressOf(second), address] });
    assert.equal(await both.readMarker({ topic: 't', partition: 0 }), null);
  }
  await replica.call('REPLICAOF', 'NO', 'ONE');
  replica.disconnect();
  await admin.config('SET', 'requirepass', 'geheim');
  for (const password of [undefined, 'falsch-und-geheim']) {
    await using sink = sinkOn(address, password === undefined ? {} : { password });
    const failure = await sink.readMarker({ topic: 't', partition: 0 }).then(
      () => assert.fail('it was let in'),
      (error: unknown) => error,
    );
    assert.ok(isMysyncError(failure, 'SINK_DENIED') && failure.retriable, String(failure));
    assert.doesNotMatch(`${failure} ${JSON.stringify(failure)} ${failure.stack}`, /geheim/);
    assert.deepEqual(await codes(sink), ['error SINK_DENIED']);
  }
  await using sink = sinkOn(address, { password: 'geheim' });
  assert.equal(await sink.readMarker({ topic: 't', partition: 0 }), null);
  admin.disconnect();
});

test('a server that has no room for another client, or that does not let us in for now, again later; a database that it has not is final', async () => {
  await using server = await startServer('redis', { args: ['--databases', '4'] });
  const address = addressOf(server);
  using admin = Object.assign(new Redis(address), { [Symbol.dispose]: () => admin.disconnect() });
  const stream = { topic: 't', partition: 0 };
  await admin.call('ACL', 'SETUSER', 'mysync', 'on', '>geheim', 'allkeys', 'allcommands');
  const login = { username: 'mysync', password: 'geheim' };
  for (const options of [{}, login, { db: 3 }, { ...login, db: 3 }]) {
    await using sink = sinkOn(address, options);
    await admin.config('SET', 'maxclients', '1');
    await assert.rejects(sink.readMarker(stream), retriable('SINK_UNREACHABLE'), JSON.stringify(options));
    await admin.config('SET', 'maxclients', '100');
    assert.equal(await sink.readMarker(stream), null, 'it was let in as soon as there was room');
  }
  for (const options of [{ db: 9 }, { ...login, db: 9 }]) {
    await using nowhere = sinkOn(address, { ...options, name: 'cache' });
    for (let time = 0; time < 2; time += 1) {
      await assert.rejects(nowhere.readMarker(stream), (error) => {
        assert.ok(isMysyncError(error, 'REDIS_DB_UNKNOWN') && !error.retriable, String(error));
        assert.equal(error.where.key, 'sinks.cache.db');
        return true;
      });
    }
    assert.deepEqual(
      (await nowhere.check()).map(({ level, code }) => `${level} ${code}`),
      ['error REDIS_DB_UNKNOWN'],
    );
  }
  await using stranger = sinkOn(address, { ...login, password: 'falsch' });
  await assert.rejects(stranger.readMarker(stream), retriable('SINK_DENIED'));
  await admin.call('ACL', 'SETUSER', 'mysync', 'resetpass', '>falsch');
  assert.equal(await stranger.readMarker(stream), null, 'it was let in as soon as the server had its password');
  await admin.call('ACL', 'SETUSER', 'mysync', '-@all');
  await assert.rejects(stranger.readMarker(stream), retriable('SINK_DENIED'));
  await admin.call('ACL', 'SETUSER', 'mysync', '+@all');
  assert.equal(await stranger.readMarker(stream), null);
});

test('a certificate that is not trusted, or of another name, is final', async () => {
  await using server = await startServer('redis');
  await using proxy = await TlsProxy.open(addressOf(server).port);
  const stream = { topic: 't', partition: 0 };
  const [name, other] = [
    { host: 'localhost', port: proxy.port },
    { host: '127.0.0.1', port: proxy.port },
  ];
  for (const [address, tls] of [
    [name, {}],
    [other, { ca: proxy.certificate }],
  ] as const) {
    await using sink = sinkOn(address, { tls });
    const isFinal = (error: unknown): boolean => isMysyncError(error, 'SINK_TLS_FAILED') && !error.retriable;
    await assert.rejects(sink.readMarker(stream), isFinal, JSON.stringify(address));
  }
  await using sink = sinkOn(name, { tls: { ca: proxy.certificate } });
  assert.equal(await sink.readMarker(stream), null);
  await server.kill();
  await assert.rejects(sink.readMarker(stream), retriable('SINK_UNREACHABLE'));
});

test('a master that becomes a replica under us: retriable, doubt, and on to the new master', async () => {
  await using one = await startServer('redis');
  await using two = await startServer('redis');
  const [first, second] = [addressOf(one), addressOf(two)];
  const admins = [new Redis(first), new Redis(second)] as const;
  await admins[1].call('REPLICAOF', first.host, String(first.port));
  await using sink = sinkOn(first, { hosts: [first, second] });
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  const schema = items('db');
  const writer = await TrialWriter.start(sink, { topic: 't', partition: 0 });
  await writer.applied(0, put(schema, itemRow(1), 1));
  await until('the replica has it', async () => (await admins[1].exists('items:1')) === 1);
  await admins[1].call('REPLICAOF', 'NO', 'ONE');
  await admins[0].call('REPLICAOF', second.host, String(second.port));
  await assert.rejects(writer.apply(put(schema, itemRow(2), 2)), retriable('SINK_UNREACHABLE'));
  await writer.applied(0, put(schema, itemRow(2), 2));
  assert.equal(await admins[1].exists('items:2'), 1);
  assert.equal(doubts.length, 1);
  for (const admin of admins) admin.disconnect();
});
