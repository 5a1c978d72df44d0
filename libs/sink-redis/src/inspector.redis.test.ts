/** What somebody else did to rows behind the sink's back, as the inspector tells and mends it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ColumnValue, TableSchema } from '@mysync/core';
import { randomName, startServer, type TestServer } from '@mysync/harness';
import type { InspectedRow, SinkInspector, StoredRecord } from '@mysync/sink';
import { del, itemRow, items, put, TrialWriter } from '@mysync/sink/conformance';
import { Cluster, Redis } from 'ioredis';
import type { RedisAddress, RedisTableRule } from './options.ts';
import { RedisSink } from './sink.ts';

const { signal } = new AbortController();
let server: TestServer;
let clusterServer: TestServer;
let redis: Redis;
let cluster: Cluster;

before(async () => {
  server = await startServer('redis');
  clusterServer = await startServer('redis-cluster');
  redis = new Redis(address());
  cluster = new Cluster(nodes());
});
after(async () => {
  redis.disconnect();
  cluster.disconnect();
  await server.wipe();
  await clusterServer.wipe();
});

function address(): RedisAddress {
  return { host: server.get('REDIS_HOST'), port: Number(server.get('REDIS_PORT')) };
}

function nodes(): RedisAddress[] {
  const list = clusterServer.get('REDIS_CLUSTER_NODES').split(',');
  return list.map((node) => ({ host: node.split(':')[0] ?? '', port: Number(node.split(':')[1]) }));
}

interface Bench {
  readonly client: Redis | Cluster;
  readonly schema: TableSchema;
  readonly inspector: SinkInspector;
  readonly writer: TrialWriter;
  /** Of the row with this id. */
  key(id: number): string;
  [Symbol.asyncDispose](): Promise<void>;
}

async function open(rule: Partial<RedisTableRule>, inCluster = false): Promise<Bench> {
  const schema = items(randomName('db'));
  const tables: RedisTableRule[] = [{ match: '*.*', as: 'hash', key: '{database}:{key}', ...rule }];
  const sink = new RedisSink(inCluster ? { hosts: nodes(), cluster: true, tables } : { hosts: [address()], tables });
  await sink.prepare(schema);
  return {
    client: inCluster ? cluster : redis,
    schema,
    inspector: sink.inspector,
    writer: await TrialWriter.start(sink, { topic: randomName('topic'), partition: 0 }),
    key: (id) => `${schema.database}:${id}`,
    [Symbol.asyncDispose]: () => sink.close(),
  };
}

function inspected(schema: TableSchema, row: readonly ColumnValue[]): InspectedRow {
  return { schema, key: put(schema, row, 0).key, row };
}

/** What is said of a row: its state, and what differs. */
async function said({ inspector, schema }: Bench, row: readonly ColumnValue[]): Promise<string> {
  const [verdict] = await inspector.compare([inspected(schema, row)], signal);
  return [verdict?.state, ...(verdict?.fields ?? [])].join('; ');
}

async function records({ inspector, schema, writer }: Bench): Promise<readonly StoredRecord[]> {
  const pages: StoredRecord[] = [];
  for await (const page of inspector.records(schema, [writer.stream], signal)) pages.push(...page);
  return pages;
}

const SHAPES: readonly (readonly [name: string, rule: Partial<RedisTableRule>, inCluster: boolean])[] = [
  ['hash', {}, false],
  ['JSON', { as: 'json' }, false],
  [
    'hash with time to live and an index',
    { ttlSeconds: 1000, indexes: [{ key: 'all:{database}', kind: 'set' }] },
    false,
  ],
  ['hash in a cluster', {}, true],
  ['JSON in a cluster', { as: 'json' }, true],
];

