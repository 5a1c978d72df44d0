/**
 * A server that logs a transaction and does not commit it yet (it waits for a semi-synchronous replica that never comes): what is read again
 * must not be the row as it was before.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startServer, type TestServer, until } from '@mysync/harness';
import { connect, rowsOf, TestDatabase } from '../testing.fixture.ts';

const SETUPS = [
  { name: 'mariadb', flavor: 'mariadb', args: [], semiSync: 'rpl_semi_sync_master' },
  { name: 'mysql', flavor: 'mysql', args: [], semiSync: 'rpl_semi_sync_source' },
  {
    name: 'mysql without GTIDs',
    flavor: 'mysql',
    args: ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF'],
    semiSync: 'rpl_semi_sync_source',
  },
] as const;

for (const { name, flavor, args, semiSync } of SETUPS) {
  describe(`rows of a transaction that is logged and not yet committed, ${name}`, { timeout: 120_000 }, () => {
    it('are read as it leaves them', async () => {
      await using server = await startServer(flavor, { args });
      await using db = await TestDatabase.create(flavor, server);
      await db.run(
        'CREATE TABLE t (id INT PRIMARY KEY, a INT, keep TEXT)',
        "INSERT INTO t VALUES (1, 0, 'kept'), (2, 0, 'kept')",
      );
      if (flavor === 'mysql') await db.run("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'");
      await db.run(
        `SET GLOBAL ${semiSync}_wait_point = AFTER_SYNC`,
        `SET GLOBAL ${semiSync}_timeout = 100000`,
        `SET GLOBAL ${semiSync}_wait_no_${flavor === 'mysql' ? 'replica' : 'slave'} = ON`,
      );
      const source = db.source();
      const stop = new AbortController();
      const stream = source.stream({ from: await source.currentPosition(), signal: stop.signal });
      const seen: unknown[][] = [];
      const reading = (async () => {
        for await (const batch of stream) {
          for (const row of rowsOf(batch)) seen.push([row.operation, row.after?.['a'], row.after?.['keep']]);
        }
      })();
      const writer = await connect(server);
      await writer.query(`USE ${db.name}; SET SESSION binlog_row_image = 'MINIMAL'`);
      try {
        // the second time for longer than the server is asked whether it has committed
        for (const [i, question] of [/binlog_snapshot|CONSISTENT SNAPSHOT|WAIT_FOR|SHARE/, /SHARE/].entries()) {
          const now = i + 1;
          await db.run(`SET GLOBAL ${semiSync}_enabled = ON`);
          const writing = writer.query('UPDATE t SET a = a + 1');
          const asks = async (): Promise<boolean> => (await running(server)).some((query) => question.test(query));
          await until('the reader asks', async () => seen.length > i * 2 || (await asks()), { everyMs: 2 });
          assert.deepEqual(await db.select('SELECT a FROM t'), [[String(i)], [String(i)]]);
          assert.deepEqual(seen.slice(i * 2), []);
          await db.run(`SET GLOBAL ${semiSync}_enabled = OFF`);
          await writing;
          await until('both rows', () => seen.length === now * 2);
          assert.deepEqual(seen.slice(-2), [
            ['read', now, 'kept'],
            ['read', now, 'kept'],
          ]);
        }
      } finally {
        stop.abort();
        await db.run(`SET GLOBAL ${semiSync}_enabled = OFF`);
        await writer.end();
        await reading;
      }
    });
  });
}

/** What the sessions of the server are doing. */
async function running(server: TestServer): Promise<string[]> {
  const sql = await connect(server);
  try {
    const [rows] = await sql.query({ sql: 'SHOW FULL PROCESSLIST', rowsAsArray: true });
    return (rows as unknown as (string | null)[][]).map((row) => row[7] ?? '');
  } finally {
    await sql.end();
  }
}
