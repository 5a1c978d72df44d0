/** F6. Which version has which statement: MySQL's release notes of 8.0.22, 8.2.0 and 8.4.0. No server of them is at hand: their facts are made up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lockingClause, showLogStatus, showReplicas } from './dialect.ts';
import type { ServerFacts } from './session.ts';

const facts = (flavor: 'mysql' | 'mariadb', versionNumber: number): ServerFacts => ({
  flavor,
  versionNumber,
  version: '',
  uuid: '',
  host: { host: '', port: 0 },
});

test('F6: the statement for the end of the log', () => {
  const statement = (version: number): string => showLogStatus(facts('mysql', version));
  assert.equal(statement(80_001), 'SHOW MASTER STATUS');
  assert.equal(statement(80_045), 'SHOW MASTER STATUS');
  assert.equal(statement(80_100), 'SHOW MASTER STATUS');
  assert.equal(statement(80_200), 'SHOW BINARY LOG STATUS');
  assert.equal(statement(80_400), 'SHOW BINARY LOG STATUS');
  assert.equal(statement(90_704), 'SHOW BINARY LOG STATUS');
  // its versions have higher numbers, and keep the old statement
  for (const version of [100_500, 101_119, 110_809]) {
    assert.equal(showLogStatus(facts('mariadb', version)), 'SHOW MASTER STATUS');
  }
});

test('F6: the statement for connected replicas', () => {
  assert.equal(showReplicas(facts('mysql', 80_021)), 'SHOW SLAVE HOSTS');
  for (const version of [80_022, 80_045, 80_200, 80_400, 90_704]) {
    assert.equal(showReplicas(facts('mysql', version)), 'SHOW REPLICAS');
  }
  assert.equal(showReplicas(facts('mariadb', 110_809)), 'SHOW SLAVE HOSTS');
});

test('F6: rows are locked as a user with SELECT alone may', () => {
  assert.deepEqual(lockingClause(facts('mysql', 80_021)), { waiting: ' LOCK IN SHARE MODE', skipping: undefined });
  for (const version of [80_022, 80_200, 80_400]) {
    assert.equal(lockingClause(facts('mysql', version)).skipping, ' FOR SHARE SKIP LOCKED');
  }
  assert.equal(lockingClause(facts('mariadb', 100_500)).skipping, undefined);
  assert.equal(lockingClause(facts('mariadb', 100_600)).skipping, ' LOCK IN SHARE MODE SKIP LOCKED');
});
