/**
 * D1, D3: a reader that is cut off anywhere inside of a transaction resumes without loss and without anything twice: between maps of tables and their
 * rows, between the rows of a trigger and those of its statement, in mid-event, inside of a prepared or a compressed transaction.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Clock, systemClock } from '@mysync/core';
import { startServer, TcpProxy, type TestServer } from '@mysync/harness';
import { isRowsEvent } from './binlog/column-types.ts';
import { readWholeLog } from './connection/whole-log.fixture.ts';
import type { SourceItem } from './port.ts';
import { type Flavor, readItems, rowsOf, TestDatabase } from './testing.fixture.ts';

const CUTS = 40;
/** COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID. */
const DUMPS: ReadonlySet<number> = new Set([0x12, 0x1e]);
/** Nothing is waited for between two attempts. */
const clock: Clock = { ...systemClock, sleep: () => Promise.resolve() };

interface Server {
  readonly name: string;
  readonly flavor: Flavor;
  /** Of a server of its own. */
  readonly env?: Readonly<Record<string, string>>;
}

const SERVERS: readonly Server[] = [
  { name: 'mariadb', flavor: 'mariadb' },
  { name: 'mysql', flavor: 'mysql' },
  // E1: its events tell no end positions inside of transactions
  { name: 'mariadb 11.8', flavor: 'mariadb', env: { MARIADB_VERSION: '11.8' } },
];

for (const { name, flavor, env } of SERVERS) {
  describe(`a stream of ${name} that is cut off`, { timeout: 170_000 }, () => {
    let own: TestServer | undefined;
    let db: TestDatabase;
    let proxy: TcpProxy;
    before(async () => {
      own = env === undefined ? undefined : await startServer(flavor, { env });
      db = await TestDatabase.create(flavor, own);
      proxy = await TcpProxy.open(db.port);
      // the command stands behind the packet's header
      proxy.isCounted = (sent) => DUMPS.has(sent[4] ?? 0);
    });
    after(async () => {
      await proxy.close();
      await db.close();
      await own?.wipe();
    });

    const told = (items: readonly SourceItem[]): unknown[] =>
      items
        .filter((item) => item.kind !== 'keepalive')
        .map((item) =>
          item.kind === 'row'
            ? [Buffer.from(item.key).toString('hex'), Buffer.from(item.payload).toString('hex'), item.ordinal]
            : item,
        );

    it('goes on at the last whole transaction, wherever it was', async () => {
      await db.run(
        'CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))',
        'CREATE TABLE u (id INT PRIMARY KEY, n INT)',
        'CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.id, 0)',
      );
      const source = db.source();
      const from = await source.currentPosition();
      await db.run(
        "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        'UPDATE t JOIN u ON t.id = u.id SET t.v = CONCAT(t.v, 1), u.n = u.n + 1',
        'BEGIN',
        "INSERT INTO t VALUES (4, 'four')",
        'SAVEPOINT s',
        "UPDATE t SET v = REPEAT('x', 90)",
        'DELETE FROM u WHERE id = 1',
        'COMMIT',
        "XA START 'x'",
        "INSERT INTO t VALUES (5, 'five')",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
        ...(flavor === 'mysql' ? ['SET SESSION binlog_transaction_compression = ON'] : []),
        "INSERT INTO t VALUES (6, REPEAT('six', 30)), (7, 'seven')",
        ...(flavor === 'mysql' ? ['SET SESSION binlog_transaction_compression = OFF'] : []),
        'DELETE FROM t',
      );
      const to = await source.currentPosition();
      const whole = told(await readItems(source, from, to));
      assert.ok(rowsOf(await readItems(source, from, to)).length > 25);
      if (env !== undefined) {
        const start = { kind: 'place', ...from } as const;
        const events = await readWholeLog({ host: { host: '127.0.0.1', port: db.port }, start, queueBytes: 1 << 24 });
        assert.ok(events.some(({ type, nextOffset }) => isRowsEvent(type) && nextOffset === 0));
      }
      const cut = db.source({ hosts: [{ host: '127.0.0.1', port: proxy.port }], clock });
      // what the server sends for it, and something around: the first cuts come before its first event
      const bytes = to.offset - from.offset + 400;
      for (let i = 0; i < CUTS; i += 1) {
        const first = Math.max(1, Math.round((bytes * i) / CUTS));
        proxy.cuts.splice(0, proxy.cuts.length, first, Math.ceil(first / 2), Math.ceil(first / 3) + 300);
        assert.deepEqual(told(await readItems(cut, from, to)), whole, `cut after ${first} bytes`);
        assert.ok(proxy.cuts.length < 3, 'nothing was cut off');
      }
    });
  });
}
