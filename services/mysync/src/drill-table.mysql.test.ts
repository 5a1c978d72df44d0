/** The table that a drill changes, on a real server: a drill under which nothing changes says so. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@mysync/core';
import { DrillTable } from '@mysync/drill';
import { randomName, runMysync, sharedServer, type TestServer } from '@mysync/harness';
import { openFirst, type SourceTls } from '@mysync/source-mysql';

function tableOf(server: TestServer, database: string, user: string, password: string, tls?: SourceTls): DrillTable {
  const hosts = [{ host: server.get('MYSQL_HOST'), port: Number(server.get('MYSQL_PORT')) }];
  return new DrillTable({
    openSession: () => openFirst({ hosts, user, password, tls, connectionTimeoutMs: 10_000 }),
    user,
    table: { database, table: 'drilled' },
    clock: systemClock,
  });
}

test('a session is made once, also for what begins at the same time', async () => {
  const server = await sharedServer('mariadb');
  const [database, user] = [randomName('drill'), randomName('drill')];
  const sql = (statement: string): Promise<string> => server.client('sql', ['-N', '-e', statement]);
  await sql(`CREATE DATABASE ${database}; CREATE USER ${user}@'%' IDENTIFIED BY 'x'`);
  await sql(`GRANT ALL ON ${database}.* TO ${user}@'%'`);
  const table = tableOf(server, database, user, 'x');
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
  const table = tableOf(server, database, server.get('MYSQL_USER'), server.get('MYSQL_PASSWORD'));
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

test('a server that refuses the session is told as for every other command; one that ends it is waited for', {
  timeout: 120_000,
}, async () => {
  const server = await sharedServer('mariadb');
  const [database, user] = [randomName('drill'), randomName('drill')];
  const sql = (statement: string): Promise<string> => server.client('sql', ['-N', '-e', statement]);
  await sql(`CREATE DATABASE ${database}`);
  await sql(`CREATE USER ${user}@'%' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1`);
  const [table, second] = [tableOf(server, database, user, 'x'), tableOf(server, database, user, 'x')];
  const stop = new AbortController();
  let changes: Promise<void> | undefined;
  try {
    await assert.rejects(tableOf(server, database, user, 'wrong').create(), { code: 'SOURCE_ACCESS_DENIED' });
    await assert.rejects(tableOf(server, database, user, 'x', {}).create(), { code: 'SOURCE_TLS_FAILED' });
    await assert.rejects(table.create(), { code: 'DRILL_TABLE_DENIED', where: { table: `${database}.drilled` } });
    await sql(`GRANT ALL ON ${database}.* TO ${user}@'%'`);
    await table.create();
    await assert.rejects(second.create(), (error: Error & { code: string; cause: { code: string } }) => {
      assert.deepEqual([error.code, error.cause.code], ['SOURCE_UNREACHABLE', 'ER_USER_LIMIT_REACHED']);
      return true;
    });
    changes = table.change(stop.signal);
    for (let at = 0; at < 3; at += 1) {
      await sql(`KILL USER ${user}`);
      await table.requireChanged(table.changes, { fault: 'killed', patienceMs: 30_000, signal: stop.signal });
    }
    await sql(`ALTER USER ${user}@'%' ACCOUNT LOCK; KILL USER ${user}`);
    await assert.rejects(changes, { code: 'SOURCE_ACCESS_DENIED' });
  } finally {
    stop.abort();
    await changes?.catch(() => undefined);
    await table.close();
    await sql(`DROP DATABASE ${database}; DROP USER ${user}@'%'`);
  }
});

test('the drill writes to the first host that answers; a refused --user is told as such', async () => {
  const server = await sharedServer('mariadb');
  const database = randomName('drill');
  const folder = mkdtempSync(join(tmpdir(), 'mysync-drill-'));
  const path = join(folder, 'mysync.yaml');
  const source = {
    hosts: ['127.0.0.1:1', `${server.get('MYSQL_HOST')}:${server.get('MYSQL_PORT')}`],
    user: server.get('MYSQL_USER'),
    password: { env: 'SHOP_PASSWORD' },
    tables: `${database}.*`,
  };
  const config = {
    sources: { shop: source },
    transport: { log: { path: join(folder, 'log') } },
    checkpoint: { path: join(folder, 'checkpoints') },
    sinks: { cache: { kind: 'redis', hosts: '127.0.0.1:1', tables: [{ match: `${database}.*` }] } },
    telemetry: { port: 0 },
  };
  writeFileSync(path, JSON.stringify(config));
  await server.client('sql', ['-N', '-e', `CREATE DATABASE ${database}; CREATE TABLE ${database}.mine (id INT)`]);
  const drill = (...more: string[]): ReturnType<typeof runMysync> =>
    runMysync(
      [
        'drill',
        '--sink',
        'cache',
        '--table',
        `${database}.mine`,
        '--folder',
        join(folder, 'drill'),
        '-c',
        path,
        ...more,
      ],
      { env: { SHOP_PASSWORD: server.get('MYSQL_PASSWORD') } },
    );
  try {
    assert.match((await drill()).stderr, /^DRILL_TABLE_FOREIGN: /m);
    const refused = await drill('--user', 'nobody_of_this_name');
    assert.match(refused.stderr, /^DRILL_TABLE_DENIED: .* refuses user 'nobody_of_this_name'/m);
    assert.match(refused.stderr, /what to do: Correct --user and the password in --password-file/);
  } finally {
    rmSync(folder, { recursive: true });
    await server.client('sql', ['-N', '-e', `DROP DATABASE ${database}`]);
  }
});
