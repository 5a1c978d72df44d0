import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ColumnValue, isMysyncError } from '@mysync/core';
import { itemRow, items, pairs, put } from '@mysync/sink/conformance';
import type { Argument } from './connection.ts';
import { compileTable } from './mapper.ts';
import type { RedisTableRule } from './options.ts';
import { RedisSink } from './sink.ts';

const schema = items('shop');
const rule = (more: Partial<RedisTableRule> = {}): RedisTableRule => ({ match: '*.*', as: 'hash', ...more });

function encode(given: RedisTableRule, row: readonly ColumnValue[]): Argument[] {
  const args: Argument[] = [];
  compileTable(given, schema, false).encode(put(schema, row, 1), `${'0'.repeat(15)}1`, 'i'.repeat(12), args);
  return args;
}

test('a row with all its columns takes the short way, any other the general one', () => {
  assert.deepEqual(
    encode(rule({ fields: ['id', 'name'] }), itemRow(1)).filter((_, at) => at !== 5),
    [...['f', '2', 'id', 'name', 'h', '1', 'name 1']],
  );
  assert.equal(encode(rule({ as: 'json' }), itemRow(1))[0], 'j');
  assert.equal(encode(rule(), itemRow(1, null)).indexOf('g'), 2 + schema.columns.length);
  assert.equal(encode(rule({ ttlSeconds: 5 }), itemRow(1))[0], 'g');
  assert.equal(encode(rule({ as: 'json', ttlSeconds: 5 }), itemRow(1))[0], 'g');
  assert.equal(encode(rule({ mask: { name: 'redact' } }), itemRow(1))[0], 'g');
});

test('fields, names, masks, NULLs and bytes of a hash', () => {
  const given = rule({
    fields: ['id', 'name', 'data', 'note'],
    rename: { id: 'ID' },
    mask: { note: 'redact' },
    nulls: 'empty',
    bytes: 'raw',
  });
  const [, record, ...rest] = encode(given, itemRow(1, null));
  assert.match(String(record), /^0{15}1\+[0-9a-f]{8}i{12}$/);
  const data = Buffer.from([0, 1, 255]);
  assert.deepEqual(rest, ['h', '0', '', '8', 'ID', '1', 'name', '', 'data', data, 'note', '***', '0', '0']);
  assert.deepEqual(encode(rule({ fields: ['id', 'name'] }), itemRow(1, null)).slice(6), [
    'h',
    '0',
    '',
    '2',
    'id',
    '1',
    '1',
    'name',
    '0',
  ]);
  assert.deepEqual(encode(rule({ fields: ['data'], bytes: 'hex' }), itemRow(1)).slice(5), ['0001ff']);
});

test('memberships: none where a column is NULL, kept where it is absent', () => {
  const given = rule({
    fields: ['id'],
    indexes: [
      { key: 'by:{column:name}', kind: 'set' },
      { key: 'amounts', kind: 'sorted-set', score: 'amount', member: '{table}/{id}' },
    ],
  });
  const tail = (row: ColumnValue[]): Argument[] =>
    encode(given, row)
      .slice(9)
      .filter((_, at) => at % 5 !== 1 || at === 0);
  assert.deepEqual(tail(itemRow(7, 'x')), [
    '2',
    's',
    'by:x',
    '7',
    '',
    'z',
    'amounts',
    'items/7',
    '18446744073709551615',
  ]);
  assert.deepEqual(tail(itemRow(7, null)), ['1', 'z', 'amounts', 'items/7', '18446744073709551615']);
  assert.deepEqual(tail([7, undefined, null]), ['1', 'k', '', '', '']);
});

test('the shape tells rows apart that are written otherwise', () => {
  const shape = (given: RedisTableRule): string => compileTable(given, schema, false).shape;
  const shapes = [
    rule(),
    rule({ as: 'json' }),
    rule({ fields: ['id', 'name'] }),
    rule({ rename: { id: 'ID' } }),
    rule({ ttlSeconds: 5 }),
    rule({ nulls: 'empty' }),
  ].map(shape);
  assert.equal(new Set(shapes).size, shapes.length);
  assert.equal(shape(rule()), shape(rule({ match: 'shop.*' })));
});

test('what can never be applied is refused by code', () => {
  const code = (expected: string) => (error: unknown) => isMysyncError(error, expected) && error.remedy !== '';
  assert.throws(() => encode(rule({ as: 'json' }), [1, undefined]), code('REDIS_PARTIAL_ROW'));
  assert.throws(() => encode(rule({ key: '{table}' }), itemRow(1)), code('MAPPING_KEY_INCOMPLETE'));
  assert.throws(
    () => encode(rule({ indexes: [{ key: 'x', kind: 'sorted-set' }] }), itemRow(1)),
    code('REDIS_INDEX_INVALID'),
  );
  assert.throws(
    () => encode(rule({ indexes: [{ key: 'x', kind: 'set', score: 'id' }] }), itemRow(1)),
    code('REDIS_INDEX_INVALID'),
  );
  assert.throws(
    () => encode(rule({ indexes: [{ key: 'x', kind: 'sorted-set', score: 'note' }] }), itemRow(1)),
    code('REDIS_INDEX_INVALID'),
  );
});

test('in a cluster the index key must share the row key’s hash tag', () => {
  const compile = (key: string, index: string): unknown =>
    compileTable(rule({ key, partitionBy: ['name'], indexes: [{ key: index, kind: 'set' }] }), schema, true);
  const cross = (error: unknown): boolean => isMysyncError(error, 'REDIS_INDEX_CROSS_SLOT');
  assert.throws(() => compile('{table}:{key}', '{table}:by:{column:name}'), cross);
  assert.throws(() => compile('{{{key}}}:{table}', '{table}:by:{column:name}'), cross);
  compile('{{{column:name}}}:{table}:{key}', '{{{column:name}}}:all');
  compile('{{{table}}}:{key}', '{{{table}}}:by:{column:name}');
});

test('two tables may not share their keys', async () => {
  const sink = new RedisSink({ hosts: [], tables: [{ match: '*.*', as: 'hash', key: 'row:{key}' }] });
  await sink.prepare(items('a'));
  await sink.prepare(items('a'));
  const shared = (error: unknown): boolean =>
    isMysyncError(error, 'REDIS_KEY_SHARED') && /a\.items and b\.items/.test(error.message);
  await assert.rejects(sink.prepare(items('b')), shared);
  await sink.prepare(pairs('b'));
  await sink.close();
});
