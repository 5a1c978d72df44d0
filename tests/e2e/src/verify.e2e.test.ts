/** `mysync verify`: sees exactly what was spoilt in the sink, by another client, while the tables change; and mends it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pipeline, runMysync } from '@mysync/harness';
import { Cluster, Redis } from 'ioredis';

const ROWS = 3000;

interface Found {
  readonly kind: string;
  readonly target: string;
  readonly fields: readonly string[];
  readonly repaired: boolean;
}

interface Verified {
  readonly code: number | null;
  readonly tables: ReadonlyMap<
    string,
    { readonly [count: string]: number } & { readonly differences: readonly Found[] }
  >;
}

async function verify(pipeline: Pipeline, sink: string, ...more: readonly string[]): Promise<Verified> {
  const args = ['verify', '--sink', sink, '--json', '--chunk-rows', '100', '--config', pipeline.configFile, ...more];
  const { code, stdout, stderr } = await runMysync(args);
  assert.notEqual(stdout, '', stderr);
  const [report] = JSON.parse(stdout).reports;
  return { code, tables: new Map(report.tables.map((each: { table: { table: string } }) => [each.table.table, each])) };
}

/** Changes that go on until the test has ended: hot rows, and rows that come and go. */
async function keepChanging(pipeline: Pipeline, signal: AbortSignal): Promise<void> {
  const sql = await pipeline.connect();
  for (let turn = 0; !signal.aborted; turn++) {
    // a pace, so that the servers have time for others
    await new Promise((resolve) => setTimeout(resolve, 50));
    await sql.query('UPDATE plain SET n = n + 1 WHERE id < 5');
    await sql.query('INSERT INTO plain VALUES (?, ?, 0)', [1_000_000 + turn, 'comes']);
    await sql.query('DELETE FROM plain WHERE id = ?', [1_000_000 + turn - 20]);
    await sql.query('UPDATE mixed SET v = ? WHERE d = ?', [`turn ${turn}`, '1.50']);
  }
}

function byTarget(found: readonly Found[]): readonly Found[] {
  return [...found].sort((a, b) => (a.target < b.target ? -1 : 1));
}

/** Whatever may be in the key is cut into chunks and looked up again. */
const MIXED = `CREATE TABLE mixed (
  name VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL, d DECIMAL(10,2) NOT NULL, at DATETIME(6) NOT NULL,
  bytes VARBINARY(20) NOT NULL, f FLOAT NOT NULL, v VARCHAR(100), PRIMARY KEY (name, d, at, bytes, f))`;