for (const [name, rule, inCluster] of SHAPES) {
  test(`${name}: what was put behind a tombstone is a record, and goes; a stranger's key is none`, async () => {
    await using bench = await open(rule, inCluster);
    const { client, schema, inspector, writer, key } = bench;
    await writer.applied(0, put(schema, itemRow(1), 5), put(schema, itemRow(2), 6), put(schema, itemRow(3), 7));
    await writer.applied(0, del(schema, itemRow(1), 8), del(schema, itemRow(2), 9));
    const targets = [key(1), key(2), key(4)];
    assert.deepEqual(await records(bench), [{ target: key(3), version: 7n }]);
    assert.deepEqual(await inspector.find(schema, targets, signal), [null, null, null]);
    for (const id of [1, 4]) {
      if (rule.as === 'json') await client.set(key(id), '{"id":1}');
      else await client.hset(key(id), 'id', '1');
    }
    const phantom = { target: key(1), version: 8n };
    const found = [...(await records(bench))].sort((a, b) => (a.version < b.version ? -1 : 1));
    assert.deepEqual(found, [{ target: key(3), version: 7n }, phantom]);
    assert.deepEqual(await inspector.find(schema, targets, signal), [phantom, null, null]);
    // the source has no such row: neither has the sink
    assert.equal(await said(bench, itemRow(1)), 'missing');
    // not below the deletion
    await inspector.remove(schema, [key(1)], 7n, signal);
    assert.deepEqual(await inspector.find(schema, targets, signal), [phantom, null, null]);
    await inspector.remove(schema, [key(1)], 8n, signal);
    assert.deepEqual(await inspector.find(schema, targets, signal), [null, null, null]);
    assert.equal(await client.exists(key(1)), 0);
    assert.equal(await client.exists(key(4)), 1);
    // what was deleted stays deleted
    await writer.applied(1, put(schema, itemRow(1), 7));
    assert.equal(await client.exists(key(1)), 0);
  });

  test(`${name}: a time to live that the rule does not give is told and taken away`, async () => {
    await using bench = await open(rule, inCluster);
    const { client, schema, inspector, writer, key } = bench;
    await writer.applied(0, put(schema, itemRow(1), 5), put(schema, itemRow(2, null), 5));
    for (const id of [1, 2]) await client.expire(key(id), 500);
    const rows = [itemRow(1), itemRow(2, null)];
    if (rule.ttlSeconds !== undefined) {
      for (const row of rows) assert.equal(await said(bench, row), 'equal');
      return;
    }
    for (const row of rows) {
      assert.match(await said(bench, row), /^different; expires: in (500|4\d\d) s \(the rule has no ttlSeconds\)$/);
    }
    await inspector.rewrite(
      writer.stream,
      rows.map((row) => inspected(schema, row)),
      5n,
      signal,
    );
    for (const [at, row] of rows.entries()) {
      assert.equal(await client.ttl(key(at + 1)), -1);
      assert.equal(await said(bench, row), 'equal');
    }
  });

  test(`${name}: whatever differs is named`, async () => {
    await using bench = await open(rule, inCluster);
    const { client, schema, inspector, writer, key } = bench;
    await writer.applied(0, ...[1, 2, 3].map((id) => put(schema, itemRow(id), 5)));
    if (rule.as === 'json') {
      const text = (await client.get(key(1))) ?? '';
      await client.set(
        key(1),
        text.replace('18446744073709551615', '18446744073709551614').replace('{', '{"own":[1],'),
      );
      await client.set(key(2), text.replace('{', '{ '));
      assert.equal(await said(bench, itemRow(1)), 'different; amount; own (should not be there)');
      await client.set(
        key(2),
        ((await client.get(key(3))) ?? '').replace('"id":3', '"id":2').replace('name 3', 'name 2').replace('{', '{ '),
      );
      assert.equal(await said(bench, itemRow(2)), 'different; the JSON is written otherwise');
      await client.set(key(2), 'no JSON');
      assert.equal(await said(bench, itemRow(2)), 'different; the value is no JSON object');
    } else {
      // those of others stay as long as the shape does
      await client.hset(key(1), 'own', '1');
      assert.equal(await said(bench, itemRow(1)), 'equal');
      const companion = await client.getBuffer(`mysync:v:{${key(1)}}`);
      companion?.write('01234567', 17);
      await client.set(`mysync:v:{${key(1)}}`, companion ?? '');
      assert.equal(await said(bench, itemRow(1)), 'different; own (should not be there)');
      await client.hset(key(2), 'name', 'other', 'own', '1');
      assert.equal(await said(bench, itemRow(2)), 'different; name');
    }
    await client.del(key(3));
    await client.rpush(key(3), 'a list');
    assert.equal(await said(bench, itemRow(3)), 'different; the key holds a list');
    const mended = [1, 2].map((id) => inspected(schema, itemRow(id)));
    assert.deepEqual(await inspector.rewrite(writer.stream, mended, 5n, signal), []);
    for (const id of [1, 2]) assert.equal(await said(bench, itemRow(id)), 'equal');
    assert.equal((await client.ttl(key(1))) > 0, rule.ttlSeconds !== undefined);
    if (rule.indexes !== undefined) assert.equal(await client.scard(`all:${schema.database}`), 3);
  });
}

test("what somebody else put in a version's place is no version, and ends nothing", async () => {
  await using bench = await open({});
  const { client, schema, inspector, writer, key } = bench;
  await writer.applied(0, put(schema, itemRow(1), 5), put(schema, itemRow(2), 5));
  await client.set(`mysync:v:{${key(1)}}`, 'somebody else’s value, as long as a version, and no version');
  assert.equal(await said(bench, itemRow(1)), 'missing');
  assert.deepEqual(await inspector.find(schema, [key(1)], signal), [null]);
  assert.deepEqual(await records(bench), [{ target: key(2), version: 5n }]);
});
