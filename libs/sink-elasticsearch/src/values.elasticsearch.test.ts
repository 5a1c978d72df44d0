/** Every column type on a real Elasticsearch: the mapping it makes, the source it keeps, and what a search finds. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ColumnValue, isMysyncError } from '@mysync/core';
import { column, EsBench, put, schema, TestWriter } from './bench.fixture.ts';

let bench: EsBench;
before(async () => {
  bench = await EsBench.open();
});
after(async () => {
  await bench.close();
});

const EVERY_TYPE = schema(
  [
    column('id', 'int', 'int', 1),
    column('ti', 'tinyint(1)', 'int'),
    column('big', 'bigint', 'int'),
    column('ubig', 'bigint unsigned', 'uint'),
    column('bits', 'bit(64)', 'uint'),
    column('bit1', 'bit(1)', 'uint'),
    column('y', 'year', 'uint'),
    column('f', 'float', 'float'),
    column('db', 'double', 'double'),
    column('dec', 'decimal(65,30)', 'text'),
    column('d', 'date', 'text'),
    column('dt', 'datetime(6)', 'text'),
    column('ts', 'timestamp(3)', 'text'),
    column('t', 'time(6)', 'text'),
    column('c', 'char(3)', 'text'),
    column('vc', 'varchar(64)', 'text'),
    column('vcl', 'varchar(1000)', 'text'),
    column('tx', 'mediumtext', 'text'),
    column('e', "enum('a','b')", 'text'),
    column('st', "set('a','b')", 'text'),
    column('js', 'json', 'text'),
    column('bn', 'binary(4)', 'bytes'),
    column('bl', 'blob', 'bytes'),
    column('g', 'geometry', 'bytes'),
    column('a.b', 'int', 'int'),
    column('_id', 'int', 'int'),
  ],
  { table: 'Every Type' },
);

const ROW: readonly ColumnValue[] = [
  1,
  -128,
  -9223372036854775808n,
  18446744073709551615n,
  18446744073709551614n,
  1,
  0,
  Math.fround(0.1),
  1.7976931348623157e308,
  '-0.000000000000000000000000000001',
  '0001-01-01',
  '9999-12-31 23:59:59.999999',
  '2024-03-10 02:30:00.120',
  '-838:59:59.000000',
  'a"b',
  'x',
  'the quick brown fox',
  'é日本😀\n',
  'b',
  'a,b',
  '{"a": 1.0, "b": 18446744073709551615}',
  new Uint8Array([0x11, 0, 0, 0]),
  new Uint8Array(),
  new Uint8Array([0xe6, 0x10, 0, 0, 1]),
  5,
  6,
];

test('every type: the mapping, the source, a search', async () => {
  const sink = bench.sink();
  const writer = new TestWriter(sink, bench.stream);
  await sink.prepare(EVERY_TYPE);
  assert.deepEqual(await writer.apply(put(EVERY_TYPE, ROW, 1)), { status: 'applied', stale: 0 });
  const index = `${bench.prefix}-shop-every%20type`;
  const mapping = await bench.json('GET', `/${encodeURIComponent(index)}/_mapping`);
  const { properties, dynamic } = (
    mapping[index] as { mappings: { properties: Record<string, { type: string }>; dynamic: string } }
  ).mappings;
  assert.equal(dynamic, 'false');
  const types = Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name, type]));
  delete types['_mysync'];
  assert.deepEqual(types, {
    id: 'long',
    ti: 'long',
    big: 'long',
    // the test server lacks unsigned_long; a stock one gets it (next test)
    ubig: 'keyword',
    bits: 'keyword',
    bit1: 'long',
    y: 'short',
    f: 'float',
    db: 'double',
    dec: 'keyword',
    d: 'date',
    d_raw: 'keyword',
    dt: 'date',
    dt_raw: 'keyword',
    ts: 'date',
    ts_raw: 'keyword',
    t: 'keyword',
    c: 'keyword',
    vc: 'keyword',
    vcl: 'text',
    tx: 'text',
    e: 'keyword',
    st: 'keyword',
    js: 'keyword',
    bn: 'binary',
    bl: 'binary',
    g: 'binary',
    'a%2Eb': 'long',
    '%5Fid': 'long',
  });
  const source = (await bench.documents(index)).get('1');
  assert.deepEqual(source, {
    id: '1',
    ti: '-128',
    big: '-9223372036854775808',
    ubig: '18446744073709551615',
    bits: '18446744073709551614',
    bit1: '1',
    y: '0',
    f: '0.1',
    db: '1.7976931348623157e+308',
    dec: '"-0.000000000000000000000000000001"',
    d: '"0001-01-01"',
    dt: '"9999-12-31 23:59:59.999999"',
    ts: '"2024-03-10 02:30:00.120"',
    t: '"-838:59:59.000000"',
    c: '"a\\"b"',
    vc: '"x"',
    vcl: '"the quick brown fox"',
    tx: '"é日本😀\\n"',
    e: '"b"',
    st: '["a","b"]',
    js: '"{\\"a\\": 1.0, \\"b\\": 18446744073709551615}"',
    bn: '"EQAAAA=="',
    bl: '""',
    g: '"5hAAAAE="',
    'a%2Eb': '5',
    '%5Fid': '6',
  });
  const found = async (query: unknown): Promise<unknown> => {
    const answer = await bench.json('POST', `/${encodeURIComponent(index)}/_search`, { query });
    return ((answer['hits'] as { hits: unknown[] }).hits ?? []).length;
  };
  assert.equal(await found({ term: { ubig: '18446744073709551615' } }), 1);
  assert.equal(await found({ term: { st: 'a' } }), 1);
  assert.equal(await found({ match: { vcl: 'fox' } }), 1);
  assert.equal(await found({ term: { 'vcl.keyword': 'the quick brown fox' } }), 1);
  assert.equal(await found({ range: { ts: { gte: '2024-03-10T02:30:00.120Z', lte: '2024-03-10T02:30:00.120Z' } } }), 1);
  assert.equal(await found({ range: { d: { lt: '0001-01-02' } } }), 1);
  assert.equal(await found({ term: { 'a%2Eb': 5 } }), 1);
});

test('a stock server is asked for unsigned_long first, and BIGINT UNSIGNED is nothing less', async () => {
  const { compileFields, UNSIGNED_LONG } = await import('./fields.ts');
  const fields = compileFields({ match: '*.*' }, EVERY_TYPE, '_mysync');
  const unsigned = fields.filter((field) => field.mapping === UNSIGNED_LONG).map((field) => field.name);
  assert.deepEqual(unsigned, ['ubig', 'bits']);
  assert.equal(UNSIGNED_LONG['type'], 'unsigned_long');
});

test('A8: dates that are none become null and raw text, never another day; the rest goes on', async () => {
  const table = schema(
    [
      column('id', 'int', 'int', 1),
      column('d', 'date', 'text'),
      column('dt', 'datetime', 'text'),
      column('ts', 'timestamp', 'text'),
    ],
    { table: 'zero' },
  );
  const sink = bench.sink();
  const writer = new TestWriter(sink, bench.stream);
  writer.marker = await sink.readMarker(bench.stream);
  await sink.prepare(table);
  const rows: ColumnValue[][] = [
    [1, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00'],
    [2, '2024-00-00', '2024-02-00 00:00:00', '1970-01-01 00:00:01'],
    [3, '2024-02-00', '2024-02-31 10:00:00', '2038-01-19 03:14:07'],
    [4, '2024-02-29', '1000-01-01 00:00:00', null],
  ];
  const outcome = await writer.apply(...rows.map((row, at) => put(table, row, at + 1)));
  assert.deepEqual(outcome, { status: 'applied', stale: 0 });
  const index = `${bench.prefix}-shop-zero`;
  assert.deepEqual(Object.fromEntries(await bench.documents(index)), {
    1: {
      id: '1',
      d: 'null',
      d_raw: '"0000-00-00"',
      dt: 'null',
      dt_raw: '"0000-00-00 00:00:00"',
      ts: 'null',
      ts_raw: '"0000-00-00 00:00:00"',
    },
    2: {
      id: '2',
      d: 'null',
      d_raw: '"2024-00-00"',
      dt: 'null',
      dt_raw: '"2024-02-00 00:00:00"',
      ts: '"1970-01-01 00:00:01"',
    },
    3: {
      id: '3',
      d: 'null',
      d_raw: '"2024-02-00"',
      dt: 'null',
      dt_raw: '"2024-02-31 10:00:00"',
      ts: '"2038-01-19 03:14:07"',
    },
    4: { id: '4', d: '"2024-02-29"', dt: '"1000-01-01 00:00:00"', ts: 'null' },
  });
  const answer = await bench.json('POST', `/${index}/_search`, { query: { exists: { field: 'dt' } } });
  assert.equal((answer['hits'] as { hits: unknown[] }).hits.length, 1);

  // a partial row that mends the date takes the raw text away, one that leaves it keeps both
  await writer.apply(put(table, [1, '2024-01-01', undefined, undefined], 10));
  const mended = (await bench.documents(index)).get('1');
  assert.deepEqual(mended, {
    id: '1',
    d: '"2024-01-01"',
    dt: 'null',
    dt_raw: '"0000-00-00 00:00:00"',
    ts: 'null',
    ts_raw: '"0000-00-00 00:00:00"',
  });
});

test('keys that Elasticsearch takes no id from', async () => {
  const table = schema([column('id', 'varchar(700)', 'text', 1), column('v', 'int', 'int')], { table: 'ids' });
  const sink = bench.sink();
  const writer = new TestWriter(sink, bench.stream);
  writer.marker = await sink.readMarker(bench.stream);
  await sink.prepare(table);
  const keys = ['', '~', '~~', 'x'.repeat(512), 'x'.repeat(513), 'x'.repeat(514), '日'.repeat(171), '/?#"\\', ' '];
  await writer.apply(...keys.map((key, at) => put(table, [key, at], at + 1)));
  const index = `${bench.prefix}-shop-ids`;
  const stored = [...(await bench.documents(index)).values()].map((document) => JSON.parse(document['id'] ?? ''));
  assert.deepEqual(stored.sort(), [...keys].sort());

  const strict = bench.sink({ longIds: 'refuse' });
  await strict.prepare(table);
  const second = new TestWriter(strict, bench.stream);
  second.marker = writer.marker;
  const outcome = await second.apply(put(table, ['ok', 1], 50), put(table, ['y'.repeat(513), 1], 51));
  assert.equal(outcome.status, 'refused');
  if (outcome.status !== 'refused') return;
  assert.deepEqual(
    outcome.refusals.map(({ index: at, error }) => [at, isMysyncError(error, 'SINK_VALUE_REFUSED')]),
    [[1, true]],
  );
});

test('JSON embedded by rule keeps its digits, and text that is no JSON is refused alone', async () => {
  const table = schema([column('id', 'int', 'int', 1), column('j', 'json', 'text')], { table: 'json' });
  const sink = bench.sink({ json: 'object' });
  const writer = new TestWriter(sink, bench.stream);
  writer.marker = await sink.readMarker(bench.stream);
  await sink.prepare(table);
  const texts = ['{"a": 1.0,\n"b": 18446744073709551615}', '[1, "x"]', '1.0', '"text"', 'null'];
  const good = await writer.apply(...texts.map((text, at) => put(table, [at, text], at + 1)));
  assert.deepEqual(good, { status: 'applied', stale: 0 });
  const stored = [...(await bench.documents(`${bench.prefix}-shop-json`)).values()].map((document) => document['j']);
  assert.deepEqual(
    stored.sort(),
    ['{"a": 1.0, "b": 18446744073709551615}', '[1, "x"]', '1.0', '"text"', 'null'].sort(),
  );
  const bad = await writer.apply(put(table, [7, '{"a":1},"id":9'], 20));
  assert.equal(bad.status, 'refused');
});

test('compressed requests, answers too; visible at once by rule', async () => {
  const table = schema([column('id', 'int', 'int', 1), column('a', 'text', 'text'), column('b', 'bigint', 'int')], {
    table: 'gzip',
  });
  const sink = bench.sink({ refresh: true }, { compression: true });
  const writer = new TestWriter(sink, bench.stream);
  writer.marker = await sink.readMarker(bench.stream);
  await sink.prepare(table);
  const index = `${bench.prefix}-shop-gzip`;
  await bench.fetch('PUT', `/${index}/_settings`, { 'index.refresh_interval': '-1' });
  await writer.apply(...[1, 2, 3].map((id) => put(table, [id, 'é'.repeat(5000), 9007199254740993n], id)));
  await writer.apply(...[1, 2].map((id) => put(table, [id, undefined, 9007199254740995n], 10 + id)));
  const count = await bench.json('GET', `/${index}/_count?q=b:9007199254740995`);
  assert.equal(count['count'], 2);
  const { text } = await bench.fetch('GET', `/${index}/_source/2?_source_includes=b`);
  assert.equal(text, '{"b":9007199254740995}');
});
