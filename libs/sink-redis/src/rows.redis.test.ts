/** Rows, index sets, time to live: what a reader of Redis sees. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ColumnValue, isMysyncError, type TableSchema } from '@mysync/core';
import { randomName, startServer, type TestServer } from '@mysync/harness';
import type { SinkChange } from '@mysync/sink';
import { del, itemRow, items, put, TrialWriter } from '@mysync/sink/conformance';
import { Redis } from 'ioredis';
import type { RedisSinkOptions, RedisTableRule } from './options.ts';
import { RedisSink } from './sink.ts';

let server: TestServer;
let redis: Redis;

before(async () => {
  server = await startServer('redis');
  redis = new Redis(address());
});
after(async () => {
  redis.disconnect();
  await server.wipe();
});

function address(): { host: string; port: number } {
  return { host: server.get('REDIS_HOST'), port: Number(server.get('REDIS_PORT')) };
}

async function writerFor(
  rule: Partial<RedisTableRule>,
  options: Partial<RedisSinkOptions> = {},
  topic = randomName('topic'),
): Promise<TrialWriter & AsyncDisposable> {
  const tables: RedisTableRule[] = [{ match: '*.*', as: 'hash', key: '{database}:{key}', ...rule }];
  const sink = new RedisSink({ hosts: [address()], tables, ...options });
  const writer = await TrialWriter.start(sink, { topic, partition: 0 });
  return Object.assign(writer, { [Symbol.asyncDispose]: () => sink.close() });
}

const indexed: Partial<RedisTableRule> = {
  fields: ['id', 'name'],
  indexes: [
    { key: '{database}:by_name:{column:name}', kind: 'set' },
    { key: '{database}:by_amount', kind: 'sorted-set', score: 'amount' },
  ],
};

async function scored(db: string): Promise<string[]> {
  // RESP3 answers with pairs.
  return ((await redis.call('ZRANGE', `${db}:by_amount`, '0', '-1', 'WITHSCORES')) as string[][]).flat();
}

async function ranked(db: string): Promise<string[]> {
  return (await redis.call('ZRANGE', `${db}:by_amount`, '0', '-1')) as string[];
}

test('index sets follow the rows: by what is stored, not by the image before', async () => {
  const schema = items(randomName('db'));
  const db = schema.database;
  await using writer = await writerFor(indexed);
  const row = (id: number, name: string | null, amount: number | null): ColumnValue[] => [
    id,
    name,
    amount,
    '0',
    0,
    null,
    null,
  ];
  await writer.applied(
    0,
    put(schema, row(1, 'a', 10), 1),
    put(schema, row(2, 'a', 20), 2),
    put(schema, row(3, null, null), 3),
  );
  assert.deepEqual((await redis.smembers(`${db}:by_name:a`)).sort(), ['1', '2']);
  assert.deepEqual(await scored(db), ['1', '10', '2', '20']);
  await writer.applied(0, put(schema, row(1, 'b', 30), 4));
  assert.deepEqual(await redis.smembers(`${db}:by_name:a`), ['2']);
  assert.deepEqual(await redis.smembers(`${db}:by_name:b`), ['1']);
  assert.deepEqual(await scored(db), ['2', '20', '1', '30']);
  // The image before of a delete says something else than what is stored.
  await writer.applied(0, del(schema, row(1, 'wrong', 99), 5), put(schema, row(2, null, 20), 6));
  assert.equal(await redis.exists(`${db}:by_name:b`, `${db}:by_name:a`, `${db}:1`), 0);
  assert.deepEqual(await ranked(db), ['2']);
  // Absent columns keep their memberships.
  await writer.applied(0, put(schema, [2, 'z', undefined, undefined, undefined, undefined, undefined], 7));
  assert.deepEqual(await ranked(db), ['2']);
  assert.deepEqual(await redis.smembers(`${db}:by_name:z`), ['2']);
  await writer.applied(1, put(schema, row(2, 'stale', 1), 3));
  assert.equal(await redis.exists(`${db}:by_name:stale`), 0);
  await writer.applied(0, { kind: 'clear', table: schema, version: 100n, offset: 1 });
  assert.deepEqual(await redis.keys(`${db}:*`), []);
});

test('random changes leave exactly the memberships of the rows that are there', async () => {
  const schema = items(randomName('db'));
  const db = schema.database;
  const topic = randomName('topic');
  const rules = [
    indexed,
    { ...indexed, as: 'json' as const },
    { ...indexed, indexes: indexed.indexes?.slice(0, 1) ?? [] },
  ];
  const model = new Map<number, [string | null, number | null]>();
  let version = 0;
  const pick = (below: number): number => Math.floor(Math.random() * below);
  for (const rule of [...rules, indexed]) {
    await using writer = await writerFor(rule, {}, topic);
    for (let round = 0; round < 40; round++) {
      const ids = new Set(Array.from({ length: 4 }, () => pick(8)));
      const changes = [...ids].map((id) => {
        const name = pick(4) === 0 ? null : 'abc'.charAt(pick(3));
        const amount = pick(4) === 0 ? null : pick(100);
        const row: ColumnValue[] = [id, name, amount, '0', 0, null, null];
        if (pick(3) === 0) {
          model.delete(id);
          return del(schema, row, ++version);
        }
        model.set(id, [name, amount]);
        return put(schema, row, ++version);
      });
      await writer.applied(0, ...changes);
    }
    // Rows of an earlier rule move over when they are written again.
    await writer.applied(
      0,
      ...[...model].map(([id, [name, amount]]) => put(schema, [id, name, amount, '0', 0, null, null], ++version)),
    );
    for (const name of ['a', 'b', 'c']) {
      const ids = [...model].filter(([, row]) => row[0] === name).map(([id]) => String(id));
      assert.deepEqual((await redis.smembers(`${db}:by_name:${name}`)).sort(), ids.sort(), `${rule.as ?? 'hash'}`);
    }
    const expected = rule.indexes?.length === 2 ? [...model].filter(([, row]) => row[1] !== null) : [];
    const scores = await scored(db);
    const found = new Map(
      scores.flatMap((member, at) => (at % 2 === 0 ? [[member, scores[at + 1]]] : [])) as [string, string][],
    );
    assert.deepEqual(found, new Map([...found.keys()].map((id) => [id, String(model.get(Number(id))?.[1])])));
    assert.equal(found.size, expected.length);
  }
});

test('time to live: on the row and its version; gone again with the rule; kept with a deletion', async () => {
  const schema = items(randomName('db'));
  const db = schema.database;
  const topic = randomName('topic');
  for (const as of ['hash', 'json'] as const) {
    const id = as === 'hash' ? 1 : 2;
    const key = `${db}:${id}`;
    const base = id * 10;
    {
      await using writer = await writerFor({ as, ttlSeconds: 100 }, { deletedTtlSeconds: 50 }, topic);
      await writer.applied(0, put(schema, itemRow(id), base));
      assert.ok((await redis.ttl(key)) > 90);
      assert.ok((await redis.ttl(`mysync:v:{${key}}`)) > 140);
    }
    await using writer = await writerFor({ as }, { deletedTtlSeconds: 50 }, topic);
    await writer.applied(0, put(schema, itemRow(id), base + 1));
    assert.equal(await redis.ttl(key), -1);
    assert.equal(await redis.ttl(`mysync:v:{${key}}`), -1);
    await writer.applied(0, del(schema, itemRow(id), base + 2));
    const ttl = await redis.ttl(`mysync:v:{${key}}`);
    assert.ok(ttl > 40 && ttl <= 50);
  }
});

test('NULL as no field or an empty one; fields that left the mapping go; raw bytes', async () => {
  const schema = items(randomName('db'));
  const db = schema.database;
  const topic = randomName('topic');
  const step = async (
    version: number,
    rule: Partial<RedisTableRule>,
    row: ColumnValue[],
  ): Promise<Record<string, string>> => {
    await using writer = await writerFor(rule, {}, topic);
    await writer.applied(0, put(schema, row, version));
    return await redis.hgetall(`${db}:1`);
  };
  const fields = ['id', 'name', 'note'];
  assert.deepEqual(await step(1, { fields }, itemRow(1)), { id: '1', name: 'name 1', note: 'a note' });
  assert.deepEqual(await step(2, { fields }, itemRow(1, null)), { id: '1', note: 'a note' });
  assert.deepEqual(await step(3, { fields, nulls: 'empty' }, itemRow(1, null)), { id: '1', name: '', note: 'a note' });
  assert.deepEqual(await step(4, { fields: ['id', 'name'] }, itemRow(1)), { id: '1', name: 'name 1' });
  await step(5, { fields: ['data'], bytes: 'raw' }, itemRow(1));
  assert.deepEqual(await redis.hgetBuffer(`${db}:1`, 'data'), Buffer.from([0, 1, 255]));
});

test('from hash to JSON and back', async () => {
  const schema = items(randomName('db'));
  const topic = randomName('topic');
  for (const [version, as] of [
    [1, 'hash'],
    [2, 'json'],
    [3, 'hash'],
  ] as const) {
    await using writer = await writerFor({ as }, {}, topic);
    await writer.applied(0, put(schema, itemRow(1), version));
    assert.equal(await redis.type(`${schema.database}:1`), as === 'hash' ? 'hash' : 'string');
  }
});

test('what is not ours at the key is refused and left alone, at the row, in an index and at the marker', async () => {
  const schema = items(randomName('db'));
  const db = schema.database;
  const refusedAt = async (writer: TrialWriter, ...changes: SinkChange[]): Promise<number[]> => {
    const outcome = await writer.apply(...changes);
    assert.equal(outcome.status, 'refused');
    return outcome.status === 'refused' ? outcome.refusals.map((each) => each.index) : [];
  };
  await redis.rpush(`${db}:1`, 'x');
  await redis.set(`${db}:2`, 'x');
  await redis.hset(`${db}:3`, 'other', 'x');
  for (const rule of [{}, { ttlSeconds: 100 }]) {
    await using writer = await writerFor(rule);
    assert.deepEqual(
      await refusedAt(writer, put(schema, itemRow(1), 1), put(schema, itemRow(2), 2), put(schema, itemRow(4), 3)),
      [0, 1],
    );
    assert.deepEqual(await refusedAt(writer, del(schema, itemRow(1), 9)), [0]);
  }
  await using json = await writerFor({ as: 'json' });
  assert.deepEqual(await refusedAt(json, put(schema, itemRow(1), 1), put(schema, itemRow(3), 2)), [0, 1]);
  assert.deepEqual(await redis.lrange(`${db}:1`, 0, -1), ['x']);
  assert.equal(await redis.get(`${db}:2`), 'x');
  assert.deepEqual(await redis.hgetall(`${db}:3`), { other: 'x' });

  await redis.set(`${db}:by_name:n`, 'x');
  await using writer = await writerFor(indexed);
  assert.deepEqual(await refusedAt(writer, put(schema, itemRow(7, 'n'), 1)), [0]);
  assert.equal(await redis.exists(`${db}:7`, `mysync:v:{${db}:7}`), 0);

  await redis.set(
    `mysync:m:{0}${writer.stream.topic}:0`.replace('{0}', tagOf(await markerKeys(writer.stream.topic))),
    'x',
  );
  await assert.rejects(writer.sink.readMarker(writer.stream), { code: 'SINK_MARKER_INVALID', message: /mysync:m:/ });
  await assert.rejects(writer.apply(), { code: 'SINK_MARKER_INVALID', message: /mysync:m:/ });
});

test('a version key that is not ours is the matter of its row alone', async () => {
  const schema = items(randomName('db'));
  const db = schema.database;
  const version = (id: number): string => `mysync:v:{${db}:${id}}`;
  await redis.rpush(version(1), 'x');
  await redis.set(version(2), 'a text of somebody else, longer than a version is');
  await redis.set(version(3), 'short');
  const rules: Partial<RedisTableRule>[] = [{}, { ttlSeconds: 100 }, { as: 'json' }, indexed];
  for (const [round, rule] of rules.entries()) {
    await using writer = await writerFor(rule);
    for (const make of [put, del]) {
      const changes = [1, 2, 3, 4].map((id) => make(schema, itemRow(id), 10 * round + (make === put ? 1 : 2)));
      const outcome = await writer.apply(...changes);
      assert.ok(outcome.status === 'refused');
      assert.deepEqual(
        outcome.refusals.map(({ index, error }) => [index, isMysyncError(error) && error.code]),
        [0, 1, 2].map((index) => [index, 'SINK_WRONG_TYPE']),
      );
      const [list, text, short] = outcome.refusals.map(({ error }) => error.message);
      assert.match(list ?? '', /version key mysync:v:\{db_\w+:1\} holds a list/);
      assert.match(text ?? '', /version key mysync:v:\{db_\w+:2\} holds something else than a version/);
      assert.match(short ?? '', /version key mysync:v:\{db_\w+:3\} holds something else than a version/);
      assert.equal(await redis.exists(`${db}:1`, `${db}:2`, `${db}:3`, `${db}:4`), make === put ? 1 : 0);
    }
    // nor does it stand in the way of a TRUNCATE
    await writer.applied(0, put(schema, itemRow(4), 10 * round + 3));
    await writer.applied(0, { kind: 'clear', table: schema, version: BigInt(10 * round + 4), offset: 9 });
    assert.deepEqual(await redis.keys(`${db}:*`), []);
  }
  assert.deepEqual(await redis.lrange(version(1), 0, -1), ['x']);
  // moved away: the row comes in
  await redis.del(version(1), version(2), version(3));
  await using writer = await writerFor({});
  await writer.applied(0, put(schema, itemRow(1), 1), put(schema, itemRow(2), 1), put(schema, itemRow(3), 1));
});

async function markerKeys(topic: string): Promise<string[]> {
  const other = await writerFor({}, {}, topic);
  await other.applied(0);
  const keys = await redis.keys(`mysync:m:*${topic}:0`);
  await other.sink.close();
  return keys;
}

function tagOf(keys: string[]): string {
  return /\{.*?\}/.exec(keys[0] ?? '')?.[0] ?? '';
}

test('a row of thousands of columns', async () => {
  const base = items(randomName('db'));
  const extra = Array.from({ length: 3_990 }, (_, at) => ({
    ...(base.columns[1] as TableSchema['columns'][0]),
    name: `c${at}`,
  }));
  const schema: TableSchema = { ...base, columns: [...base.columns, ...extra] };
  const wide = (text: string): ColumnValue[] => [...itemRow(1), ...extra.map(() => text)];
  for (const [round, rule] of [{}, { ttlSeconds: 100 }].entries()) {
    await using writer = await writerFor({ key: `${round}:{database}:{key}`, ...rule });
    await writer.applied(0, put(schema, wide('a'), 1));
    await writer.applied(0, put(schema, wide('b'), 2));
    const stored = await redis.hgetall(`${round}:${schema.database}:1`);
    assert.equal(Object.keys(stored).length, schema.columns.length);
    assert.equal(stored['c3989'], 'b');
  }
});

test('a reader of the key never sees it missing or half written', async () => {
  const schema = items(randomName('db'));
  const topic = randomName('topic');
  const [hashKey, jsonKey] = [`${schema.database}:1`, `${schema.database}:2`];
  const rules: Partial<RedisTableRule>[] = [
    {},
    { ttlSeconds: 1000 },
    { fields: ['id', 'name', 'note'] },
    { nulls: 'empty' },
    indexed,
  ];
  const seed = await writerFor({}, {}, topic);
  await seed.applied(0, put(schema, itemRow(1, '0'), 1));
  await seed.sink.close();
  const reader = new Redis(address());
  let reading = true;
  let reads = 0;
  let jsonThere = false;
  const loop = (async () => {
    while (reading) {
      const wasThere: boolean = jsonThere;
      const [hash, json] = await Promise.all([reader.hgetall(hashKey), reader.get(jsonKey)]);
      assert.ok(hash['id'] === '1' && 'name' in hash, JSON.stringify(hash));
      if (json !== null) assert.equal(JSON.parse(json).id, 2);
      else assert.equal(wasThere, false);
      reads++;
    }
  })();
  let version = 1;
  for (let round = 0; round < 20; round++) {
    for (const rule of rules) {
      await using writer = await writerFor(rule, {}, topic);
      for (let times = 0; times < 10; times++) await writer.applied(0, put(schema, itemRow(1, `${times}`), ++version));
      await using json = await writerFor({ ...rule, as: 'json' }, {}, `${topic}j`);
      await json.applied(0, put(schema, itemRow(2), ++version));
      jsonThere = true;
      await json.applied(0, put(schema, itemRow(2), ++version));
    }
  }
  reading = false;
  await loop;
  reader.disconnect();
  assert.ok(reads > 100);
});