for (const [source, redisCluster] of [
  ['mariadb', false],
  ['mysql', false],
  ['mariadb', true],
] as const) {
  test(`${source}: a spoilt Redis${redisCluster ? ' Cluster' : ''} is seen and mended while changes go on`, async () => {
    await using pipeline = await Pipeline.create({
      source,
      transport: 'log',
      sinks: ['redis'],
      redisCluster,
      keys: { mixed: ['name', 'd', 'at', 'bytes', 'f'], kinds: ['kind', 'id'] },
      config: { reader: { checkpointMs: 200 } },
    });
    const { sql, database } = pipeline;
    await sql.query('CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(100), n INT NULL)');
    await sql.query('INSERT INTO plain VALUES ?', [Array.from({ length: ROWS }, (_, id) => [id, `row ${id}`, id])]);
    await sql.query(MIXED);
    await sql.query('INSERT INTO mixed VALUES ?', [
      Array.from({ length: 700 }, (_, at) => [
        ['Äpfel', 'apfel ', "b'\\", 'É€', ''][at % 5],
        `${(at % 3) + 0.5}`,
        `2024-0${(at % 9) + 1}-00 00:00:00.00000${at % 7}`.replace('-00 ', `-0${(at % 8) + 1} `),
        Buffer.from([at >> 8, at & 255, 0]),
        at / 7,
        `v ${at}`,
      ]),
    ]);
    await sql.query(
      "CREATE TABLE kinds (kind ENUM('z','a','m') NOT NULL, id INT NOT NULL, v INT, PRIMARY KEY (kind, id))",
    );
    await sql.query('INSERT INTO kinds VALUES ?', [
      Array.from({ length: 300 }, (_, at) => [['z', 'a', 'm'][at % 3], at, at]),
    ]);
    const mysync = pipeline.start('run');
    await pipeline.equal(['plain', 'kinds']);
    await sql.query('DELETE FROM plain WHERE id = 107');
    await pipeline.equal(['plain']);
    const stop = new AbortController();
    const changes = keepChanging(pipeline, stop.signal);
    try {
      const clean = await verify(pipeline, 'redis');
      for (const [table, { differences }] of clean.tables) assert.deepEqual(differences, [], table);
      assert.equal(clean.code, 0);
      assert.equal(clean.tables.get('mixed')?.['rows'], 700);
      assert.equal(clean.tables.get('kinds')?.['equal'], 300);

      const redis =
        pipeline.redisCluster === null
          ? new Redis(pipeline.redis?.get('REDIS_URL') ?? '')
          : new Cluster([...pipeline.redisCluster.addresses]);
      const key = (id: number): string => `${database}:plain:${id}`;
      await redis.hset(key(100), 'v', 'spoilt');
      await redis.hdel(key(101), 'n', 'v');
      await redis.del(key(102), `mysync:v:{${key(102)}}`);
      await redis.del(key(103));
      for (const name of [key, (id: number): string => `mysync:v:{${key(id)}}`]) {
        const copy = await redis.dumpBuffer(name(104));
        if (copy !== null) await redis.restore(name(99_999_999), 0, copy);
      }
      await redis.expire(key(105), 5000);
      // behind its tombstone
      await redis.hset(key(107), 'id', '107', 'n', '1');
      redis.disconnect();
      const expected = [
        { kind: 'different', target: key(100), fields: ['v'] },
        { kind: 'different', target: key(101), fields: ['v', 'n'] },
        { kind: 'missing', target: key(102), fields: [] },
        { kind: 'missing', target: key(103), fields: [] },
        { kind: 'different', target: key(105), fields: ['expires: in N s (the rule has no ttlSeconds)'] },
        { kind: 'extra', target: key(107), fields: [] },
        { kind: 'extra', target: key(99_999_999), fields: [] },
      ];
      const shown = ({ kind, target, fields }: Found) => ({
        kind,
        target,
        fields: fields.map((field) => field.replace(/\d+ s /, 'N s ')),
      });
      const spoilt = await verify(pipeline, 'redis');
      assert.equal(spoilt.code, 3);
      assert.deepEqual(byTarget(spoilt.tables.get('plain')?.differences ?? []).map(shown), expected);
      assert.deepEqual(spoilt.tables.get('mixed')?.differences, []);

      const mended = await verify(pipeline, 'redis', '--repair', '--table', `${database}.plain`);
      assert.equal(mended.code, 0);
      assert.deepEqual(byTarget(mended.tables.get('plain')?.differences ?? []).map(shown), expected);
      assert.equal(mended.tables.get('plain')?.['repaired'], expected.length);
      assert.deepEqual([...mended.tables.keys()], ['plain']);
      assert.equal((await verify(pipeline, 'redis', '--table', `${database}.plain`)).code, 0);
      // what was mended takes later changes, and refuses none
      await sql.query('UPDATE plain SET v = ? WHERE id BETWEEN 100 AND 103', ['after']);
    } finally {
      stop.abort();
      await changes;
    }
    await pipeline.equal(['plain', 'kinds']);
    const again = await verify(pipeline, 'redis');
    assert.equal(again.code, 0);
    await pipeline.stopped(mysync);
    await sql.query('UPDATE plain SET n = 0 WHERE id = 7');
    const stopped = await runMysync(['verify', '--sink', 'redis', '--patience', '1', '--config', pipeline.configFile]);
    assert.equal(stopped.code, 1);
    assert.match(stopped.stderr, /VERIFY_NOTHING_RUNS/);
  });
}

