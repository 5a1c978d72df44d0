/** A Redis Cluster whose slots move and whose masters die, under load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer, until } from '@mysync/harness';
import { itemRow, items, put, TrialWriter } from '@mysync/sink/conformance';
import { Redis } from 'ioredis';
import { Load, runLoad } from './load.fixture.ts';
import type { RedisAddress, RedisSinkOptions } from './options.ts';
import { RedisSink } from './sink.ts';
import { keySlot } from './slot.ts';

const schema = items('db');
const stream = { topic: 't', partition: 0 };

/** The nodes by their addresses, for administration and independent reading. */
class Nodes implements AsyncDisposable {
  readonly addresses: readonly RedisAddress[];
  readonly clients: readonly Redis[];

  constructor(server: TestServer) {
    this.addresses = server
      .get('REDIS_CLUSTER_NODES')
      .split(',')
      .map((node) => ({ host: node.split(':')[0] ?? '', port: Number(node.split(':')[1]) }));
    this.clients = this.addresses.map((address) => {
      const client = new Redis({ ...address, retryStrategy: () => 100 });
      client.on('error', () => undefined);
      return client;
    });
  }

  sink(options: Partial<RedisSinkOptions> = {}): RedisSink & AsyncDisposable {
    const tables = [{ match: '*.*', as: 'hash' as const }];
    const sink = new RedisSink({ hosts: this.addresses, cluster: true, tables, connectTimeoutMs: 2_000, ...options });
    return Object.assign(sink, { [Symbol.asyncDispose]: () => sink.close() });
  }

  async masters(): Promise<Redis[]> {
    const roles = await Promise.all(
      this.clients.map(async (client) => (await client.role())[0]).map((role) => role.catch(() => '')),
    );
    return this.clients.filter((_, at) => roles[at] === 'master');
  }

  /** The nodes tell one another of moved slots by gossip: for a moment after a move, each may think it is another's. */
  async owner(slot: number): Promise<Redis> {
    const patience = performance.now() + 3_000;
    return await until(`an owner of slot ${slot}`, async () => {
      const owner = await this.#ownerNow(slot);
      if (owner === undefined && performance.now() > patience) await this.#assign(slot);
      return owner;
    });
  }

  /** A slot that every node takes for another's, after two moves one behind the other, is given to who has its keys. */
  async #assign(slot: number): Promise<void> {
    const masters = await this.masters();
    const counts = await Promise.all(masters.map((client) => client.call('CLUSTER', 'COUNTKEYSINSLOT', String(slot))));
    const most = Math.max(...counts.map(Number));
    const holder = masters[counts.findIndex((count) => Number(count) === most)] as Redis;
    const id = String(await holder.cluster('MYID'));
    for (const client of [holder, ...masters]) await client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', id);
  }

  async #ownerNow(slot: number): Promise<Redis | undefined> {
    const masters = await this.masters();
    for (const client of masters) {
      const own =
        String(await client.cluster('NODES'))
          .split('\n')
          .find((line) => line.includes('myself')) ?? '';
      for (const range of own.split(' ').slice(8)) {
        const [first = '', last = first] = range.split('-');
        if (Number(first) <= slot && slot <= Number(last)) return client;
      }
    }
    return undefined;
  }

  /** Begins to move a slot; `finish` moves its keys one by one and ends it. As redis-cli does. */
  async beginMove(slot: number, target: Redis): Promise<() => Promise<void>> {
    const source = await this.owner(slot);
    const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')];
    const { host, port } = this.addresses[this.clients.indexOf(target)] as RedisAddress;
    await target.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', String(sourceId));
    await source.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', String(targetId));
    return async () => {
      for (;;) {
        const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '1')) as string[];
        if (keys.length === 0) break;
        await source.call('MIGRATE', host, String(port), '', '0', '5000', 'KEYS', ...keys);
      }
      for (const client of [target, source, ...(await this.masters())]) {
        await client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', String(targetId));
      }
    };
  }

  async names(): Promise<Map<number, string>> {
    const names = new Map<number, string>();
    for (const client of await this.masters()) {
      for (const key of await client.keys('items:*')) {
        const { id, name } = await client.hgetall(key);
        names.set(Number(id), name ?? '');
      }
    }
    return names;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client.disconnect();
  }
}

