import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayLock, parseGrants } from './grants.ts';

// Lines as MySQL 8.0 prints them.
const LINES = [
  'GRANT SELECT, REPLICATION SLAVE ON *.* TO `u`@`%`',
  'GRANT LOCK TABLES ON `shop`.* TO `u`@`%`',
  'GRANT SELECT, LOCK TABLES ON `a\\_b%`.* TO `u`@`%`',
  'GRANT ALL PRIVILEGES ON `mine`.* TO `u`@`%`',
  'GRANT SELECT ON `other`.`t` TO `u`@`%`',
  'GRANT EXECUTE ON PROCEDURE `other`.`p` TO `u`@`%`',
  '`role`@`%` TO `u`@`%`',
];

test('grants are read on every level', () => {
  const on = parseGrants(LINES);
  assert.deepEqual([...(on.get('*.*') ?? [])], ['SELECT', 'REPLICATION SLAVE']);
  assert.deepEqual([...(on.get('`other`.`t`') ?? [])], ['SELECT']);
  assert.equal(on.size, 5);
});

test('LOCK TABLES holds for the databases that a grant names', () => {
  const on = parseGrants(LINES);
  for (const name of ['shop', 'mine', 'a_b', 'a_bc']) assert.equal(mayLock(on, name), true, name);
  for (const name of ['shopp', 'axb', 'other']) assert.equal(mayLock(on, name), false, name);
  assert.equal(mayLock(parseGrants(['GRANT LOCK TABLES ON *.* TO `u`@`%`']), 'any'), true);
});
