/** The server behind the connection: another one than before, and one that waits for semi-synchronous replicas. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, silentLogger } from '@mysync/core';
import { startServer, TcpProxy, type TestServer } from '@mysync/harness';
import { FLAVORS, type Flavor, failureOf, readItems, rowsOf, TestDatabase } from './testing.fixture.ts';

/** Semi-synchronous replication on, with so short a wait that nobody's commit is held up for long. */
const SEMI_SYNC: Readonly<Record<Flavor, readonly string[]>> = {
  mariadb: ['SET GLOBAL rpl_semi_sync_master_timeout = 50', 'SET GLOBAL rpl_semi_sync_master_enabled = ON'],
  mysql: [
    "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
    'SET GLOBAL rpl_semi_sync_source_timeout = 50',
    'SET GLOBAL rpl_semi_sync_source_enabled = ON',
  ],
};
const STATUS: Readonly<Record<Flavor, string>> = { mariadb: 'Rpl_semi_sync_master', mysql: 'Rpl_semi_sync_source' };

for (const flavor of FLAVORS) {
  describe(`the server behind a source of ${flavor}`, { timeout: 120_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    before(async () => {
      server = await startServer(flavor);
      db = await TestDatabase.create(flavor, server);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY)');
    });
    after(async () => {
      await db.sql.end();
      await server.wipe();
    });

    it('a reconnect that meets another server stops the stream', async () => {
      await using other = await TestDatabase.create(flavor);
      await other.run('CREATE TABLE t (id INT PRIMARY KEY)', 'INSERT INTO t VALUES (99)');
      const proxy = await TcpProxy.open(db.port);
      const hosts = [
        { host: '127.0.0.1', port: proxy.port },
        { host: '127.0.0.1', port: other.port },
      ];
      const identity = await db.source().identify();
      const from = await db.source().currentPosition();
      await db.run('INSERT INTO t VALUES (1)');
      const ids: unknown[] = [];
      const captures = (ref: { table: string }): boolean => ref.table === 't';
      const source = db.source({ hosts, captures, logger: silentLogger });
      const stopped = failureOf(
        (async () => {
          for await (const batch of source.stream({ from, signal: new AbortController().signal })) {
            for (const row of rowsOf(batch)) ids.push(row.after?.['id']);
            if (ids.length > 0) await proxy.close();
          }
        })(),
      );
      const error = await stopped;
      assert.ok(isMysyncError(error, 'SOURCE_SERVER_CHANGED'), String(error));
      assert.equal(error.where['before'], identity.uuid);
      assert.equal(error.where['now'], (await other.source().identify()).uuid);
      assert.equal(error.where['host'], `127.0.0.1:${other.port}`);
      assert.match(error.remedy, /former server/);
      assert.deepEqual(ids, [1]);
    });

    it('semi-synchronous replication changes nothing for a client that did not ask for it', async () => {
      const source = db.source();
      const from = await source.currentPosition();
      await db.run(...SEMI_SYNC[flavor], 'INSERT INTO t VALUES (10), (11)', 'DELETE FROM t WHERE id = 10');
      const status = new Map(
        (await db.select(`SHOW STATUS LIKE '${STATUS[flavor]}%'`)).map(([name, value]) => [name, value]),
      );
      assert.equal(status.get(`${STATUS[flavor]}_clients`), '0');
      const rows = rowsOf(await readItems(source, from));
      assert.deepEqual(
        rows.map(({ operation, before, after }) => [operation, (after ?? before)?.['id']]),
        [
          ['insert', 10],
          ['insert', 11],
          ['delete', 10],
        ],
      );
      // while the stream is open, the server waits for it as little
      const stop = new AbortController();
      let waiting: unknown;
      for await (const batch of source.stream({ from: await source.currentPosition(), signal: stop.signal })) {
        if (rowsOf(batch).length > 0) stop.abort();
        else if (waiting === undefined) {
          waiting = await db.select(`SHOW STATUS LIKE '${STATUS[flavor]}_clients'`);
          await db.run('INSERT INTO t VALUES (12)');
        }
      }
      assert.deepEqual(waiting, [[`${STATUS[flavor]}_clients`, '0']]);
    });
  });
}
