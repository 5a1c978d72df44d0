/** What somebody else did to documents behind the sink's back, as the inspector tells and mends it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ColumnValue, TableSchema } from '@mysync/core';
import type { InspectedRow, StoredRecord } from '@mysync/sink';
import { column, del, EsBench, never, put, schema, TestWriter } from './bench.fixture.ts';
import type { ElasticsearchSink } from './sink.ts';

let bench: EsBench;
before(async () => {
  bench = await EsBench.open();
});
after(async () => {
  await bench.close();
});

/** Of a source's versions, which are greater than what somebody else's documents count from one. */
const LATE = 2 ** 30;

const table = (name: string): TableSchema =>
  schema([column('id', 'int', 'int', 1), column('v', 'int', 'int')], { table: name });

function inspected(of: TableSchema, row: readonly ColumnValue[]): InspectedRow {
  return { schema: of, key: put(of, row, 0).key, row };
}

async function started(of: TableSchema, sink: ElasticsearchSink): Promise<TestWriter> {
  await sink.prepare(of);
  const writer = new TestWriter(sink, bench.stream);
  writer.marker = await sink.readMarker(bench.stream);
  return writer;
}

async function records(sink: ElasticsearchSink, of: TableSchema): Promise<readonly StoredRecord[]> {
  const found: StoredRecord[] = [];
  for await (const page of sink.inspector.records(of, [bench.stream], never)) found.push(...page);
  return found.sort((a, b) => (a.target < b.target ? -1 : 1));
}

test('what was put behind a remembered deletion is a record, and goes; what somebody else made elsewhere is none', async () => {
  const sink = bench.sink();
  const orders = table('behind');
  const writer = await started(orders, sink);
  await writer.apply(put(orders, [1, 1], LATE), put(orders, [2, 2], LATE + 1), put(orders, [3, 3], LATE + 2));
  await writer.apply(del(orders, [1, 1], LATE + 3), del(orders, [2, 2], LATE + 4));
  const three = { target: '3', version: BigInt(LATE + 2) };
  assert.deepEqual(await records(sink, orders), [three]);
  for (const id of [1, 9]) await bench.fetch('PUT', `/${bench.prefix}-shop-behind/_doc/${id}`, { id, v: 1 });
  const phantom = { target: '1', version: BigInt(LATE + 4) };
  assert.deepEqual(await records(sink, orders), [phantom, three]);
  assert.deepEqual(await sink.inspector.find(orders, ['1', '2'], never), [phantom, null]);
  await sink.inspector.remove(orders, ['1'], BigInt(LATE + 3), never);
  assert.deepEqual(await records(sink, orders), [phantom, three]);
  await sink.inspector.remove(orders, ['1'], BigInt(LATE + 10), never);
  assert.deepEqual([...(await bench.documents(`${bench.prefix}-shop-behind`)).keys()].sort(), ['3', '9']);
  await writer.apply(put(orders, [1, 1], LATE + 9));
  assert.deepEqual(await records(sink, orders), [three]);
});

test('in an index of several tables nobody can tell whose row it would be', async () => {
  const sink = bench.sink({ index: `${bench.prefix}-shared`, id: '{table}:{key}' });
  const [one, two] = [table('one'), table('two')];
  const writer = await started(one, sink);
  await sink.prepare(two);
  await writer.apply(put(one, [1, 1], LATE), put(two, [1, 1], LATE));
  await bench.fetch('PUT', `/${bench.prefix}-shared/_doc/two:1`, { id: 1, v: 1 });
  assert.deepEqual(await records(sink, one), [{ target: 'one:1', version: BigInt(LATE) }]);
  const [verdict] = await sink.inspector.compare([inspected(two, [1, 1])], never);
  assert.deepEqual([verdict?.state, verdict?.fields], ['different', ['_mysync']]);
});

test('a row that somebody put in whole, and fields that are too much, are named and mended', async () => {
  const sink = bench.sink();
  const orders = table('named');
  const writer = await started(orders, sink);
  await writer.apply(put(orders, [1, 1], LATE), put(orders, [2, 2], LATE));
  const path = `/${bench.prefix}-shop-named`;
  await bench.fetch('PUT', `${path}/_doc/1`, { id: 1, v: 1 });
  await bench.fetch('POST', `${path}/_update/2`, { doc: { own: 1 } });
  const rows = [1, 2].map((id) => inspected(orders, [id, id]));
  const said = async (): Promise<readonly string[]> =>
    (await sink.inspector.compare(rows, never)).map(({ state, fields }) => [state, ...fields].join('; '));
  assert.deepEqual(await said(), ['different; _mysync', 'different; own (should not be there)']);
  assert.deepEqual(await sink.inspector.rewrite(bench.stream, rows, BigInt(LATE + 5), never), []);
  assert.deepEqual(await said(), ['equal', 'equal']);
});
