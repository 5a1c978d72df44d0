/** The table that a drill changes, on a real server: a drill under which nothing changes says so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@mysync/core';
import { DrillTable } from '@mysync/drill';
import { randomName, sharedServer } from '@mysync/harness';

test('a session is made once, also for what begins at the same time', async () => {
  const server = await sharedServer('mariadb');
  const [database, user] = [randomName('drill'), randomName('drill')];
  const sql = (statement: string): Promise<string> => server.client('sql', ['-N', '-e', statement]);
  await sql(`CREATE DATABASE ${database}; CREATE USER ${user}@'%' IDENTIFIED BY 'x'`);
  await sql(`GRANT ALL ON ${database}.* TO ${user}@'%'`);
  const table = new DrillTable({
    host: server.get('MYSQL_HOST'),
    port: Number(server.get('MYSQL_PORT')),
    user,
    password: 'x',
    table: { database, table: 'drilled' },
    clock: systemClock,
  });
  try {
    await Promise.all([table.create(), table.create()]);
    const sessions = await sql(`SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '${user}'`);
    assert.equal(sessions.trim(), '1');
  } finally {
    await table.close();
    await sql(`DROP DATABASE ${database}; DROP USER ${user}@'%'`);
  }
});

test('a table that is gone or cannot be changed ends a drill; once it is mended, changes go on', async () => {
  const server = await sharedServer('mariadb');
  const database = randomName('drill');
  const sql = (statement: string): Promise<string> => server.client('sql', ['-N', '-e', statement]);
  await sql(`CREATE DATABASE ${database}`);
  const table = new DrillTable({
    host: server.get('MYSQL_HOST'),
    port: Number(server.get('MYSQL_PORT')),
    user: server.get('MYSQL_USER'),
    password: server.get('MYSQL_PASSWORD'),
    table: { database, table: 'drilled' },
    clock: systemClock,
  });
  const stop = new AbortController();
  const { signal } = stop;
  await table.create();
  const changes = table.change(signal);
  const goesOn = (): Promise<void> =>
    table.requireChanged(table.changes, { fault: 'disk full', patienceMs: 30_000, signal });
  /** Until it stands still: what was under way may still count. */
  const standsStill = async (): Promise<void> => {
    for (;;) await table.requireChanged(table.changes, { fault: 'disk full', patienceMs: 300, signal });
  };
  try {
    await goesOn();
    await sql(`DROP TABLE ${database}.drilled`);
    await assert.rejects(standsStill(), (error: Error & { code: string; where: object }) => {
      assert.equal(error.code, 'DRILL_NOTHING_CHANGED');
      assert.match(error.message, /'disk full': .*drilled' doesn't exist/);
      assert.deepEqual(error.where, { table: `${database}.drilled`, fault: 'disk full' });
      return true;
    });
    await table.create();
    await goesOn();
    await sql(`DELETE FROM ${database}.drilled; ALTER TABLE ${database}.drilled DROP COLUMN note`);
    await assert.rejects(standsStill(), { code: 'DRILL_NOTHING_CHANGED' });
  } finally {
    stop.abort();
    await changes;
    await table.close();
    await sql(`DROP DATABASE ${database}`);
  }
});
