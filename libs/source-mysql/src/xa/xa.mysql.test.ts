/** Case D5: rows of XA transactions, over restarts of reader and server, wherever reading begins. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, type SourcePosition } from '@mysync/core';
import { startServer, type TestServer } from '@mysync/harness';
import { MessageDecoder } from '@mysync/wire';
import type { Connection } from 'mysql2/promise';
import type { BinlogSource, SourceItem } from '../port.ts';
import {
  connect,
  FLAVORS,
  failureOf,
  readItems,
  readSnapshot,
  replay,
  rowsOf,
  saidBy,
  TestDatabase,
} from '../testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`XA transactions on ${flavor}`, { timeout: 170_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    let source: BinlogSource;
    let sessions: Connection[] = [];

    before(async () => {
      server = await startServer(flavor);
      db = await TestDatabase.create(flavor, server);
      source = db.source();
    });
    after(async () => {
      for (const session of sessions) session.destroy();
      await db.sql.end();
      await server.wipe();
    });

    /** Prepares in a session of its own, and leaves it there. */
    async function prepare(xid: string, ...statements: readonly string[]): Promise<void> {
      const session = await connect(server);
      sessions.push(session);
      await session.query(`USE ${db.name}`);
      for (const statement of [`XA START ${xid}`, ...statements, `XA END ${xid}`, `XA PREPARE ${xid}`]) {
        await session.query(statement);
      }
      if (flavor === 'mariadb') detached.set(xid, session);
    }
    /** MariaDB lets only the session that prepared end it, until that one is gone. */
    const detached = new Map<string, Connection>();
    async function finish(how: 'COMMIT' | 'ROLLBACK', xid: string): Promise<void> {
      const owner = detached.get(xid);
      if (owner === undefined) {
        for (const session of sessions) session.destroy();
        sessions = [];
        await retried(() => db.run(`XA ${how} ${xid}`));
      } else await owner.query(`XA ${how} ${xid}`);
    }
    async function retried(work: () => Promise<void>): Promise<void> {
      // the server notices a little later that the session which prepared it is gone
      for (let i = 0; ; i += 1) {
        try {
          await work();
          return;
        } catch (error) {
          if (i === 50) throw error;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    }
    const shown = (items: readonly SourceItem[]): string[] =>
      rowsOf(items).map((row) => `${row.operation}${row.ordinal} ${row.after?.['id'] ?? row.before?.['id']}`);
    const resumable = (items: readonly SourceItem[]): SourcePosition[] =>
      items.flatMap((item) => (item.kind === 'commit' || item.kind === 'keepalive' ? [item.position] : []));

    it('shows rows at XA COMMIT, in the order of commits, and never after XA ROLLBACK, wherever reading begins', async () => {
      await db.run('CREATE TABLE t (id INT PRIMARY KEY, v INT)');
      const from = await source.currentPosition();
      await prepare("'a1'", 'INSERT INTO t VALUES (1, 1), (2, 1)', 'UPDATE t SET v = 2 WHERE id = 2');
      await prepare("'a2','b',7", 'INSERT INTO t VALUES (3, 1)');
      await db.run('INSERT INTO t VALUES (4, 1)');
      await finish('ROLLBACK', "'a2','b',7");
      await db.run('INSERT INTO t VALUES (5, 1)', 'FLUSH BINARY LOGS');
      await finish('COMMIT', "'a1'");
      await db.run('INSERT INTO t VALUES (6, 1)');
      const items = await readItems(source, from);
      assert.deepEqual(shown(items), ['insert1 4', 'insert1 5', 'insert1 1', 'insert2 2', 'update3 2', 'insert1 6']);
      assert.deepEqual(
        [...replay(items).values()].map((row) => `${row.after?.['id']}=${row.after?.['v']}`).sort(),
        (await db.select('SELECT id, v FROM t ORDER BY id')).map(([id, v]) => `${id}=${v}`),
      );
      // a row says where it stands, its transaction where it took effect
      const committed = items.find((item) => item.kind === 'begin' && item.id.file !== from.file);
      assert.ok(committed?.kind === 'begin');
      for (const item of items) {
        if (item.kind !== 'row') continue;
        const message = new MessageDecoder().decode(item.payload);
        assert.ok('source' in message);
        const { change, eventFile } = message.source;
        const isPrepared = item.ordinal > 1 || rowsOf([item])[0]?.after?.['id'] === 1;
        assert.equal(eventFile, isPrepared ? from.file : change.file);
        if (isPrepared) assert.deepEqual(change, { ...committed.id, ordinal: item.ordinal });
      }
      // from every place where reading may resume the rest is the same, as names, ordinals and bytes
      let begun = 0;
      for (const position of resumable(items)) {
        const rest = saidBy(await readItems(source, position));
        assert.deepEqual(rest, saidBy(items).slice(saidBy(items).length - rest.length), JSON.stringify(position));
        const behind = items.slice(items.findIndex((item) => 'position' in item && item.position === position) + 1);
        assert.deepEqual(rest, saidBy(behind));
        begun += 1;
      }
      assert.ok(begun >= 4);
    });

    it('finds what was prepared before a restart of the server', async () => {
      await db.run('CREATE TABLE r (id INT PRIMARY KEY)');
      await prepare("'r1'", 'INSERT INTO r VALUES (1)');
      const between = await source.currentPosition();
      for (const session of sessions) session.destroy();
      sessions = [];
      detached.clear();
      await server.kill();
      await server.up();
      db.sql.destroy();
      Object.assign(db, { sql: await connect(server) });
      await db.run(`USE ${db.name}`, 'INSERT INTO r VALUES (2)');
      const snapshot = await readSnapshot(db.source({ captures: (ref) => ref.table === 'r' }));
      assert.deepEqual(shown(snapshot.items), ['read0 2']);
      await finish('COMMIT', "'r1'");
      assert.deepEqual(shown(await readItems(source, between)), ['insert1 2', 'insert1 1']);
      // the view of the snapshot did not have it, so the stream behind it must
      assert.deepEqual(shown(await readItems(source, snapshot.position)), ['insert1 1']);
    });

    it('keeps large ones in files', async () => {
      await db.run('CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(1000))');
      const from = await source.currentPosition();
      const values = Array.from({ length: 2000 }, (_, i) => `(${i}, REPEAT('x', 500))`).join(',');
      await prepare("'big'", `INSERT INTO big VALUES ${values}`);
      const between = await source.currentPosition();
      await finish('COMMIT', "'big'");
      const small = db.source({ spoolBytes: 1 << 16 });
      for (const position of [from, between]) assert.equal(rowsOf(await readItems(small, position)).length, 2000);
    });

    it('takes nothing amiss in one that changed nothing', async () => {
      const from = await source.currentPosition();
      await prepare("'e1'", 'SELECT COUNT(*) FROM t');
      const between = await source.currentPosition();
      await finish('COMMIT', "'e1'");
      assert.deepEqual(saidBy(await readItems(source, from)), []);
      assert.deepEqual(saidBy(await readItems(source, between)), []);
    });

    it('stops where the prepared rows are gone from the log', async () => {
      await db.run('CREATE TABLE gone (id INT PRIMARY KEY)');
      await prepare("'g1'", 'INSERT INTO gone VALUES (1)');
      await db.run('FLUSH BINARY LOGS');
      const from = await source.currentPosition();
      await retried(async () => {
        await db.run(`PURGE BINARY LOGS TO '${from.file}'`);
        assert.equal((await source.earliestPosition()).file, from.file);
      });
      await finish('COMMIT', "'g1'");
      const error = await failureOf(readItems(source, from));
      assert.ok(isMysyncError(error, 'SOURCE_XA_PREPARE_GONE'), String(error));
    });
  });
}
