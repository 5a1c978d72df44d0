import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TableRef } from '@mysync/core';
import { checkRowImage, checkTableImage } from './row-image.ts';

const tables = ['a', 'b', 'c', 'd'].map((table) => ({ database: 'shop', table }));
const halting =
  (...names: readonly string[]) =>
  (ref: TableRef) =>
    ({ noKey: 'row-hash', onPartialRow: names.includes(ref.table) ? 'halt' : 'reread' }) as const;

test('an image that is not full costs questions, or halts', () => {
  assert.equal(checkRowImage('FULL', tables, halting('a')).level, 'ok');
  const costly = checkRowImage('NOBLOB', tables, halting());
  assert.equal(costly.level, 'warning');
  assert.match(costly.message, /NOBLOB: rows that the log does not hold whole are read again/);
  const halts = checkRowImage('MINIMAL', tables, halting('a', 'b', 'c', 'd'));
  assert.equal(halts.level, 'error');
  assert.match(halts.message, /shop\.a, shop\.b, shop\.c and 1 more/);
  assert.match(halts.remedy, /SET GLOBAL binlog_row_image = 'FULL'.*onPartialRow/);
});

test('a table whose images would not tell which record they change', () => {
  const facts = { flavor: 'mysql' } as Parameters<typeof checkTableImage>[0]['facts'];
  const key = { rule: 'primary', columns: ['id'] } as const;
  const of = (more: Partial<Parameters<typeof checkTableImage>[0]>) =>
    checkTableImage({ image: 'MINIMAL', facts, name: 'shop.a', key, partitionBy: [], ...more }).map(
      ({ message }) => message,
    );
  assert.deepEqual(of({}), []);
  assert.deepEqual(of({ partitionBy: ['id'] }), []);
  assert.match(of({ partitionBy: ['customer'] }).join(), /do not hold customer/);
  assert.deepEqual(of({ partitionBy: ['customer'], image: 'NOBLOB' }), []);
  const none = { rule: 'row-hash', columns: [] } as const;
  assert.match(of({ key: none }).join(), /has no key: an INSERT that leaves out columns/);
  assert.deepEqual(of({ key: none, facts: { ...facts, flavor: 'mariadb' } }), []);
});
