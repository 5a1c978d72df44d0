/**
 * What needs a server of one's own: settings, restarts, purged and reset logs, checksums, replicas that collide. Cases D4, E2 to E4, E12,
 * F1 to F3, F6, and the findings of the doctor.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Finding, isMysyncError, type SourcePosition } from '@mysync/core';
import { startServer, TcpProxy, type TestServer, until } from '@mysync/harness';
import type { MysqlSourceOptions } from './options.ts';
import type { BinlogSource, SourceItem } from './port.ts';
import {
  connect,
  FLAVORS,
  failureOf,
  readItems,
  readSnapshot,
  replay,
  rowsOf,
  TestDatabase,
} from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`a private ${flavor}`, { timeout: 170_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    let source: BinlogSource;

    before(async () => {
      // without GTIDs MySQL lets transactions mix engines, and names none of them
      server = await startServer(flavor, {
        args: flavor === 'mysql' ? ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'] : [],
      });
      db = await TestDatabase.create(flavor, server);
      source = db.source();
      await db.run('CREATE TABLE keep (id INT PRIMARY KEY, v VARCHAR(2000))');
    });
    after(async () => {
      await db.sql.end();
      await server.wipe();
    });

    async function streamed(...statements: readonly string[]): Promise<SourceItem[]> {
      const from = await source.currentPosition();
      await db.run(...statements);
      return await readItems(source, from);
    }
    const ids = (items: readonly SourceItem[]): unknown[] => rowsOf(items).map((row) => row.after?.['id']);

    /** Follows the log in the background; `seen` are the ids that came, in order. */
    function follow(from: SourcePosition, options: Partial<MysqlSourceOptions> = {}) {
      const stop = new AbortController();
      const seen: unknown[] = [];
      const positions: SourcePosition[] = [];
      const done = (async () => {
        for await (const batch of db.source(options).stream({ from, signal: stop.signal })) {
          for (const item of batch) {
            if (item.kind === 'row') seen.push(...ids([item]));
            if (item.kind === 'commit' || item.kind === 'keepalive') positions.push(item.position);
          }
        }
      })();
      done.catch(() => undefined);
      return {
        seen,
        positions,
        done,
        stop: async () => {
          stop.abort();
          await done;
        },
      };
    }

    it('cuts what ROLLBACK TO took back where the log still holds it, and keeps what MyISAM keeps (D4)', async () => {
      const items = await streamed(
        'CREATE TABLE ii (id INT PRIMARY KEY) ENGINE=InnoDB',
        'CREATE TABLE mi (id INT PRIMARY KEY) ENGINE=MyISAM',
        'BEGIN',
        'INSERT INTO ii VALUES (1)',
        'INSERT INTO mi VALUES (1)',
        'SAVEPOINT a',
        'INSERT INTO ii VALUES (2)',
        'INSERT INTO mi VALUES (2)',
        'ROLLBACK TO a',
        'INSERT INTO ii VALUES (3)',
        'COMMIT',
        'BEGIN',
        'INSERT INTO ii VALUES (4)',
        'INSERT INTO mi VALUES (4)',
        'ROLLBACK',
      );
      const state = [...replay(items).values()].map((row) => `${row.table}${row.after?.['id']}`).sort();
      assert.deepEqual(state, ['ii1', 'ii3', 'mi1', 'mi2', 'mi4']);
    });

    it('follows rotations with and without checksums, and their change (E12)', async () => {
      const from = await source.currentPosition();
      const files = new Set<string>();
      let id = 0;
      for (const checksum of ['NONE', 'CRC32', 'NONE', 'CRC32']) {
        await db.run(`SET GLOBAL binlog_checksum = ${checksum}`);
        for (let i = 0; i < 2; i += 1) {
          id += 1;
          await db.run(`INSERT INTO keep VALUES (${id}, 'x')`, 'FLUSH BINARY LOGS');
        }
        files.add((await source.currentPosition()).file);
        assert.deepEqual(
          ids(await readItems(source, from)),
          Array.from({ length: id }, (_, i) => i + 1),
        );
      }
      const follower = follow(from);
      await until('all rows', () => follower.seen.length >= id);
      await db.run('SET GLOBAL binlog_checksum = NONE', `INSERT INTO keep VALUES (${id + 1}, 'x')`);
      await db.run('SET GLOBAL binlog_checksum = CRC32', `INSERT INTO keep VALUES (${id + 2}, 'x')`);
      await until('the rows after the change', () => follower.seen.length === id + 2);
      await follower.stop();
      assert.ok(follower.positions.every((position) => /^binlog\.\d{6}$/.test(position.file)));
    });

    it('moves on while only others write, so that old files may go (E2)', async () => {
      const from = await source.currentPosition();
      const idle = follow(from, { captures: (ref) => ref.table === 'nobody' });
      await db.run("INSERT INTO keep VALUES (1000, 'x')", 'FLUSH BINARY LOGS', "INSERT INTO keep VALUES (1001, 'x')");
      const now = await source.currentPosition();
      await until('the position', () =>
        idle.positions.some((position) => position.file === now.file && position.offset >= now.offset),
      );
      await idle.stop();
      // files that a dump thread still has open are not purged
      await until('the purge', async () => {
        await db.run(`PURGE BINARY LOGS TO '${now.file}'`);
        return (await source.earliestPosition()).file === now.file;
      });
      assert.deepEqual(ids(await readItems(source, now)), []);
      // from before the purge nothing can be read any more (E3)
      const error = await failureOf(readItems(source, from));
      assert.ok(isMysyncError(error, 'SOURCE_BINLOG_PURGED'), String(error));
      assert.match(error.remedy, /snapshot/);
    });

    it('resumes after the dump thread was killed and after the server died, with nothing lost or twice', async () => {
      const follower = follow(await source.currentPosition());
      let id = 2000;
      const write = async (): Promise<void> => {
        id += 2;
        await db.run(
          'BEGIN',
          `INSERT INTO keep VALUES (${id}, 'x')`,
          `INSERT INTO keep VALUES (${id + 1}, 'x')`,
          'COMMIT',
        );
      };
      await write();
      await until('the first rows', () => follower.seen.length === 2);
      const [thread] = await db.select(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'",
      );
      await db.run(`KILL ${thread?.[0]}`);
      await write();
      await until('the rows after the kill', () => follower.seen.length === 4);
      await server.kill();
      await server.up();
      db.sql.destroy();
      Object.assign(db, { sql: await connect(server) });
      await db.run(`USE ${db.name}`);
      await write();
      await until('the rows after the restart', () => follower.seen.length >= 6, { timeoutMs: 60_000 });
      await follower.stop();
      assert.deepEqual(follower.seen, [2002, 2003, 2004, 2005, 2006, 2007]);
    });

    it('replaces a connection that is silent (F2)', async () => {
      const proxy = await TcpProxy.open(db.port);
      const follower = follow(await source.currentPosition(), {
        hosts: [{ host: '127.0.0.1', port: proxy.port }],
        heartbeatMs: 300,
      });
      await db.run("INSERT INTO keep VALUES (3000, 'x')");
      await until('the first row', () => follower.seen.length === 1);
      proxy.blackHole();
      await db.run("INSERT INTO keep VALUES (3001, 'x')");
      await until('the row by another connection', () => follower.seen.length === 2);
      await follower.stop();
      await proxy.close();
      assert.deepEqual(follower.seen, [3000, 3001]);
    });

    it('pauses the socket while nobody pulls, however long (F3)', async () => {
      await db.run('SET GLOBAL net_write_timeout = 1');
      const from = await source.currentPosition();
      const values = Array.from({ length: 1000 }, (_, i) => `(${10_000 + i}, REPEAT('x', 2000))`).join(',');
      await db.run(`INSERT INTO keep VALUES ${values}`);
      for (let i = 1; i < 20; i += 1)
        await db.run(`UPDATE keep SET v = REPEAT('${String.fromCharCode(97 + (i % 26))}', 2000) WHERE id >= 10000`);
      const proxy = await TcpProxy.open(db.port);
      const slow = db.source({
        hosts: [{ host: '127.0.0.1', port: proxy.port }],
        queueBytes: 1 << 20,
        heartbeatMs: 500,
      });
      const stop = new AbortController();
      const reading = slow.stream({ from, signal: stop.signal })[Symbol.asyncIterator]();
      const commitsOf = (items: readonly SourceItem[]): number => items.filter((item) => item.kind === 'commit').length;
      let commits = commitsOf((await reading.next()).value ?? []);
      const logged = 1000 * 2000 * 39;
      // long enough for net_write_timeout to strike, were it not raised; nothing is waited for here but time
      await new Promise((resolve) => setTimeout(resolve, 3500));
      assert.ok(proxy.bytes < logged / 4, `${proxy.bytes} of ${logged} bytes were taken from the server`);
      const connections = proxy.connections;
      while (commits < 20) commits += commitsOf((await reading.next()).value ?? []);
      stop.abort();
      await reading.return?.();
      assert.equal(proxy.connections, connections, 'the connection was replaced');
      await proxy.close();
      await db.run('SET GLOBAL net_write_timeout = 60', 'DELETE FROM keep');
    });

    it('reads rows of many packets, also over TLS', async () => {
      await db.run('SET GLOBAL max_allowed_packet = 134217728');
      const wide = await connect(server);
      const from = await source.currentPosition();
      await wide.query(`CREATE TABLE ${db.name}.wide (id INT PRIMARY KEY, v LONGTEXT)`);
      for (const [id, length] of [(1 << 24) - 64, (1 << 24) + 1, 50_000_000].entries()) {
        await wide.query(`INSERT INTO ${db.name}.wide VALUES (${id}, REPEAT('w', ${length}))`);
        await wide.query(`UPDATE ${db.name}.wide SET v = CONCAT(v, '${id}') WHERE id = ${id}`);
      }
      await wide.end();
      const sizes = await db.select('SELECT id, LENGTH(v), RIGHT(v, 2) FROM wide ORDER BY id');
      const only = { captures: (ref: { table: string }) => ref.table === 'wide' };
      const secure = flavor === 'mysql' ? [{ ...only, tls: { verify: false } }] : [];
      for (const options of [only, ...secure]) {
        const items = await readItems(db.source(options), from);
        const found = [...replay(items).values()].map((row) => {
          const text = String(row.after?.['v']);
          return [String(row.after?.['id']), String(text.length), text.slice(-2)];
        });
        assert.deepEqual(found.sort(), sizes);
      }
      await db.run('DROP TABLE wide');
    });

    it('refuses a server id that another replica has, and says so when it is thrown out (F1)', async () => {
      const from = await source.currentPosition();
      const first = follow(from, { serverId: 777_001 });
      await db.run("INSERT INTO keep VALUES (4000, 'x')");
      await until('the first row', () => first.seen.length === 1);
      const second = db.source({ name: 'another', serverId: 777_001 });
      const error = await failureOf(readItems(second, from));
      assert.ok(isMysyncError(error, 'SOURCE_SERVER_ID_IN_USE'), String(error));
      assert.match(error.message, /777001/);
      assert.ok(
        (await second.check()).some(
          (finding) => finding.code === 'SOURCE_SERVER_ID_IN_USE' && finding.level === 'error',
        ),
      );
      // a second reader of the same source takes its place; MySQL lets both read, MariaDB ends the first, which says why
      const successor = follow(from, { serverId: 777_001 });
      await until('the successor', () => successor.seen.length >= 1);
      if (flavor === 'mariadb') {
        const thrownOut = await failureOf(first.done);
        assert.ok(isMysyncError(thrownOut, 'SOURCE_SERVER_ID_IN_USE'), String(thrownOut));
      } else await first.stop();
      await successor.stop();
    });

    it('gives its server id back at once when it is stopped (F1)', async () => {
      const idle = { serverId: 777_002, heartbeatMs: 30_000 };
      const first = follow(await source.currentPosition(), idle);
      await db.run("INSERT INTO keep VALUES (4001, 'x')");
      await until('the first row', () => first.seen.length === 1);
      const from = await source.currentPosition();
      await db.run("INSERT INTO keep VALUES (4002, 'x')");
      await until('the second row', () => first.seen.length === 2);
      // nothing is logged from here on that would tell the server
      await first.stop();
      assert.deepEqual(ids(await readItems(db.source({ name: 'another', ...idle }), from)), [4002]);
    });

    it('finds what a start would stumble over, with the statement that mends it', async () => {
      const found = async (code: string): Promise<Finding> => {
        const finding = (await source.check()).find((entry) => entry.code === code && entry.level !== 'ok');
        assert.ok(finding, `no finding ${code}`);
        return finding;
      };
      const settings: [string, string, string, RegExp][] = [
        [
          "binlog_format = 'STATEMENT'",
          "binlog_format = 'ROW'",
          'SOURCE_FORMAT_NOT_ROW',
          /SET GLOBAL binlog_format = 'ROW'/,
        ],
        [
          "binlog_row_image = 'MINIMAL'",
          "binlog_row_image = 'FULL'",
          'SOURCE_ROW_IMAGE_NOT_FULL',
          /SET GLOBAL binlog_row_image = 'FULL'/,
        ],
        [
          "binlog_row_metadata = 'MINIMAL'",
          "binlog_row_metadata = 'FULL'",
          'SOURCE_ROW_METADATA_NOT_FULL',
          /SET GLOBAL binlog_row_metadata = 'FULL'/,
        ],
        [
          'binlog_expire_logs_seconds = 3600',
          'binlog_expire_logs_seconds = 0',
          'SOURCE_RETENTION_SHORT',
          /SET GLOBAL binlog_expire_logs_seconds/,
        ],
        ...(flavor === 'mysql'
          ? ([
              [
                'binlog_order_commits = OFF',
                'binlog_order_commits = ON',
                'SOURCE_COMMIT_ORDER_OFF',
                /SET GLOBAL binlog_order_commits = ON/,
              ],
            ] as [string, string, string, RegExp][])
          : ([
              [
                'gtid_strict_mode = OFF',
                'gtid_strict_mode = ON',
                'SOURCE_GTID_STRICT_OFF',
                /SET GLOBAL gtid_strict_mode = ON/,
              ],
            ] as [string, string, string, RegExp][])),
      ];
      for (const [bad, good, code, remedy] of settings) {
        await db.run(`SET GLOBAL ${bad}`);
        const finding = await found(code);
        assert.match(finding.remedy, remedy);
        if (finding.level === 'error') assert.ok(isMysyncError(await failureOf(source.identify()), code));
        await db.run(`SET GLOBAL ${good}`);
      }
      if (flavor === 'mysql') assert.match((await found('SOURCE_GTID_OFF')).message, /OFF/);
      const none = db.source({ captures: () => false });
      assert.ok(isMysyncError(await failureOf(none.identify()), 'SOURCE_TABLES_NONE'));
      await db.run('CREATE TABLE keyless (a INT)');
      assert.equal((await found('SOURCE_TABLE_WITHOUT_KEY')).level, 'warning');
      const strict = db.source({ tableRule: () => ({ noKey: 'refuse' }) });
      assert.ok(isMysyncError(await failureOf(strict.identify()), 'SOURCE_TABLE_WITHOUT_KEY'));
      await db.run('DROP TABLE keyless');
      assert.equal((await source.identify()).flavor, flavor);
    });

    it('names the grants that are missing', async () => {
      await db.run("CREATE USER bare@'%' IDENTIFIED BY 'bare'");
      const bare = db.source({ user: 'bare', password: 'bare' });
      const missing = (await bare.check())
        .filter((finding) => finding.code === 'SOURCE_GRANT_MISSING')
        .map((finding) => finding.remedy);
      assert.deepEqual(missing, [
        "GRANT REPLICATION SLAVE ON *.* TO 'bare'@'%';",
        `GRANT ${flavor === 'mysql' ? 'REPLICATION CLIENT' : 'BINLOG MONITOR'} ON *.* TO 'bare'@'%';`,
      ]);
      const wrong = db.source({ password: 'wrong' });
      const denied = await failureOf(wrong.identify());
      assert.ok(isMysyncError(denied, 'SOURCE_ACCESS_DENIED'));
      assert.match(denied.message, new RegExp(`127.0.0.1:${db.port} refuses user 'mysync'`));
      assert.equal(denied.toString().includes('wrong'), false);
      // whom the server let in before may be let in again
      await db.run(
        "CREATE USER moved@'%' IDENTIFIED BY 'first'",
        `GRANT ${flavor === 'mysql' ? 'REPLICATION CLIENT' : 'BINLOG MONITOR'}, REPLICATION SLAVE, SELECT ON *.* TO moved@'%'`,
      );
      const moved = db.source({ user: 'moved', password: 'first' });
      await moved.currentPosition();
      await db.run("ALTER USER moved@'%' IDENTIFIED BY 'second'");
      const lost = await failureOf(moved.currentPosition());
      assert.ok(isMysyncError(lost, 'SOURCE_ACCESS_LOST') && lost.retriable, String(lost));
      const stranger = db.source({ user: 'moved', password: 'first' });
      assert.ok(isMysyncError(await failureOf(stranger.currentPosition()), 'SOURCE_ACCESS_DENIED'));
      await db.run("ALTER USER moved@'%' IDENTIFIED BY 'first'");
      await moved.currentPosition();
      await db.run("DROP USER moved@'%'");
      // half of the grants: the position may be asked, the log not read
      await db.run(
        `GRANT ${flavor === 'mysql' ? 'REPLICATION CLIENT' : 'BINLOG MONITOR'} ON *.* TO bare@'%'`,
        `GRANT SELECT ON ${db.name}.* TO bare@'%'`,
      );
      const error = await failureOf(readItems(bare, await source.currentPosition()));
      assert.ok(isMysyncError(error, 'SOURCE_GRANT_MISSING'), String(error));
    });

    it('stops where the log does not name the columns', async () => {
      await db.run('CREATE TABLE md (id INT PRIMARY KEY)', 'SET GLOBAL binlog_row_metadata = MINIMAL');
      const from = await source.currentPosition();
      await db.run('INSERT INTO md VALUES (1)', 'SET GLOBAL binlog_row_metadata = FULL');
      const error = await failureOf(readItems(source, from));
      assert.ok(isMysyncError(error, 'SOURCE_ROW_METADATA_MISSING'), String(error));
    });

    if (flavor === 'mariadb') {
      it('reads compressed events', async () => {
        await db.run('SET GLOBAL log_bin_compress = ON', 'SET GLOBAL log_bin_compress_min_len = 10');
        const items = await streamed(
          'CREATE TABLE lc (id INT PRIMARY KEY, t TEXT)',
          `INSERT INTO lc VALUES (1, REPEAT('x', 5000)), (2, 'y')`,
          'UPDATE lc SET id = id + 1 ORDER BY id DESC',
        );
        await db.run('SET GLOBAL log_bin_compress = OFF');
        const state = [...replay(items).values()].map((row) => [row.after?.['id'], String(row.after?.['t']).length]);
        assert.deepEqual(state.sort(), [
          [2, 5000],
          [3, 1],
        ]);
      });
    }

    it('copies TIMESTAMP in UTC from a server in another zone (A9)', async () => {
      await db.run("SET GLOBAL time_zone = '+08:00'", 'CREATE TABLE tz (id INT PRIMARY KEY, ts TIMESTAMP NULL)');
      const zoned = await connect(server);
      const from = await source.currentPosition();
      await zoned.query(`INSERT INTO ${db.name}.tz VALUES (1, '2024-03-10 02:30:00')`);
      const only = db.source({ captures: (ref) => ref.table === 'tz' });
      for (const items of [await readItems(only, from), (await readSnapshot(only)).items]) {
        assert.deepEqual(
          rowsOf(items).map((row) => row.after),
          [{ id: 1, ts: '2024-03-09 18:30:00' }],
        );
      }
      await zoned.end();
      await db.run("SET GLOBAL time_zone = 'SYSTEM'", 'DROP TABLE tz');
    });

    it('refuses a position inside an event', async () => {
      const { offset, ...file } = await source.currentPosition();
      await db.run("INSERT INTO keep VALUES (6000, 'x')");
      const error = await failureOf(readItems(source, { ...file, offset: offset + 9 }));
      assert.ok(
        isMysyncError(error, flavor === 'mysql' ? 'SOURCE_LOG_REFUSED' : 'SOURCE_POSITION_UNKNOWN'),
        String(error),
      );
    });

    it('notices that the log was reset (E4)', async () => {
      await db.run('FLUSH BINARY LOGS', 'FLUSH BINARY LOGS');
      const from = await source.currentPosition();
      await db.run(
        flavor === 'mysql' ? 'RESET BINARY LOGS AND GTIDS' : 'RESET MASTER',
        "INSERT INTO keep VALUES (5000, 'x')",
      );
      const error = await failureOf(readItems(source, from));
      assert.ok(isMysyncError(error, 'SOURCE_POSITION_UNKNOWN'), String(error));
    });
  });

  describe(`a ${flavor} without a log`, { timeout: 120_000 }, () => {
    it('is refused, and an address where nobody listens is named', async () => {
      const server = await startServer(flavor, { args: ['--skip-log-bin'] });
      const db = await TestDatabase.create(flavor, server);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY)');
      const error = await failureOf(db.source().identify());
      assert.ok(isMysyncError(error, 'SOURCE_BINLOG_OFF'), String(error));
      assert.match(error.remedy, /--log-bin/);
      assert.ok(isMysyncError(await failureOf(db.source().currentPosition()), 'SOURCE_BINLOG_OFF'));
      const port = db.port;
      await db.sql.end();
      await server.wipe();
      const gone = await failureOf(db.source().identify());
      assert.ok(isMysyncError(gone, 'SOURCE_UNREACHABLE') && gone.retriable, String(gone));
      assert.match(gone.message, new RegExp(`127.0.0.1:${port}`));
    });
  });
}