test('slots that move under pipelines of 1000 commands: nothing lost, nothing stale', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new Nodes(server);
  await using sink = nodes.sink();
  const doubts: string[] = [];
  sink.onDoubt((reason) => doubts.push(reason));
  const load = new Load(schema, { batches: 60, rows: 1_000, ids: 3_000 });
  let moving = true;
  let moves = 0;
  const mover = (async () => {
    while (moving) {
      const slot = keySlot(`items:${Math.floor(Math.random() * 3_000)}`);
      const owner = await nodes.owner(slot);
      const target = nodes.clients.find((client) => client !== owner) as Redis;
      await (await nodes.beginMove(slot, target))();
      moves++;
    }
  })();
  await runLoad(sink, stream, load);
  moving = false;
  await mover;
  assert.deepEqual(await nodes.names(), new Map(load.expected));
  assert.ok(moves >= 3 && doubts.length > 0, `${moves} moves`);
});

test('a master killed with -9 and started again in the middle of a load', async () => {
  await using server = await startServer('redis-cluster', { args: ['--appendfsync', 'always'] });
  await using nodes = new Nodes(server);
  await using sink = nodes.sink();
  const load = new Load(schema, { batches: 40, rows: 300, ids: 1_000 });
  let restart: Promise<unknown> = Promise.resolve();
  const report = await runLoad(sink, stream, load, async (at) => {
    if (at === 15) restart = server.kill('n2').then(() => server.upPart('n2'));
  });
  await restart;
  assert.deepEqual(await nodes.names(), new Map(load.expected));
  assert.ok(report.retries > 0);
});

test('a replica takes over, by order and after a kill -9: what the master had not passed on is applied again', async () => {
  await using server = await startServer('redis-cluster', { env: { REPLICAS: '1' } });
  await using nodes = new Nodes(server);
  await using sink = nodes.sink();
  const load = new Load(schema, { batches: 80, rows: 300, ids: 1_000 });
  const isMaster = async (client: Redis): Promise<boolean> => (await client.role())[0] === 'master';
  let over: Promise<unknown> = Promise.resolve();
  await runLoad(sink, stream, load, async (at) => {
    if (at === 20) {
      const replica = nodes.clients[3] as Redis;
      const candidates = await Promise.all(nodes.clients.map(isMaster));
      const chosen = nodes.clients.find((_, index) => !candidates[index]) ?? replica;
      await chosen.call('CLUSTER', 'FAILOVER');
      over = until('it has taken over', () => isMaster(chosen));
    }
    if (at === 40) {
      await over;
      const masters = await nodes.masters();
      const part = nodes.clients.indexOf(masters[0] as Redis) + 1;
      await server.kill(`n${part}`);
    }
  });
  assert.deepEqual(await nodes.names(), new Map(load.expected));
});

test('the marker: gone when one master lost everything, the same when the slots it lies in move', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new Nodes(server);
  await using sink = nodes.sink();
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, ...Array.from({ length: 30 }, (_, id) => put(schema, itemRow(id), id + 1)));
  const [first, second, third] = nodes.clients as [Redis, Redis, Redis];
  const homes = (await second.keys('mysync:m:*')).length;
  assert.equal(homes, 1);
  // The second master's lowest slot, and with it its copy, goes to the third; the lowest slot of all goes to the second.
  await (await nodes.beginMove(5461, third))();
  await (await nodes.beginMove(0, second))();
  await using other = nodes.sink();
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
  await using again = nodes.sink();
  assert.equal(await again.readMarker(stream), null);
  assert.equal(await again.readMarker(stream), null);
});

test('a table is not cleared while slots are on their way', async () => {
  await using server = await startServer('redis-cluster');
  await using nodes = new Nodes(server);
  await using sink = nodes.sink();
  const writer = await TrialWriter.start(sink, stream);
  await writer.applied(0, ...Array.from({ length: 300 }, (_, id) => put(schema, itemRow(id), id + 1)));
  const slot = keySlot('items:7');
  const owner = await nodes.owner(slot);
  const finish = await nodes.beginMove(slot, nodes.clients.find((client) => client !== owner) as Redis);
  const clear = { kind: 'clear', table: schema, version: 1000n, offset: 1 } as const;
  await assert.rejects(writer.apply(clear), (error) => isMysyncError(error, 'REDIS_SLOTS_MOVING') && error.retriable);
  await finish();
  await writer.applied(0, clear);
  assert.deepEqual(await nodes.names(), new Map());
});
