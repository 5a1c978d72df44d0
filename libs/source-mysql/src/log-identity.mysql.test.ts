/**
 * Case E4: another log under the same name. A log that was reset and has grown past our position again, and a server that was put back to an older
 * state, are noticed at the start, at a reconnect inside a stream, and by the check; with GTIDs, and without.
 */
import assert from 'node:assert/strict';
import { cp, rm } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, type SourcePosition } from '@mysync/core';
import { startServer, TcpProxy, type TestServer, until } from '@mysync/harness';
import type { BinlogSource } from './port.ts';
import { connect, FLAVORS, type Flavor, failureOf, readItems, rowsOf, TestDatabase } from './testing.fixture.ts';

const RESET = { mysql: 'RESET BINARY LOGS AND GTIDS', mariadb: 'RESET MASTER' } as const;
const SERVERS: readonly (readonly [Flavor, string, readonly string[]])[] = [
  ...FLAVORS.map((flavor) => [flavor, 'GTIDs', []] as const),
  ['mysql', 'no GTIDs', ['--gtid-mode=OFF', '--enforce-gtid-consistency=OFF']],
];

for (const [flavor, gtids, args] of SERVERS) {
  describe(`E4: a ${flavor} with ${gtids}`, { timeout: 170_000 }, () => {
    let server: TestServer;
    let db: TestDatabase;
    let source: BinlogSource;
    let written = 0;

    before(async () => {
      server = await startServer(flavor, { args });
      db = await TestDatabase.create(flavor, server);
      source = db.source();
      await db.run('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))');
    });
    after(async () => {
      await db.sql.end();
      await server.wipe();
    });

    /** Every transaction is as long as any other, so that our offset is again that of an event. */
    async function write(transactions: number): Promise<void> {
      for (let i = 0; i < transactions; i += 1) {
        written += 1;
        await db.run(`REPLACE INTO t VALUES (1, ${10_000_000 + written})`);
      }
    }
    /** Files tell the second of their beginning. */
    async function nextSecond(): Promise<void> {
      const second = Math.floor(Date.now() / 1000);
      await until('the next second', () => Math.floor(Date.now() / 1000) > second);
    }
    async function reset(): Promise<void> {
      await nextSecond();
      await db.run(RESET[flavor]);
    }
    /** The last position that the stream handed over. */
    async function readUpTo(from: SourcePosition): Promise<SourcePosition> {
      const last = (await readItems(source, from)).at(-1);
      assert.ok(last !== undefined && 'position' in last);
      return last.position;
    }
    async function assertRefused(position: SourcePosition, why: RegExp): Promise<void> {
      const error = await failureOf(readItems(source, position));
      assert.ok(isMysyncError(error, 'SOURCE_POSITION_UNKNOWN'), String(error));
      assert.match(error.message, why);
      assert.match(error.remedy, /snapshot/);
      const { uuid } = await source.identify();
      const found = await source.check({ snapshot: false, resume: { position, serverUuid: uuid } });
      assert.ok(
        found.some(({ code, level, message }) => code === error.code && level === 'error' && why.test(message)),
        JSON.stringify(found),
      );
    }

    it('is noticed when the log was reset and has grown past our position', async () => {
      await reset();
      await write(4);
      const position = await readUpTo(await source.earliestPosition());
      assert.ok((position.fileCreated ?? 0) > 1.7e9);
      const { uuid } = await source.identify();
      const found = await source.check({ snapshot: false, resume: { position, serverUuid: uuid } });
      assert.deepEqual(
        found.filter((finding) => finding.code === 'SOURCE_POSITION_UNKNOWN').map((finding) => finding.level),
        ['ok'],
      );
      // the numbers of the transactions and the offsets of the events are the same again
      await reset();
      await write(8);
      assert.equal((await source.currentPosition()).file, position.file);
      await assertRefused(position, /the log was reset|another one/);
      // where only the sets tell
      if (gtids !== 'GTIDs') return;
      await reset();
      await write(2);
      const { fileCreated: _, ...named } = position;
      await write(4);
      const further = { ...named, gtidSet: named.gtidSet.replace(/\d+$/, '100') };
      await assertRefused(further, /another one/);
    });

    it('is noticed at a reconnect, and nothing of the new log is handed over', async () => {
      await using proxy = await TcpProxy.open(db.port);
      const stop = new AbortController();
      const seen: unknown[] = [];
      const from = await source.currentPosition();
      const following = (async () => {
        const stream = db
          .source({ hosts: [{ host: '127.0.0.1', port: proxy.port }] })
          .stream({ from, signal: stop.signal });
        for await (const batch of stream) seen.push(...rowsOf(batch).map((row) => row.after?.['id']));
      })();
      following.catch(() => undefined);
      await db.run("REPLACE INTO t VALUES (7, 'x')");
      await until('the row', () => seen.length === 1).finally(() => (seen.length === 1 ? undefined : stop.abort()));
      await proxy.close();
      await reset();
      await write(20);
      await proxy.listen();
      const error = await failureOf(following);
      assert.ok(isMysyncError(error, 'SOURCE_POSITION_UNKNOWN'), String(error));
      assert.deepEqual(seen, [7]);
    });

    it('is noticed when the server was put back to an older state and has gone on from there', async () => {
      const folder = String((await db.select('SELECT @@datadir'))[0]?.[0]).replace(/\/$/, '');
      const copy = `${folder}-before`;
      await server.down();
      await cp(folder, copy, { recursive: true });
      const goOn = async (): Promise<void> => {
        await server.up();
        db.sql.destroy();
        Object.assign(db, { sql: await connect(server) });
        await db.run(`USE ${db.name}`);
      };
      await goOn();
      await write(5);
      const { file } = await source.currentPosition();
      const position = await readUpTo({ file, offset: 4, gtidSet: '' });
      await server.down();
      await rm(folder, { recursive: true });
      await cp(copy, folder, { recursive: true });
      await rm(copy, { recursive: true });
      await nextSecond();
      await goOn();
      await write(3);
      await assertRefused(position, /the log was reset|another one/);
      await write(9);
      await assertRefused(position, /the log was reset|another one/);
    });
  });
}
