import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SourceTableChange } from '@mysync/source-mysql';
import { CompleteTables, type TableTurn } from './complete-tables.ts';

const at = (table: string) => ({ database: 'shop', table });

function note(
  tables: CompleteTables,
  kind: SourceTableChange['kind'],
  table: string,
  statement: string,
): TableTurn | null {
  return tables.note({ kind, table: at(table), statement, ordinal: 1 });
}

test('a table made or emptied while its changes are read is complete, a dropped or renamed one is not', () => {
  const tables = new CompleteTables(['shop.a']);
  assert.equal(note(tables, 'ddl', 't', '/* by me */ CREATE TABLE t (id INT PRIMARY KEY)'), 'begins');
  assert.deepEqual(tables.names, ['shop.a', 'shop.t']);
  assert.equal(note(tables, 'truncate', 't', 'TRUNCATE t'), 'begins');
  assert.deepEqual(tables.names, ['shop.a', 'shop.t']);
  assert.equal(note(tables, 'truncate', 't', 'DROP TABLE `t`'), 'gone');
  assert.deepEqual(tables.names, ['shop.a']);
  assert.equal(note(tables, 'truncate', 'a', '-- moved\nRENAME TABLE a TO b'), 'gone');
  assert.deepEqual(tables.names, []);
  assert.equal(note(tables, 'truncate', 'a', 'CREATE OR REPLACE TABLE a (id INT)'), 'begins');
  assert.deepEqual(tables.names, ['shop.a']);
});

test('captured tables that are not complete are named', () => {
  const tables = new CompleteTables(['shop.a']);
  const lacking = tables.lackingOf([at('b'), at('a'), at('c')]);
  assert.deepEqual(lacking, [at('b'), at('c')]);
  for (const table of lacking) tables.lack(table);
  assert.deepEqual(tables.missing, ['shop.b', 'shop.c']);
  note(tables, 'truncate', 'b', 'DROP TABLE b');
  assert.deepEqual(tables.missing, ['shop.c']);
  note(tables, 'truncate', 'c', 'TRUNCATE TABLE c');
  assert.deepEqual([tables.missing, tables.names], [[], ['shop.a', 'shop.c']]);
});

test('a table whose rows are awaited is neither complete nor missing, and complete once they are read', () => {
  const tables = new CompleteTables(['shop.a']);
  tables.awaitRows(at('a'));
  assert.deepEqual([tables.names, tables.missing], [[], []]);
  tables.hold(at('a'));
  assert.deepEqual(tables.names, ['shop.a']);
  tables.lack(at('a'));
  assert.deepEqual([tables.names, tables.missing], [[], ['shop.a']]);
});

test('CREATE TABLE IF NOT EXISTS says nothing of a table that may have been there', () => {
  const tables = new CompleteTables([]);
  const statement = 'CREATE /* x */ TABLE IF NOT EXISTS t (id INT)';
  tables.awaitRows(at('t'));
  assert.equal(note(tables, 'ddl', 't', statement), null);
  tables.lack(at('u'));
  assert.equal(note(tables, 'ddl', 'u', statement), null);
  assert.deepEqual(tables.names, []);
  assert.equal(note(tables, 'ddl', 't', 'CREATE TABLE t (id INT)'), 'begins');
  assert.equal(note(tables, 'ddl', 'v', statement), 'begins');
  assert.deepEqual(tables.names, ['shop.t', 'shop.v']);
});

test('an ALTER is told by what it does to unchanged rows', () => {
  const tables = new CompleteTables(['shop.t']);
  const change = { kind: 'ddl', table: at('t'), statement: 'ALTER TABLE t ADD x INT DEFAULT 7', ordinal: 1 } as const;
  assert.equal(tables.note({ ...change, reshapes: true }), 'reshaped');
  assert.equal(tables.note(change), null);
});

test('an index on a table says nothing of its rows', () => {
  const tables = new CompleteTables([]);
  tables.awaitRows(at('t'));
  tables.lack(at('u'));
  for (const statement of ['CREATE INDEX i ON t (a)', 'create /* TABLE */ unique index i on t (a)']) {
    assert.equal(note(tables, 'ddl', 't', statement), null);
    assert.equal(note(tables, 'ddl', 'u', statement), null);
  }
  assert.deepEqual([tables.names, tables.missing, tables.isWhole], [[], ['shop.u'], false]);
});