test('a spoilt Elasticsearch is seen and mended while changes go on', async () => {
  await using pipeline = await Pipeline.create({
    transport: 'log',
    sinks: ['elasticsearch'],
    config: { reader: { checkpointMs: 200 } },
  });
  const { sql, database, elasticsearchUrl } = pipeline;
  await sql.query('CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(100), n BIGINT UNSIGNED NULL)');
  await sql.query('CREATE TABLE mixed (id INT PRIMARY KEY, d DECIMAL(10,2), v VARCHAR(100))');
  await sql.query('INSERT INTO plain VALUES ?', [
    Array.from({ length: ROWS }, (_, id) => [
      id,
      `row "${id}"`,
      id % 3 === 0 ? null : `18446744073709${String(id).padStart(6, '0')}`,
    ]),
  ]);
  await sql.query("INSERT INTO mixed VALUES (1, '1.50', 'x'), (2, '2.50', NULL)");
  const mysync = pipeline.start('run');
  await pipeline.equal(['mixed']);
  await sql.query('DELETE FROM plain WHERE id = 103');
  await pipeline.equal(['plain']);
  const stop = new AbortController();
  const changes = keepChanging(pipeline, stop.signal);
  const document = async (method: string, id: number, query: string, body?: string): Promise<string> => {
    const response = await fetch(`${elasticsearchUrl}/${database}-plain/_doc/${id}${query}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    assert.ok(response.ok, text);
    return text;
  };
  /** As it is stored, with its version. */
  const stored = async (id: number): Promise<{ source: string; version: string }> => {
    const text = await document('GET', id, '');
    return {
      source: text.slice(text.indexOf('"_source":') + 10, -1),
      version: /"_version":(\d+)/.exec(text)?.[1] ?? '',
    };
  };
  const put = async (id: number, source: string, version: string): Promise<void> => {
    await document('PUT', id, `?version=${version}&version_type=external_gte`, source);
  };
  try {
    const clean = await verify(pipeline, 'elasticsearch');
    assert.deepEqual(clean.tables.get('plain')?.differences, []);
    assert.equal(clean.code, 0);
    const [one, two, three] = [await stored(100), await stored(101), await stored(102)];
    await put(100, one.source.replace('row ', 'now '), one.version);
    await put(101, two.source.replace(/"n":\d+/, '"n":18446744073709000102'), two.version);
    await document('DELETE', 102, `?version=${three.version}&version_type=external_gte`);
    // behind its remembered deletion
    await document('PUT', 103, '', '{"id":103}');
    await put(99_999_999, three.source, three.version);
    const spoilt = await verify(pipeline, 'elasticsearch', '--repair');
    const found = byTarget(spoilt.tables.get('plain')?.differences ?? []);
    assert.deepEqual(
      found.map(({ kind, target, fields, repaired }) => ({ kind, target, fields, repaired })),
      [
        { kind: 'different', target: '100', fields: ['v'], repaired: true },
        { kind: 'different', target: '101', fields: ['n'], repaired: true },
        { kind: 'missing', target: '102', fields: [], repaired: true },
        { kind: 'extra', target: '103', fields: [], repaired: true },
        { kind: 'extra', target: '99999999', fields: [], repaired: true },
      ],
    );
    assert.equal(spoilt.code, 0);
    assert.equal((await stored(101)).source.includes('18446744073709000101'), true);
  } finally {
    stop.abort();
    await changes;
  }
  await pipeline.equal(['mixed', 'plain']);
  assert.equal((await verify(pipeline, 'elasticsearch')).code, 0);
  await pipeline.stopped(mysync);
});

test('rows that were spoilt behind the snapshot are mended while nothing is committed, again and again', async () => {
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], partitions: 2 });
  const { sql, redis, database } = pipeline;
  await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v TEXT)');
  await sql.query("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await pipeline.equal(['t']);
  for (let round = 0; round < 2; round += 1) {
    await redis?.client('cli', ['DEL', `${database}:t:1`]);
    await redis?.client('cli', ['HSET', `${database}:t:2`, 'v', 'spoilt']);
    const { code, stdout } = await runMysync([
      'verify',
      '--repair',
      '--sink',
      'redis',
      '--config',
      pipeline.configFile,
    ]);
    assert.equal(code, 0, stdout);
    await pipeline.equal(['t']);
  }
  await pipeline.stopped(mysync);
});

test('a table that is read in one piece is mended where more rows are missing than are looked at together', {
  timeout: 300_000,
}, async () => {
  const keys = { kinds: ['kind', 'id'] };
  await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], partitions: 2, keys });
  const { sql, redis, database } = pipeline;
  await sql.query(
    "CREATE TABLE kinds (kind ENUM('z','a') NOT NULL, id INT NOT NULL, v VARCHAR(300), PRIMARY KEY (kind, id))",
  );
  const rows = Array.from({ length: 6000 }, (_, at) => [['z', 'a'][at % 2], at, 'v'.repeat(300)]);
  await sql.query('INSERT INTO kinds VALUES ?', [rows]);
  const mysync = pipeline.start('run');
  await mysync.logged(/"msg":"reader started"/);
  await pipeline.equal(['kinds']);
  const script = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end";
  await redis?.client('cli', ['EVAL', script, '0', `${database}:kinds:*`]);
  const mended = await verify(pipeline, 'redis', '--repair');
  assert.deepEqual([mended.tables.get('kinds')?.['missing'], mended.tables.get('kinds')?.['repaired']], [6000, 6000]);
  assert.equal(mended.code, 0);
  await pipeline.equal(['kinds']);
  await pipeline.stopped(mysync);
});
