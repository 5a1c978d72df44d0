/** A Redis Cluster whose slots move and whose masters die, under load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { RedisCluster, startServer, TcpProxy, until } from '@mysync/harness';
import { itemRow, items, put, TrialWriter } from '@mysync/sink/conformance';
import type { Redis } from 'ioredis';
import { namesIn, sinkOn } from './cluster-nodes.fixture.ts';
import { Load, runLoad } from './load.fixture.ts';
import { redisNames } from './names.ts';
import { keySlot } from './slot.ts';

const schema = items('db');
const stream = { topic: 't', partition: 0 };

test('H6: slots that move under pipelines of 1000 commands: nothing lost, nothing stale', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes);
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  const load = new Load(schema, { batches: 60, rows: 1_000, ids: 3_000 });
  const over = new AbortController();
  const holders = await sink.holders?.(stream);
  let moves = 0;
  const move = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const slot = keySlot(`items:${Math.floor(Math.random() * 3_000)}`);
      const owner = await nodes.owner(slot);
      const target = nodes.clients.find((client) => client !== owner) as Redis;
      await (await nodes.beginMove(slot, target))();
      await nodes.settled();
      moves++;
    }
  };
  const moving = move().finally(() => over.abort());
  const loading = runLoad(sink, stream, load, { state: () => nodes.state(), signal: over.signal });
  await Promise.all([moving, loading.finally(() => over.abort())]);
  assert.deepEqual(await namesIn(nodes), new Map(load.expected));
  assert.equal(await sink.holders?.(stream), holders, 'the same masters, wherever their slots are');
  assert.ok(moves >= 3 && doubts.length > 0, `${moves} moves`);
});

test('a slot of which a row has moved and its index has not, or the other way round: waited for', async () => {
  for (const [what, isMoved, answer] of [
    ['the row has moved', (key: string) => !key.includes(':named:') && !key.includes(':m:'), /'ASK /],
    ['its index has moved', (key: string) => key.includes(':named:'), /'ERR /],
  ] as const) {
    await using server = await startServer('redis-cluster');
    await using nodes = new RedisCluster(server);
    const indexes = [{ key: '{{{key}}}:named:{column:name}', kind: 'set' as const }];
    const tables = [{ match: '*.*', as: 'hash' as const, key: '{{{key}}}:row', indexes }];
    await using sink = sinkOn(nodes, { tables, commandTimeoutMs: 1_000 });
    const writer = await TrialWriter.start(sink, stream);
    await writer.applied(0, put(schema, itemRow(7, 'old'), 1));
    const slot = keySlot('{7}:row');
    const owner = await nodes.owner(slot);
    const target = nodes.clients.find((client) => client !== owner) as Redis;
    const finish = await nodes.beginMove(slot, target);
    const keys = (await owner.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[];
    const { host, port } = target.options;
    await owner.call('MIGRATE', String(host), String(port), '', '0', '5000', 'KEYS', ...keys.filter(isMoved));
    const change = put(schema, itemRow(7, 'new'), 2);
    await assert.rejects(writer.apply(change), (error) => {
      assert.ok(isMysyncError(error, 'SINK_UNREACHABLE') && error.retriable, String(error));
      assert.match(error.message, answer, what);
      return true;
    });
    await finish();
    await nodes.settled();
    await writer.applied(0, change);
    assert.deepEqual((await target.keys('{7}:*')).sort(), ['{7}:named:new', '{7}:row'], what);
  }
});

test('a slot that nobody takes for its own: told, and waited for', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes, { commandTimeoutMs: 1_000 });
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, put(schema, itemRow(8), 1));
  const slot = keySlot('items:7');
  const owner = await nodes.owner(slot);
  const other = nodes.clients.find((client) => client !== owner) as Redis;
  await owner.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', String(await other.cluster('MYID')));
  const change = put(schema, itemRow(7, 'waits'), 2);
  await assert.rejects(
    writer.apply(change),
    (error) => isMysyncError(error, 'SINK_UNREACHABLE') && error.retriable && error.message.includes(`MOVED ${slot}`),
  );
  await nodes.assign(slot, owner);
  await writer.applied(0, change);
  assert.equal((await namesIn(nodes)).get(7), 'waits');
});

test('a master killed with -9 and started again in the middle of a load', async () => {
  await using server = await startServer('redis-cluster', { args: ['--appendfsync', 'always'] });
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes);
  const load = new Load(schema, { batches: 40, rows: 300, ids: 1_000 });
  let restart: Promise<unknown> = Promise.resolve();
  const report = await runLoad(sink, stream, load, {
    onBatch: async (at) => {
      if (at === 15) restart = server.kill('n2').then(() => server.upPart('n2'));
    },
    state: () => nodes.state(),
  });
  await restart;
  assert.deepEqual(await namesIn(nodes), new Map(load.expected));
  assert.ok(report.retries > 0);
});

test('H6: a replica takes over, by order and after a kill -9: what the master had not passed on is applied again', async () => {
  await using server = await startServer('redis-cluster', { env: { REPLICAS: '1' } });
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes);
  const load = new Load(schema, { batches: 80, rows: 300, ids: 1_000 });
  const isMaster = async (client: Redis): Promise<boolean> => (await client.role())[0] === 'master';
  const holders = new Set<string | undefined>([await sink.holders?.(stream)]);
  let over: Promise<unknown> = Promise.resolve();
  await runLoad(sink, stream, load, {
    onBatch: async (at) => {
      if (at === 20) {
        const replica = nodes.clients[3] as Redis;
        const candidates = await Promise.all(nodes.clients.map(isMaster));
        const chosen = nodes.clients.find((_, index) => !candidates[index]) ?? replica;
        await chosen.call('CLUSTER', 'FAILOVER');
        over = until('it has taken over', () => isMaster(chosen));
      }
      if (at === 40) {
        await over;
        holders.add(await sink.holders?.(stream));
        const masters = await nodes.masters();
        const part = nodes.clients.indexOf(masters[0] as Redis) + 1;
        await server.kill(`n${part}`);
      }
    },
    state: () => nodes.state(),
  });
  holders.add(await sink.holders?.(stream));
  assert.deepEqual(await namesIn(nodes), new Map(load.expected));
  assert.equal(holders.size, 3, 'each replica that took over is told');
});

// Without a look at the others, the time for an answer would decide, here longer than the test.
test('a master that falls silent is left as soon as its replica has taken over', { timeout: 120_000 }, async () => {
  await using server = await startServer('redis-cluster', { env: { REPLICAS: '1' } });
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes, { commandTimeoutMs: 600_000, connectTimeoutMs: 600_000 });
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, ...Array.from({ length: 30 }, (_, id) => put(schema, itemRow(id), id + 1)));
  // the first in the slot map
  const master = await nodes.owner(0);
  const replica = await nodes.replicaOf(master);
  assert.ok(replica !== undefined);
  await server.pause(nodes.partOf(master));
  const changes = Array.from({ length: 30 }, (_, id) => put(schema, itemRow(id, 'new'), 100 + id));
  await assert.rejects(
    writer.apply(...changes),
    (error) => isMysyncError(error, 'SINK_UNREACHABLE') && error.retriable && error.message.includes('another master'),
  );
  assert.ok(await nodes.isMaster(replica));
  assert.equal(await sink.readMarker(stream), writer.marker);
  await writer.applied(0, ...changes);
  await server.resume(nodes.partOf(master));
  await until('it is a replica', async () => !(await nodes.isMaster(master)));
  assert.deepEqual(await namesIn(nodes), new Map(changes.map((_, id) => [id, 'new'])));
});

test('two ways that fall silent one behind the other cost the time for one answer, not for two', async () => {
  await using first = await TcpProxy.open();
  await using second = await TcpProxy.open();
  await using third = await TcpProxy.open();
  const ways = [first, second, third];
  const ports = ways.map(({ port }) => port).join(' ');
  await using server = await startServer('redis-cluster', { env: { ADVERTISED_PORTS: ports } });
  await using nodes = new RedisCluster(server);
  ways.forEach((way, at) => {
    way.aim(nodes.addresses[at]?.port ?? 0);
  });
  const commandTimeoutMs = 8_000;
  await using sink = sinkOn({ addresses: nodes.announced }, { commandTimeoutMs });
  const writer = await TrialWriter.start(sink, stream);
  const changes = (name: string) => Array.from({ length: 30 }, (_, id) => put(schema, itemRow(id, name), id + 1));
  await writer.applied(0, ...changes('a'));
  first.blackHole();
  const { bytes } = second;
  const stuck = writer.apply(...changes('a'));
  stuck.catch(() => undefined); // awaited below
  await until('the second has answered', () => second.bytes > bytes);
  second.blackHole();
  const silent = (error: unknown): boolean => isMysyncError(error, 'SINK_UNREACHABLE') && error.retriable;
  await assert.rejects(stuck, silent);
  const over = performance.now();
  await until('it is applied', () => writer.applied(0, ...changes('a')).then(() => true));
  assert.ok(performance.now() - over < commandTimeoutMs / 2, 'the second was waited for meanwhile');
});

test('an apply that is given up while a master is silent rejects with the reason', { timeout: 120_000 }, async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes, { commandTimeoutMs: 600_000 });
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, put(schema, itemRow(1), 1));
  await server.pause('n2');
  const controller = new AbortController();
  const batch = { stream, changes: [put(schema, itemRow(1), 2)], marker: { expected: writer.marker, next: 'n' } };
  const applying = sink.apply(batch, controller.signal);
  controller.abort(new Error('revoked'));
  await assert.rejects(applying, { message: 'revoked' });
  await server.resume('n2');
});

test('the marker: gone when one master lost everything, the same when the slots it lies in move', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes);
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, ...Array.from({ length: 30 }, (_, id) => put(schema, itemRow(id), id + 1)));
  const [first, second, third] = nodes.clients as [Redis, Redis, Redis];
  const homes = (await second.keys('mysync:m:*')).length;
  assert.equal(homes, 1);
  // The second master's lowest slot, and with it its copy, goes to the third; the lowest slot of all goes to the second.
  await (await nodes.beginMove(5461, third))();
  await nodes.settled();
  await (await nodes.beginMove(0, second))();
  await using other = sinkOn(nodes);
  assert.equal(await other.readMarker(stream), writer.marker);
  const copies = await Promise.all([first, second, third].map((client) => client.keys('mysync:m:*')));
  assert.deepEqual(
    copies.map((keys) => keys.length),
    [1, 1, 1],
  );
  const late = await TrialWriter.start(other, stream);
  await late.applied(0, put(schema, itemRow(1, 'other'), 100));
  assert.deepEqual(await writer.apply(put(schema, itemRow(1, 'stale'), 50)), { status: 'marker-moved' });
  assert.equal(await sink.readMarker(stream), late.marker);
  // What a failover to a lagging replica leaves: one copy is older than the others.
  const [lagging = ''] = await third.keys('mysync:m:*');
  const older = await third.dumpBuffer(lagging);
  const before = late.marker;
  await late.applied(0, put(schema, itemRow(2, 'lost there'), 101));
  await third.restore(lagging, 0, older, 'REPLACE');
  assert.deepEqual(await late.apply(), { status: 'marker-moved' });
  assert.equal(await other.readMarker(stream), before);
  assert.equal(await sink.readMarker(stream), before);
  late.marker = before;
  await late.applied(0, put(schema, itemRow(2, 'again'), 101));
  await third.flushall();
  await using again = sinkOn(nodes);
  assert.equal(await again.readMarker(stream), null);
  assert.equal(await again.readMarker(stream), null);
});

test('a copy of the marker that was lost with a slot that had been moved is told; the others stand', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes);
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, put(schema, itemRow(1), 1));
  const [, , third] = nodes.clients as [Redis, Redis, Redis];
  const { marker } = redisNames('mysync');
  let holders = await sink.holders?.(stream);
  // The copy that says where the others are is among them.
  for (const [at, slot] of [5461, 0].entries()) {
    await (await nodes.beginMove(slot, third))();
    await nodes.settled();
    // What a replica of the third lacks that takes over right behind the move.
    assert.equal(await third.del(marker(stream, slot)), 1);
    await using other = sinkOn(nodes);
    assert.equal(await other.readMarker(stream), writer.marker, `slot ${slot}`);
    const now = await other.holders?.(stream);
    assert.notEqual(now, holders, 'rows of the slot may be gone: the writer has to go back');
    assert.equal(await other.readMarker(stream), writer.marker);
    assert.equal(await other.holders?.(stream), now);
    holders = now;
    const change = put(schema, itemRow(1, `after ${slot}`), at + 2);
    assert.equal(await sink.readMarker(stream), writer.marker);
    await writer.applied(0, change);
  }
  // All that the third has: that is not a slot, that is a master.
  for (const key of await third.keys('mysync:m:*')) await third.del(key);
  await using last = sinkOn(nodes);
  assert.equal(await last.readMarker(stream), null);
});

test('a table is not cleared while slots are on their way', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new RedisCluster(server);
  await using sink = sinkOn(nodes);
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, ...Array.from({ length: 300 }, (_, id) => put(schema, itemRow(id), id + 1)));
  const slot = keySlot('items:7');
  const owner = await nodes.owner(slot);
  const finish = await nodes.beginMove(slot, nodes.clients.find((client) => client !== owner) as Redis);
  const clear = { kind: 'clear', table: schema, version: 1000n, offset: 1 } as const;
  await assert.rejects(writer.apply(clear), (error) => isMysyncError(error, 'REDIS_SLOTS_MOVING') && error.retriable);
  await finish();
  await writer.applied(0, clear);
  assert.deepEqual(await namesIn(nodes), new Map());
});
