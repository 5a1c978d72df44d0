/** Making, extending and guarding indices, on a real Elasticsearch. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { column, del, EsBench, put, schema, TestWriter } from './bench.fixture.ts';

let bench: EsBench;
before(async () => {
  bench = await EsBench.open();
});
after(async () => {
  await bench.close();
});

const code =
  (expected: string) =>
  (error: unknown): boolean =>
    isMysyncError(error, expected) && error.remedy !== '' && !error.retriable;

const two = (table: string, extra: readonly ReturnType<typeof column>[] = []) =>
  schema([column('id', 'int', 'int', 1), column('v', 'int', 'int'), ...extra], { table });

async function writerOf(sink: ReturnType<EsBench['sink']>): Promise<TestWriter> {
  const writer = new TestWriter(sink, bench.stream);
  writer.marker = await sink.readMarker(bench.stream);
  return writer;
}

test('tables whose names become one are refused, also across processes', async () => {
  await bench.sink().prepare(two('T'));
  await assert.rejects(bench.sink().prepare(two('t')), (error) => {
    assert.ok(code('ES_INDEX_COLLISION')(error));
    assert.match(String(error), /shop\.T and shop\.t/);
    return true;
  });
  await bench.sink().prepare(two('T', [column('w', 'int', 'int')]));
});

test('two tables may share an index when their ids keep them apart; a clear takes only its own rows', async () => {
  const rule = { index: `${bench.prefix}-orders`, id: '{database}.{table}:{key}' };
  const sink = bench.sink(rule);
  const [first, second] = [two('order_1'), two('order_2')];
  await sink.prepare(first);
  await sink.prepare(second);
  const writer = await writerOf(sink);
  await writer.apply(put(first, [1, 1], 1), put(second, [1, 2], 2), put(first, [2, 3], 3));
  assert.deepEqual([...(await bench.documents(rule.index)).keys()].sort(), [
    'shop.order_1:1',
    'shop.order_1:2',
    'shop.order_2:1',
  ]);
  await writer.apply({ kind: 'clear', table: first, version: 9n, offset: 9 });
  assert.deepEqual([...(await bench.documents(rule.index)).keys()], ['shop.order_2:1']);
  await assert.rejects(
    bench.sink({ ...rule, id: '{table}:{key}' }).prepare(two('order_3')),
    code('ES_INDEX_COLLISION'),
  );
  await assert.rejects(bench.sink({ ...rule, id: '{key}' }).prepare(two('order_3')), code('ES_INDEX_COLLISION'));
});

test('an index that Elasticsearch reserves for data streams is made as an index all the same', async () => {
  const pattern = `${bench.prefix}-logs-*-*`;
  const name = `mysync-${bench.prefix}-stream`;
  const made = await bench.fetch('PUT', `/_index_template/${name}`, {
    index_patterns: [pattern],
    priority: 100,
    template: { settings: { 'index.number_of_shards': 3 } },
  });
  assert.equal(made.status, 200);
  const sink = bench.sink({ index: `${bench.prefix}-logs-a-b` });
  await sink.prepare(two('logs'));
  const settings = await bench.json('GET', `/${bench.prefix}-logs-a-b/_settings?flat_settings=true`);
  const [{ settings: flat }] = Object.values(settings) as [{ settings: Record<string, string> }];
  assert.equal(flat['index.number_of_shards'], '1');
  assert.equal(flat['index.gc_deletes'], '3600s');
});

test('an index that is there: gc_deletes is raised, fields are added, other fields and _meta stay', async () => {
  const index = `${bench.prefix}-shop-there`;
  await bench.fetch('PUT', `/${index}`, {
    mappings: { _meta: { owner: 'search team' }, properties: { v: { type: 'keyword' }, mine: { type: 'text' } } },
  });
  const sink = bench.sink();
  const before = await sink.check();
  assert.ok(before.every((finding) => finding.level !== 'error'));
  await sink.prepare(two('there', [column('w', 'date', 'text')]));
  const info = (await bench.json('GET', `/${index}?flat_settings=true`))[index] as {
    settings: Record<string, string>;
    mappings: { _meta: Record<string, unknown>; properties: Record<string, { type: string }> };
  };
  assert.equal(info.settings['index.gc_deletes'], '3600s');
  assert.equal(info.mappings.properties['v']?.type, 'keyword');
  assert.equal(info.mappings.properties['w']?.type, 'date');
  assert.equal(info.mappings.properties['mine']?.type, 'text');
  assert.equal(info.mappings._meta['owner'], 'search team');

  await bench.fetch('PUT', `/${index}/_settings`, { 'index.gc_deletes': '1m', 'index.translog.durability': 'async' });
  const findings = await sink.check();
  const codes = findings.filter((finding) => finding.message.includes(index)).map((finding) => finding.code);
  assert.deepEqual(codes, ['ES_GC_DELETES_LOW', 'ES_TRANSLOG_ASYNC']);
  assert.ok(findings.every((finding) => finding.level === 'ok' || finding.remedy !== ''));
  await bench.fetch('PUT', `/${index}/_settings`, { 'index.gc_deletes': '2h', 'index.translog.durability': null });
  await bench.sink().prepare(two('there', [column('w', 'date', 'text')]));
  const kept = await bench.json('GET', `/${index}/_settings?flat_settings=true`);
  assert.equal((kept[index] as typeof info).settings['index.gc_deletes'], '2h');
});

test('H1: a value that does not fit its field is refused alone; after a new type the old field decides', async () => {
  const sink = bench.sink();
  const before = two('h1');
  const after = schema([column('id', 'int', 'int', 1), column('v', 'varchar(20)', 'text')], { table: 'h1' });
  await sink.prepare(before);
  const writer = await writerOf(sink);
  await writer.apply(put(before, [1, 1], 1));
  await sink.prepare(after);
  const batch = writer.batch(
    put(after, [1, 'abc'], 2),
    put(after, [2, '12'], 3),
    put(before, [3, 7], 4),
    del(before, [9, 0], 5),
  );
  const outcome = await writer.send(batch);
  assert.equal(outcome.status, 'refused');
  if (outcome.status !== 'refused') return;
  // Text is not taken for a number, even where it looks like one.
  assert.deepEqual(
    outcome.refusals.map((refusal) => refusal.index),
    [0, 1],
  );
  const [first] = outcome.refusals;
  assert.ok(isMysyncError(first?.error, 'SINK_VALUE_REFUSED'));
  assert.equal(first.error.where['id'], '1');
  assert.equal(first.error.where['table'], 'shop.h1');
  assert.match(String(first.error.cause), /failed to parse field \[v\]/);
  assert.equal(await sink.readMarker(bench.stream), writer.marker);
  const documents = await bench.documents(`${bench.prefix}-shop-h1`);
  assert.deepEqual(Object.fromEntries(documents), { 1: { id: '1', v: '1' }, 3: { id: '3', v: '7' } });
  // Without them the rest goes through.
  const mended = await writer.send({ ...batch, changes: batch.changes.slice(2) });
  assert.deepEqual(mended, { status: 'applied', stale: 0 });
});

test('a wide table: over the limit of fields is an error with the number, raised by a setting', async () => {
  const columns = Array.from({ length: 1000 }, (_, at) => column(`c${at}`, 'int', 'int'));
  const wide = two('wide', columns);
  await assert.rejects(bench.sink().prepare(wide), (error) => {
    assert.ok(code('ES_TOO_MANY_FIELDS')(error));
    assert.match(String(error), /1007 fields; its limit is 1000/);
    return true;
  });
  await bench.sink({ settings: { 'index.mapping.total_fields.limit': 1007 } }).prepare(wide);
  const grown = two('wide', [...columns, column('one_more', 'int', 'int')]);
  await assert.rejects(bench.sink().prepare(grown), code('ES_TOO_MANY_FIELDS'));
});

test('a mapping or setting that Elasticsearch refuses is an error with its reason', async () => {
  const sink = bench.sink({ mappings: { v: { type: 'no_such_type' } } });
  await assert.rejects(sink.prepare(two('badmap')), (error) => {
    assert.ok(code('ES_MAPPING_REFUSED')(error));
    assert.match(String(error), /no_such_type/);
    return true;
  });
  await assert.rejects(
    bench.sink({ settings: { 'index.no_such': 1 } }).prepare(two('badset')),
    code('ES_MAPPING_REFUSED'),
  );
  await assert.rejects(
    bench.sink({ mappings: { nope: { type: 'long' } } }).prepare(two('x')),
    code('MAPPING_COLUMN_UNKNOWN'),
  );
});

test('a deleted index is not filled by half in silence: neither while running nor after a restart', async () => {
  const sink = bench.sink();
  const table = two('lost');
  await sink.prepare(table);
  const writer = await writerOf(sink);
  await writer.apply(put(table, [1, 1], 1));
  await bench.fetch('DELETE', `/${bench.prefix}-shop-lost`);
  await assert.rejects(writer.apply(put(table, [2, 2], 2)), code('ES_INDEX_LOST'));
  await assert.rejects(bench.sink().prepare(table), code('ES_INDEX_LOST'));
  // Somebody makes it anew, empty.
  await bench.fetch('PUT', `/${bench.prefix}-shop-lost`);
  await assert.rejects(bench.sink().prepare(table), code('ES_INDEX_LOST'));
  // Rebuilt as the remedy says (document by document: the test server lacks _delete_by_query).
  await bench.fetch('POST', `/${bench.markerIndex}/_refresh`);
  const found = await bench.json('POST', `/${bench.markerIndex}/_search`, {
    query: { term: { sink: bench.prefix } },
    size: 100,
  });
  for (const { _id } of (found['hits'] as { hits: { _id: string }[] }).hits) {
    await bench.fetch('DELETE', `/${bench.markerIndex}/_doc/${encodeURIComponent(_id)}`);
  }
  const again = bench.sink();
  assert.equal(await again.readMarker(bench.stream), null);
  await again.prepare(table);
});

test('strict by rule: a field that nobody mapped is refused', async () => {
  const sink = bench.sink({ dynamic: 'strict' });
  const table = two('strict');
  await sink.prepare(table);
  const { status, text } = await bench.fetch('PUT', `/${bench.prefix}-shop-strict/_doc/1`, { other: 1 });
  assert.equal(status, 400);
  assert.match(text, /strict_dynamic_mapping_exception/);
});

test('an alias stands for its index', async () => {
  await bench.fetch('PUT', `/${bench.prefix}-real-1`, { aliases: { [`${bench.prefix}-shop-aliased`]: {} } });
  const sink = bench.sink();
  const table = two('aliased');
  await sink.prepare(table);
  const writer = await writerOf(sink);
  await writer.apply(put(table, [1, 1], 1), put(table, [2, 1], 2));
  await writer.apply({ kind: 'clear', table, version: 2n, offset: 3 });
  assert.deepEqual([...(await bench.documents(`${bench.prefix}-real-1`)).keys()], ['2']);
});

test('clear of a table that was never seen is done', async () => {
  const writer = await writerOf(bench.sink());
  const table = { database: 'shop', table: 'never' };
  assert.deepEqual(await writer.apply({ kind: 'clear', table, version: 2n, offset: 3 }), {
    status: 'applied',
    stale: 0,
  });
});
