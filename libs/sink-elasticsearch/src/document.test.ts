import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ColumnValue, isMysyncError } from '@mysync/core';
import { column, put, schema } from './bench.fixture.ts';
import { compileFields, countFields, propertiesOf } from './fields.ts';
import type { ElasticsearchRule } from './options.ts';
import { TablePlan } from './plan.ts';

const table = schema([
  column('id', 'bigint unsigned', 'uint', 1),
  column('d', 'date', 'text'),
  column('s', "set('a','b')", 'text'),
  column('j', 'json', 'text'),
  column('p', 'decimal(10,2)', 'text'),
]);
const rule: ElasticsearchRule = { match: '*.*' };

function document(row: readonly ColumnValue[], more: Partial<ElasticsearchRule> = {}): string {
  const lines = new TablePlan({ ...rule, ...more }, table, '_mysync').putLines(put(table, row, 7), '"t/0"');
  if (typeof lines !== 'string') throw lines;
  const [action, source, rest] = lines.split('\n');
  assert.equal(rest, '');
  assert.equal(action, `{"index":{"_index":"shop-orders","_id":"${row[0]}","version":7,"version_type":"external"}}`);
  const head = '{"_mysync":{"stream":"t/0","database":"shop","table":"orders","version":7}';
  assert.ok(source?.startsWith(head) === true);
  return source.slice(head.length);
}

test('a document is exact text', () => {
  assert.equal(
    document([18446744073709551615n, '2024-02-29', 'a,b', '{"x": 1.0, "y": 18446744073709551615}', '-0.10']),
    ',"id":18446744073709551615,"d":"2024-02-29","s":["a","b"],"j":"{\\"x\\": 1.0, \\"y\\": 18446744073709551615}","p":"-0.10"}',
  );
  assert.equal(document([1, null, '', null, null]), ',"id":1,"d":null,"s":[],"j":null,"p":null}');
  assert.equal(document([1, undefined, undefined, undefined, undefined]), ',"id":1}');
});

test('dates that are none, by rule', () => {
  assert.equal(document([1, '2024-02-00']), ',"id":1,"d":null,"d_raw":"2024-02-00"}');
  assert.equal(document([1, '2024-02-00'], { zeroDates: 'null' }), ',"id":1,"d":null}');
  assert.throws(
    () => document([1, '2024-02-00'], { zeroDates: 'refuse' }),
    (error) => isMysyncError(error, 'SINK_VALUE_REFUSED') && error.message.includes("'d'"),
  );
  assert.equal(document([1, '2024-02-00'], { mappings: { d: { type: 'keyword' } } }), ',"id":1,"d":"2024-02-00"}');
});

test('JSON by rule: embedded only when it is JSON, and never with a line break', () => {
  assert.equal(
    document([1, null, null, '{"a":\n[1]}'], { json: 'object' }),
    ',"id":1,"d":null,"s":null,"j":{"a": [1]}}',
  );
  for (const text of ['{"a":1},"id":2', '', '{']) {
    assert.throws(
      () => document([1, null, null, text], { json: 'object' }),
      (error) => isMysyncError(error, 'SINK_VALUE_REFUSED'),
    );
  }
});

test('fields, renames, masks, sets as text', () => {
  const more: Partial<ElasticsearchRule> = {
    exclude: ['d'],
    rename: { s: 'tags.all' },
    mask: { p: 'redact' },
    sets: 'text',
  };
  assert.equal(document([1, 'x', 'a,b', null, '5'], more), ',"id":1,"tags%2Eall":"a,b","j":null,"p":"***"}');
});

test('two columns that would become one field are refused', () => {
  const collision = (names: string[], more: Partial<ElasticsearchRule> = {}): void => {
    const columns = names.map((name) => column(name, name === 'd' ? 'date' : 'int', name === 'd' ? 'text' : 'int'));
    assert.throws(
      () => compileFields({ ...rule, ...more }, schema(columns), '_mysync'),
      (error) => isMysyncError(error, 'ES_FIELD_COLLISION'),
    );
  };
  collision(['d', 'd_raw']);
  collision(['d_raw', 'd']);
  collision(['id', '_mysync']);
});

test('fields are counted as Elasticsearch does: objects and inner fields too', () => {
  const fields = compileFields(rule, schema([column('a', 'text', 'text'), column('d', 'date', 'text')]), '_mysync');
  // a, a.keyword, d, d_raw, _mysync and its four
  assert.equal(countFields(propertiesOf(fields, '_mysync')), 9);
});
