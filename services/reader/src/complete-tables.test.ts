import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CompleteTables } from './complete-tables.ts';

const table = { database: 'shop', table: 't' };

test('a table made while its changes are read is complete, a dropped or renamed one is not', () => {
  const tables = new CompleteTables(['shop.a']);
  tables.note({ kind: 'ddl', table, statement: '/* by me */ CREATE TABLE t (id INT PRIMARY KEY)' });
  assert.deepEqual(tables.names, ['shop.a', 'shop.t']);
  tables.note({ kind: 'truncate', table, statement: 'TRUNCATE t' });
  assert.deepEqual(tables.names, ['shop.a', 'shop.t']);
  tables.note({ kind: 'truncate', table, statement: 'DROP TABLE `t`' });
  assert.deepEqual(tables.names, ['shop.a']);
  tables.note({
    kind: 'truncate',
    table: { database: 'shop', table: 'a' },
    statement: '-- moved\nRENAME TABLE a TO b',
  });
  assert.deepEqual(tables.names, []);
});

test('captured tables without their earlier rows are named', () => {
  const tables = new CompleteTables(['shop.a']);
  tables.compare(['shop.b', 'shop.a', 'log.c']);
  assert.deepEqual(tables.missing, ['log.c', 'shop.b']);
  tables.note({ kind: 'truncate', table: { database: 'shop', table: 'b' }, statement: 'DROP TABLE b' });
  assert.deepEqual(tables.missing, ['log.c']);
});

test('a table that took a captured name is missing its rows, the former name is not', () => {
  const tables = new CompleteTables(['shop.t']);
  const statement = 'RENAME TABLE t TO t2';
  assert.equal(tables.note({ kind: 'truncate', table, statement }), null);
  assert.equal(tables.note({ kind: 'ddl', table, statement }), null);
  assert.match(
    tables.note({ kind: 'ddl', table: { database: 'shop', table: 't2' }, statement }) ?? '',
    /not in the log/,
  );
  assert.deepEqual(tables.missing, ['shop.t2']);
  assert.deepEqual(tables.names, []);
});

test('an ALTER is worth a word, a CREATE is not', () => {
  const tables = new CompleteTables(['shop.t']);
  assert.match(tables.note({ kind: 'ddl', table, statement: 'ALTER TABLE t ADD x INT DEFAULT 7' }) ?? '', /shape/);
  assert.match(tables.note({ kind: 'ddl', table, statement: '/*!50000 ALTER */ TABLE t ADD y INT' }) ?? '', /shape/);
  assert.equal(tables.note({ kind: 'ddl', table, statement: 'CREATE TABLE t (id INT)' }), null);
});
