/** The snapshot is of one position; the log from there leads to the present. Cases A9, C6, I1, I3 as far as they touch it. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { randomName, until } from '@mysync/harness';
import type { BinlogSource, Snapshot, SnapshotProgress, SourceItem } from './port.ts';
import { connect, FLAVORS, failureOf, readItems, readSnapshot, replay, TestDatabase } from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`snapshots of ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    let source: BinlogSource;
    before(async () => {
      db = await TestDatabase.create(flavor);
      source = db.source();
      await db.run(
        'CREATE TABLE a (id INT PRIMARY KEY, v INT)',
        'CREATE TABLE b (v INT)',
        'CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(2000))',
      );
      const many = Array.from({ length: 4000 }, (_, i) => `(${i}, REPEAT('x', 2000))`).join(',');
      await db.run(
        'INSERT INTO a VALUES (1, 0), (2, 0), (3, 0)',
        'INSERT INTO b VALUES (1), (2)',
        `INSERT INTO big VALUES ${many}`,
      );
    });
    after(async () => {
      await db.close();
    });

    const open = async (
      of: BinlogSource = source,
      onProgress: (progress: SnapshotProgress) => void = () => undefined,
    ): Promise<Snapshot> => await of.snapshot({ onProgress, signal: new AbortController().signal });
    const drain = async (snapshot: Snapshot): Promise<SourceItem[]> => {
      const items: SourceItem[] = [];
      for await (const batch of snapshot.items) items.push(...batch);
      return items;
    };
    const shown = (state: ReturnType<typeof replay>): string[] =>
      [...state.values()].map((row) => `${row.table} ${JSON.stringify(row.after).slice(0, 60)}`).sort();

    it('reads every table as of its position, whatever is written meanwhile', async () => {
      const snapshot = await open();
      await db.run(
        'UPDATE a SET v = 1 WHERE id = 1',
        'DELETE FROM a WHERE id = 2',
        'INSERT INTO a VALUES (4, 0)',
        'INSERT INTO b VALUES (3)',
      );
      const items = await drain(snapshot);
      const before = replay(items);
      assert.deepEqual(
        shown(before).filter((row) => !row.startsWith('big')),
        ['a {"id":1,"v":0}', 'a {"id":2,"v":0}', 'a {"id":3,"v":0}', 'b {"v":1}', 'b {"v":2}'],
      );
      assert.deepEqual(
        items.flatMap((item) => (item.kind === 'sweep' ? [item.table.table] : [])),
        ['a', 'b', 'big'],
      );
      assert.deepEqual(
        snapshot.tables.map((ref) => ref.table),
        ['a', 'b', 'big'],
      );
      assert.equal(snapshot.serverUuid, (await source.identify()).uuid);
      // the log from there leads to what a second snapshot sees
      const now = replay(await readItems(source, snapshot.position), before);
      assert.deepEqual(shown(now), shown(replay((await readSnapshot(source)).items)));
    });

    it('is exact while many sessions write', async () => {
      const small = db.source({ captures: (ref) => ref.database === db.name && ref.table === 'a' });
      const writers = await Promise.all(Array.from({ length: 4 }, async () => await connect(db.server)));
      for (let round = 0; round < 4; round += 1) {
        let busy = true;
        const work = writers.map(async (writer, w) => {
          await writer.query(`USE ${db.name}`);
          for (let i = 0; busy || i < 30; i += 1) {
            const id = 100 + w * 1000 + (i % 50);
            await writer.query(
              `REPLACE INTO a VALUES (${id}, ${i}); DELETE FROM a WHERE id = ${id - 7}; UPDATE a SET v = v + 1 WHERE id = ${id - 3}`,
            );
          }
        });
        const { position, items } = await readSnapshot(small);
        busy = false;
        await Promise.all(work);
        const reached = replay(await readItems(small, position), replay(items));
        assert.deepEqual(shown(reached), shown(replay((await readSnapshot(small)).items)));
        assert.ok(reached.size > 20);
      }
      await Promise.all(writers.map((writer) => writer.end()));
    });

    it('starts over when DDL changes a table before it was read', async () => {
      for (const ddl of [
        'ALTER TABLE big ADD COLUMN x INT',
        'ALTER TABLE big DROP COLUMN x',
        'TRUNCATE TABLE b',
        'RENAME TABLE b TO b2',
        'DROP TABLE b2',
      ]) {
        const snapshot = await open();
        await db.run(ddl);
        const error = await failureOf(drain(snapshot));
        assert.ok(isMysyncError(error, 'SOURCE_SNAPSHOT_RESTART') && error.retriable, `${ddl}: ${String(error)}`);
      }
      await db.run('CREATE TABLE b (v INT)');
    });

    it('gives back the lock on a table once it is read', async () => {
      const snapshot = await open();
      const reading = snapshot.items[Symbol.asyncIterator]();
      let item: SourceItem | undefined;
      do item = (await reading.next()).value?.[0];
      while (item?.kind !== 'sweep');
      await reading.next();
      await db.run(
        'SET SESSION lock_wait_timeout = 5',
        'ALTER TABLE a ADD COLUMN later INT',
        'ALTER TABLE a DROP COLUMN later',
      );
      await reading.return?.();
    });

    it('tells its progress, and ends when it is aborted or closed', async () => {
      const seen: SnapshotProgress[] = [];
      await drain(await open(source, (progress) => seen.push(progress)));
      const done = seen.filter((progress) => progress.done);
      assert.deepEqual(
        done.map((progress) => progress.table.table),
        ['a', 'b', 'big'],
      );
      assert.equal(done.at(-1)?.rows, 4000);
      assert.ok((done.at(-1)?.estimatedRows ?? 0) > 1000);
      const stop = new AbortController();
      const snapshot = await source.snapshot({ onProgress: () => undefined, signal: stop.signal });
      const reading = snapshot.items[Symbol.asyncIterator]();
      await reading.next();
      stop.abort();
      await failureOf(
        (async () => {
          for (;;) if ((await reading.next()).done) return;
        })().then(() => Promise.reject(new Error('ended'))),
      );
      const closed = await open();
      await closed.close();
    });

    it('of tables alone: one that is not there, and one that is not captured, are left out', async () => {
      await db.run('CREATE TABLE captured (id INT PRIMARY KEY)', 'CREATE TABLE other (id INT PRIMARY KEY)');
      const source = db.source({ captures: ({ database, table }) => database === db.name && table !== 'other' });
      const only = ['captured', 'other', 'gone'].map((table) => ({ database: db.name, table }));
      const { signal } = new AbortController();
      const snapshot = await source.snapshot({ only, signal, onProgress: () => undefined });
      assert.deepEqual(
        snapshot.tables.map(({ table }) => table),
        ['captured'],
      );
      await snapshot.close();
    });

    it('does without RELOAD by locking the tables, and says what it lacks', async () => {
      if (flavor === 'mariadb') return;
      const user = randomName('snap');
      await db.run(
        `CREATE USER ${user}@'%' IDENTIFIED BY 'snap'`,
        `GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO ${user}@'%'`,
        `GRANT SELECT ON ${db.name}.* TO ${user}@'%'`,
      );
      const modest = db.source({ user, password: 'snap' });
      const error = await failureOf(open(modest));
      assert.ok(isMysyncError(error, 'SOURCE_SNAPSHOT_DENIED'), String(error));
      assert.match(error.remedy, new RegExp(`GRANT RELOAD ON \\*\\.\\* TO '${user}'@'%'`));
      assert.ok(
        (await modest.check()).some(
          (finding) => finding.code === 'SOURCE_SNAPSHOT_DENIED' && finding.level === 'warning',
        ),
      );
      await db.run(`GRANT LOCK TABLES ON ${db.name}.* TO ${user}@'%'`);
      const blocker = await connect(db.server);
      await blocker.query(`USE ${db.name}; BEGIN; INSERT INTO a VALUES (900, 9)`);
      const opening = open(modest);
      await until(
        'the lock to be waited for',
        async () =>
          (
            await db.select(
              "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'LOCK TABLES%' AND STATE LIKE 'Waiting%'",
            )
          ).length > 0,
      );
      await blocker.query('COMMIT');
      const snapshot = await opening;
      const state = replay(await drain(snapshot));
      assert.ok(shown(state).includes('a {"id":900,"v":9}'));
      await blocker.end();
      await db.run(`DROP USER ${user}@'%'`);
    });
  });

  describe(`times on ${flavor}`, { timeout: 60_000 }, () => {
    it('are the same wherever process and server are (A9)', async () => {
      await using db = await TestDatabase.create(flavor);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP(3) NULL, dt DATETIME(3))');
      const from = await db.source().currentPosition();
      const times = ['2024-03-10 02:30:00.5', '2024-11-03 01:30:00', '1999-12-31 23:59:59.999'];
      await db.run("SET SESSION time_zone = '+08:00'");
      for (const [id, time] of times.entries()) await db.run(`INSERT INTO t VALUES (${id}, '${time}', '${time}')`);
      const expected = [
        { id: 0, ts: '2024-03-09 18:30:00.500', dt: '2024-03-10 02:30:00.500' },
        { id: 1, ts: '2024-11-02 17:30:00.000', dt: '2024-11-03 01:30:00.000' },
        { id: 2, ts: '1999-12-31 15:59:59.999', dt: '1999-12-31 23:59:59.999' },
      ];
      const zone = process.env.TZ;
      try {
        for (const TZ of ['UTC', 'Asia/Tokyo', 'America/New_York']) {
          process.env.TZ = TZ;
          const streamed = [...replay(await readItems(db.source(), from)).values()].map((row) => row.after);
          const copied = [...replay((await readSnapshot(db.source())).items).values()].map((row) => row.after);
          assert.deepEqual(streamed, expected, TZ);
          assert.deepEqual(copied, expected, TZ);
        }
      } finally {
        if (zone === undefined) delete process.env.TZ;
        else process.env.TZ = zone;
      }
    });
  });

  describe(`a row beyond the size of a packet on ${flavor}`, { timeout: 60_000 }, () => {
    it('comes whole by both ways', async () => {
      await using db = await TestDatabase.create(flavor);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)');
      const source = db.source();
      const from = await source.currentPosition();
      await db.run("INSERT INTO t VALUES (1, REPEAT(x'00FF41', 7000000)), (2, 'x')");
      for (const items of [await readItems(source, from), (await readSnapshot(source)).items]) {
        const [row] = [...replay(items).values()];
        const value = row?.after?.['v'] as Uint8Array;
        assert.ok(Buffer.from(value).equals(Buffer.alloc(21_000_000, Buffer.from([0, 255, 65]))));
      }
    });
  });

  describe(`a large transaction on ${flavor}`, { timeout: 120_000 }, () => {
    it('goes through a file and comes out whole (D1)', async () => {
      await using db = await TestDatabase.create(flavor);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))');
      const source = db.source({ spoolBytes: 1 << 20 });
      const from = await source.currentPosition();
      await db.run('BEGIN');
      for (let i = 0; i < 100; i += 1) {
        await db.run(
          `INSERT INTO t VALUES ${Array.from({ length: 1000 }, (_, j) => `(${i * 1000 + j}, 'value ${j}')`).join(',')}`,
        );
        if (i === 49) await db.run('SAVEPOINT half');
      }
      await db.run('COMMIT');
      let rows = 0;
      let last = 0;
      const ids = new Set<unknown>();
      for (const item of await readItems(source, from)) {
        if (item.kind !== 'row') continue;
        rows += 1;
        assert.equal(item.ordinal, rows);
        const row = [...replay([item]).values()][0];
        ids.add(row?.after?.['id']);
        if (row?.last === true) last = item.ordinal;
      }
      assert.deepEqual([rows, ids.size, last], [100_000, 100_000, 100_000]);
    });
  });
}
