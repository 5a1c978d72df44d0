import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownTables } from './known-tables.ts';

const at = (table: string): { database: string; table: string } => ({ database: 'shop', table });
const names = (tables: readonly { table: string }[]): string[] => tables.map(({ table }) => table).sort();

test('a table stays known until the transaction that drops it is acked', () => {
  const known = new KnownTables([at('a'), at('b')]);
  known.add(at('c'));
  known.gone(at('a'), 7);
  assert.deepEqual(names(known.all), ['a', 'b', 'c']);
  assert.deepEqual(names(known.behind(6)), ['a', 'b', 'c']);
  assert.deepEqual(names(known.behind(7)), ['b', 'c']);
  assert.deepEqual(names(known.all), ['b', 'c']);
});

test('one that is made again is there', () => {
  const known = new KnownTables([at('a')]);
  known.gone(at('a'), 7);
  known.add(at('a'));
  assert.deepEqual(names(known.behind(9)), ['a']);
});

test('one that nobody had heard of is known once it is dropped, until that is acked', () => {
  const known = new KnownTables([]);
  known.gone(at('a'), 3);
  assert.deepEqual(names(known.behind(2)), ['a']);
  assert.deepEqual(names(known.behind(3)), []);
});

test('one that consumers were told of as gone is forgotten at once', () => {
  const known = new KnownTables([at('a'), at('b')]);
  known.forget(at('a'));
  assert.deepEqual(names(known.all), ['b']);
});
