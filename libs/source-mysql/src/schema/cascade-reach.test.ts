/** How far foreign keys reach: InnoDB's rules, of which the tests on its server (cascades.mysql.test.ts) try the usual ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type TableRef, tableRefKey } from '@mysync/core';
import { CascadeReach } from './cascade-reach.ts';
import type { ForeignKey } from './foreign-keys.ts';

const ref = (name: string): TableRef => ({ database: 'd', table: name });

/** `child.column > parent.column delete update` */
function key(text: string): ForeignKey {
  const [from = '', , to = '', onDelete, onUpdate] = text.split(' ');
  const [child = '', column] = from.split('.');
  const [parent = '', referred] = to.split('.');
  const action = (word: string | undefined): ForeignKey['onDelete'] =>
    word === 'deletes' || word === 'updates' ? word : null;
  return {
    name: text,
    child: ref(child),
    parent: ref(parent),
    columns: column === undefined ? [] : [column],
    referred: referred === undefined ? [] : [{ name: referred, index: 0 }],
    onDelete: action(onDelete),
    onUpdate: action(onUpdate),
  };
}

function reachOf(keys: readonly string[], captured?: string): CascadeReach {
  return new CascadeReach({
    keys: keys.map(key),
    captures: ({ table }) => captured === undefined || captured.includes(table),
    fold: ({ database, table }) => ({ database, table: table.toLowerCase() }),
  });
}

const names = (tables: readonly TableRef[] | undefined): string =>
  (tables ?? [])
    .map(({ table }) => table)
    .sort()
    .join('');

test('a deletion goes on as deletion, or as a change of the columns that are emptied', () => {
  const reach = reachOf([
    'b.p > a.id deletes -',
    'c.p > b.id deletes -',
    'd.p > c.id updates -',
    'e.p > d.id deletes updates',
    'f.p > d.p - updates',
  ]);
  assert.equal(names(reach.of(ref('a'))?.byDelete), 'bcdf');
  assert.equal(names(reach.of(ref('d'))?.byDelete), 'e');
  assert.deepEqual(reach.of(ref('a'))?.byUpdate, []);
  assert.equal(reach.of(ref('f')), undefined);
});

test('an update goes on through the column that it changes', () => {
  const reach = reachOf([
    'b.p > a.id - updates',
    'c.p > b.p - updates',
    'd.p > b.id - updates',
    'e.p > a.code - updates',
  ]);
  const groups = reach.of(ref('a'))?.byUpdate.map(({ columns, tables }) => `${columns[0]?.name}: ${names(tables)}`);
  assert.deepEqual(groups, ['id: bc', 'code: e']);
});

test('only tables that are captured are told, also behind others', () => {
  assert.equal(names(reachOf(['b.p > a.id deletes -', 'c.p > b.id deletes -'], 'c').of(ref('a'))?.byDelete), 'c');
  assert.equal(reachOf(['b.p > a.id deletes -'], 'a').isEmpty, true);
});

test('circles end; a table that is its own parent is reached by deletions only', () => {
  const reach = reachOf(['a.p > a.id deletes updates', 'b.p > a.id deletes -', 'a.q > b.id updates updates']);
  assert.equal(names(reach.of(ref('a'))?.byDelete), 'ab');
  assert.deepEqual(reach.of(ref('a'))?.byUpdate, []);
  assert.equal(names(reach.of(ref('b'))?.byDelete), 'a');
});

test('columns that are not known are any', () => {
  const reach = reachOf(['b > a - updates', 'c.p > b.x - updates']);
  assert.equal(names(reach.of(ref('a'))?.byUpdate[0]?.tables), 'bc');
});

test('names are folded as the log has them', () => {
  const reach = reachOf(['B.p > A.id deletes -']);
  assert.deepEqual(reach.of(ref('a'))?.byDelete.map(tableRefKey), ['d\0b']);
  assert.equal(names(reach.below(ref('a'))), 'b');
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => reach.mentions(ref(name))),
    [true, true, false],
  );
  assert.equal(names(reach.belowDatabase('d')), 'b');
  assert.equal(names(reach.belowDatabase('other')), '');
});
