import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Column } from '@mysync/core';
import { makeTableSchema } from '@mysync/wire';
import { sameKeyColumns } from './key-columns.ts';

const column = (name: string, type: string, keyPosition: number): Column => ({
  name,
  type,
  kind: /int/.test(type) ? (/unsigned/.test(type) ? 'uint' : 'int') : 'text',
  keyPosition,
  nullable: false,
  charset: /char/.test(type) ? 'utf8mb4' : '',
  members: [],
});
const schema = (...columns: readonly Column[]) =>
  makeTableSchema({
    database: 'd',
    table: 't',
    columns,
    keyRule: columns.some((c) => c.keyPosition > 0) ? 'primary' : 'row-hash',
  });
const pair = (a: string, b: string) => sameKeyColumns(schema(column('id', a, 1)), schema(column('id', b, 1)));

test('a key is the same as long as its values are spelled alike', () => {
  assert.ok(pair('int', 'bigint unsigned'));
  assert.ok(pair('varchar(10)', 'char(20)'));
  assert.ok(pair('decimal(10,2)', 'decimal(10,2)'));
  assert.ok(!pair('decimal(10,2)', 'decimal(10,3)'), 'its text has another digit');
  assert.ok(!pair('varchar(10)', 'int'));
  assert.ok(!pair('datetime', 'datetime(6)'));
  assert.ok(!pair('datetime', 'timestamp'));
});

test('its columns and their order count, others do not', () => {
  const [a, b] = [column('a', 'int', 1), column('b', 'int', 2)];
  const [late, early] = [column('a', 'int', 2), column('b', 'int', 1)];
  assert.ok(sameKeyColumns(schema(a, b), schema(b, column('fresh', 'int', 0), a)));
  assert.ok(!sameKeyColumns(schema(a, b), schema(late, early)));
  assert.ok(!sameKeyColumns(schema(a, b), schema(a)));
  assert.ok(!sameKeyColumns(schema(a), schema(column('renamed', 'int', 1))));
  assert.ok(
    !sameKeyColumns(schema(column('a', 'int', 0)), schema(column('a', 'int', 0))),
    'rows without a key have no name',
  );
});
