/** Changes that the log does not show as rows are told, and a view of single tables beside the stream: cases B10, B16, D6, cascades. */
import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { compareBinlogPositions, isMysyncError, type TableRef } from '@mysync/core';
import { createConnection } from 'mysql2/promise';
import type { BinlogSource, Snapshot, SourceItem } from './port.ts';
import { connect, FLAVORS, failureOf, readItems, replay, rowsOf, TestDatabase } from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`changes without rows on ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    let source: BinlogSource;
    before(async () => {
      db = await TestDatabase.create(flavor);
      source = db.source();
      // so that the stream knows of it when it connects
      await db.run(
        'CREATE TABLE t (id INT PRIMARY KEY, n INT)',
        'INSERT INTO t VALUES (1, 1), (2, 2)',
        'CREATE TABLE other (id INT PRIMARY KEY)',
        'CREATE VIEW v AS SELECT * FROM t',
        'CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE t SET n = n + 1; RETURN 1; END',
      );
    });
    after(async () => {
      await db.close();
    });

    async function streamed(...statements: readonly string[]): Promise<SourceItem[]> {
      const from = await source.currentPosition();
      await db.run(...statements);
      return await readItems(source, from);
    }
    const story = (items: readonly SourceItem[]): string[] =>
      items.flatMap((item) => {
        if (item.kind === 'row') return [`row${item.ordinal}`];
        if (item.kind === 'unseen') return [`unseen${item.ordinal} ${item.table.table} ${item.cause}`];
        if (item.kind === 'commit') return [`commit ${item.ordinals}`];
        return item.kind === 'truncate' || item.kind === 'ddl' ? [`${item.kind} ${item.table.table}`] : [];
      });

    it('tells of a table made with rows of a query that are logged as text only (B9)', async () => {
      await db.run('SET SESSION binlog_format = STATEMENT');
      try {
        const items = story(await streamed('CREATE TABLE filled AS SELECT * FROM t', 'DROP TABLE filled'));
        assert.ok(items.includes('unseen2 filled statement'), items.join(', '));
      } finally {
        await db.run('SET SESSION binlog_format = ROW');
      }
      const asRows = story(await streamed('CREATE TABLE filled AS SELECT * FROM t', 'DROP TABLE filled'));
      assert.deepEqual(
        asRows.filter((each) => each.startsWith('unseen')),
        [],
      );
      assert.ok(
        asRows.some((each) => each.startsWith('row')),
        asRows.join(', '),
      );
    });

    it('a table that the user may not see is not taken for one that is gone', async () => {
      const user = `u${db.name}`.slice(0, 30);
      await db.run(
        'CREATE TABLE hidden (id INT PRIMARY KEY)',
        `CREATE USER ${user} IDENTIFIED BY 'secret'`,
        `GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${user}`,
        `GRANT SELECT ON ${db.name}.t TO ${user}`,
      );
      const blind = db.source({ user, password: 'secret' });
      try {
        const only = [{ database: db.name, table: 'hidden' }];
        const options = { only, onProgress: () => undefined, signal: new AbortController().signal };
        await assert.rejects(blind.snapshot(options), { code: 'SOURCE_GRANT_MISSING' });
        await db.run('DROP TABLE hidden');
        const gone = await source.snapshot(options);
        assert.deepEqual(gone.tables, []);
        await gone.close();
      } finally {
        await blind.close();
        await db.run(`DROP USER ${user}`);
      }
    });

    it('tells of statements logged as text, behind the rows of their transaction (D6)', async () => {
      await db.run('SET SESSION binlog_format = STATEMENT');
      try {
        assert.deepEqual(story(await streamed('UPDATE t SET n = n + 1')), ['unseen1 t statement', 'commit 1']);
        assert.deepEqual(
          story(await streamed('BEGIN', 'UPDATE t SET n = n + 1', 'DELETE FROM other', 'UPDATE t SET n = 5', 'COMMIT')),
          ['unseen1 t statement', 'unseen2 other statement', 'commit 2'],
        );
        const throughView = story(await streamed('UPDATE v SET n = n + 1'));
        assert.deepEqual(throughView.sort(), ['commit 2', 'unseen1 other statement', 'unseen2 t statement'].sort());
        assert.ok(story(await streamed('SELECT f()')).includes('unseen2 t statement'));
        const none = db.source({ captures: (ref) => ref.table === 'nothing' });
        const from = await none.currentPosition();
        await db.run('UPDATE t SET n = n + 1');
        assert.deepEqual(story(await readItems(none, from)), []);
      } finally {
        await db.run('SET SESSION binlog_format = ROW');
      }
    });

    it('tells of LOAD DATA logged as text', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'mysync-load-'));
      const file = join(folder, 'rows.txt');
      writeFileSync(file, '11,11\n12,12\n');
      const before = (await db.select('SELECT @@GLOBAL.local_infile'))[0]?.[0];
      const sql = await createConnection({
        host: '127.0.0.1',
        port: db.port,
        user: 'mysync',
        password: 'mysync',
        database: db.name,
        infileStreamFactory: () => createReadStream(file),
      });
      try {
        await db.run('SET GLOBAL local_infile = 1');
        const from = await source.currentPosition();
        await sql.query('SET SESSION binlog_format = STATEMENT');
        await sql.query(`LOAD DATA LOCAL INFILE '${file}' INTO TABLE t FIELDS TERMINATED BY ','`);
        assert.deepEqual(story(await readItems(source, from)), ['unseen1 t statement', 'commit 1']);
      } finally {
        await db.run(`SET GLOBAL local_infile = ${before}`);
        await sql.end();
        rmSync(folder, { recursive: true });
      }
    });

    it('tells of statements in a group that was rolled back: a table without transactions keeps them', async () => {
      await db.run('CREATE TABLE my (id INT PRIMARY KEY) ENGINE = MyISAM', 'SET SESSION binlog_format = STATEMENT');
      if (flavor === 'mysql') await db.run('SET SESSION binlog_direct_non_transactional_updates = OFF');
      try {
        const items = await streamed('BEGIN', 'UPDATE t SET n = n + 1', 'INSERT INTO my VALUES (1)', 'ROLLBACK').catch(
          (error: unknown) => error,
        );
        // with GTIDs, MySQL refuses such a transaction
        if (items instanceof Error) assert.match(items.message, /GTID|gtid/);
        else
          assert.ok(
            story(items as SourceItem[]).some((each) => each.includes('my statement')),
            story(items as SourceItem[]).join(),
          );
      } finally {
        await db.run('ROLLBACK', 'SET SESSION binlog_format = ROW', 'DROP TABLE my');
      }
    });

    it('tells where rows go with their partition (B16)', async () => {
      for (const ddl of ['TRUNCATE PARTITION p0', 'DROP PARTITION p0', 'EXCHANGE PARTITION p0 WITH TABLE ex']) {
        await db.run(
          'CREATE TABLE ex (id INT PRIMARY KEY)',
          'CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)',
          'INSERT INTO p VALUES (1), (20)',
        );
        const items = await streamed(`ALTER TABLE p ${ddl}`);
        const both = ddl.startsWith('EXCHANGE');
        assert.deepEqual(
          story(items),
          both
            ? ['ddl p', 'ddl ex', 'unseen3 p partition', 'unseen4 ex partition', 'commit 4']
            : ['ddl p', 'unseen2 p partition', 'commit 2'],
        );
        await db.run('DROP TABLE p', 'DROP TABLE ex');
      }
    });

    it('tells of a table that takes a captured name (B10)', async () => {
      await db.run('CREATE TABLE a (id INT PRIMARY KEY)', 'CREATE TABLE b (id INT PRIMARY KEY)');
      const only = db.source({ captures: (ref) => ref.database === db.name && ref.table === 'a' });
      const from = await only.currentPosition();
      await db.run('RENAME TABLE a TO _a_del, b TO a');
      assert.deepEqual(story(await readItems(only, from)), ['ddl a', 'ddl a', 'unseen3 a rename', 'commit 3']);
      assert.deepEqual(story(await streamed('ALTER TABLE a RENAME TO c')), [
        'ddl a',
        'truncate a',
        'ddl c',
        'unseen4 c rename',
        'commit 4',
      ]);
      await db.run('DROP TABLE _a_del', 'DROP TABLE c');
    });

    it('says which ALTER changes what unchanged rows look like', async () => {
      const reshaping = async (ddl: string): Promise<unknown> =>
        (await streamed(`ALTER TABLE other ${ddl}`)).flatMap((item) =>
          item.kind === 'ddl' ? [item.reshapes === true] : [],
        );
      assert.deepEqual(await reshaping('ADD COLUMN x INT DEFAULT 7, ADD COLUMN y INT'), [true]);
      assert.deepEqual(await reshaping('ADD INDEX (x, y)'), [false]);
      assert.deepEqual(await reshaping('DROP PRIMARY KEY, ADD PRIMARY KEY (id, y)'), [true]);
      assert.deepEqual(await reshaping("COMMENT 'a, b', ENGINE = InnoDB"), [false]);
      await db.run('DROP TABLE other', 'CREATE TABLE other (id INT PRIMARY KEY)');
    });

    if (flavor === 'mariadb') {
      it('tells of child rows that a foreign key may have changed', async () => {
        await db.run(
          'CREATE TABLE parent (id INT PRIMARY KEY)',
          'CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)',
          'INSERT INTO parent VALUES (1), (2)',
          'INSERT INTO child VALUES (1, 1)',
        );
        const items = await streamed(
          'DELETE FROM parent WHERE id = 1',
          'BEGIN',
          'UPDATE parent SET id = 3',
          'INSERT INTO child VALUES (5, 3)',
          'COMMIT',
          'INSERT INTO parent VALUES (9)',
        );
        assert.deepEqual(
          story(items).filter((each) => !each.startsWith('row')),
          ['unseen2 child cascade', 'commit 2', 'unseen4 child cascade', 'commit 4', 'commit 1'],
        );
        await db.run('DROP TABLE child', 'DROP TABLE parent');
      });
    }

    if (flavor === 'mariadb') {
      it('tells of a table that is its own parent, and of children with rows of their own in the statement', async () => {
        await db.run(
          'CREATE TABLE staff (id INT PRIMARY KEY, boss INT, FOREIGN KEY (boss) REFERENCES staff (id) ON DELETE CASCADE)',
          'INSERT INTO staff VALUES (1, NULL), (2, 1), (3, 2), (4, NULL)',
          'CREATE TABLE a (id INT PRIMARY KEY)',
          'CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) ON DELETE SET NULL)',
          'INSERT INTO a VALUES (1), (2)',
          'INSERT INTO b VALUES (1, 1), (2, 2)',
        );
        assert.deepEqual(story(await streamed('UPDATE staff SET boss = 4 WHERE id = 2')), ['row1', 'commit 1']);
        assert.deepEqual(story(await streamed('DELETE FROM staff WHERE id = 2')), [
          'row1',
          'unseen2 staff cascade',
          'commit 2',
        ]);
        assert.deepEqual(story(await streamed('DELETE a, b FROM a JOIN b ON b.id = 2 WHERE a.id = 1')), [
          'row1',
          'row2',
          'unseen3 b cascade',
          'commit 3',
        ]);
        assert.deepEqual(story(await streamed('DELETE FROM b')), ['row1', 'commit 1']);
        assert.deepEqual(await db.select('SELECT id FROM staff ORDER BY id'), [['1'], ['4']]);
        await db.run('DROP TABLE b', 'DROP TABLE a', 'DROP TABLE staff');
      });
    } else {
      it('has nothing to tell of foreign keys: their rows are logged', async () => {
        await db.run(
          'CREATE TABLE parent (id INT PRIMARY KEY)',
          'CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)',
          'INSERT INTO parent VALUES (1), (2)',
          'INSERT INTO child VALUES (1, 1)',
        );
        const told = story(await streamed('DELETE FROM parent WHERE id = 1', 'DELETE FROM parent WHERE id = 2'));
        assert.deepEqual(told, ['row1', 'row2', 'commit 2', 'row1', 'commit 1']);
        await db.run('DROP TABLE child', 'DROP TABLE parent');
      });
    }

    const viewOf = async (tables: readonly string[], more = source): Promise<Snapshot> => {
      const only = tables.map((table): TableRef => ({ database: db.name, table }));
      return await more.snapshot({ only, onProgress: () => undefined, signal: new AbortController().signal });
    };

    it('reads single tables beside the stream, as of a place that the stream comes to', async () => {
      await db.run('DELETE FROM t', 'INSERT INTO t VALUES (1, 1), (2, 2)', 'FLUSH BINARY LOGS');
      const from = await source.currentPosition();
      const view = await viewOf(['t', 'not_there']);
      try {
        assert.deepEqual(view.tables, [{ database: db.name, table: 't' }]);
        assert.ok(compareBinlogPositions(view.position, from) >= 0);
        await db.run('UPDATE t SET n = 100');
        const items: SourceItem[] = [];
        for await (const batch of view.items) items.push(...batch);
        assert.deepEqual(
          rowsOf(items).map((row) => row.after),
          [
            { id: 1, n: 1 },
            { id: 2, n: 2 },
          ],
        );
        // the boundaries of the stream reach the view's place, also where nothing captured stands
        const until = await readItems(source, from, view.position);
        assert.ok(until.length > 0);
        const state = replay(await readItems(source, view.position), replay(items));
        assert.deepEqual(
          [...state.values()].map((row) => row.after?.['n']),
          [100, 100],
        );
      } finally {
        await view.close();
      }
      const none = await viewOf(['not_there']);
      assert.deepEqual(none.tables, []);
      for await (const batch of none.items) assert.deepEqual(story(batch), ['truncate not_there']);
      await none.close();
    });

    it('reaches the place of a view on a server where nothing happens', async () => {
      await db.run('FLUSH BINARY LOGS');
      const view = await viewOf(['t']);
      await view.close();
      const from = await source.earliestPosition();
      const items = await readItems(source, from, view.position);
      assert.ok(items.length > 0);
    });

    it('keeps another table from taking the name before it was read', async () => {
      await db.run('CREATE TABLE g (id INT PRIMARY KEY, n INT)', 'INSERT INTO g VALUES (1, -1)');
      const view = await viewOf(['t']);
      const admin = await connect(db.server);
      const renamed = admin.query(`RENAME TABLE ${db.name}.t TO ${db.name}.old, ${db.name}.g TO ${db.name}.t`);
      const items: SourceItem[] = [];
      for await (const batch of view.items) items.push(...batch);
      await view.close();
      await renamed;
      await admin.end();
      assert.deepEqual(
        rowsOf(items).map((row) => row.after?.['n']),
        [100, 100],
      );
      await db.run('DROP TABLE t', 'RENAME TABLE old TO t');
    });

    if (flavor === 'mysql') {
      it('does not wait for long for whoever has changed the table', async () => {
        const other = await connect(db.server);
        await other.query(`BEGIN; UPDATE ${db.name}.t SET n = n`);
        await other.query(`UPDATE ${db.name}.t SET n = 7`);
        const error = await failureOf(viewOf(['t']));
        assert.ok(isMysyncError(error, 'SOURCE_SNAPSHOT_RESTART') && error.retriable, String(error));
        await other.query('ROLLBACK');
        await other.end();
        await (await viewOf(['t'])).close();
      });
    }
  });
}
