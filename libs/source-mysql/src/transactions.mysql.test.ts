/** Whole transactions, and nothing else: cases D2 to D4, D6, B9, C8, and what the log holds beside rows. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SourcePosition } from '@mysync/core';
import type { BinlogSource, SourceItem } from './port.ts';
import { FLAVORS, readItems, replay, rowsOf, saidBy, TestDatabase } from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`transactions on ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    let source: BinlogSource;
    let from: SourcePosition;

    before(async () => {
      db = await TestDatabase.create(flavor);
      source = db.source();
    });
    after(async () => {
      await db.close();
    });

    /** What the statements put into the stream. */
    async function streamed(...statements: readonly string[]): Promise<SourceItem[]> {
      from = await source.currentPosition();
      await db.run(...statements);
      return await readItems(source, from);
    }
    const kinds = (items: readonly SourceItem[]): string =>
      items
        .filter((item) => item.kind !== 'keepalive')
        .map((item) => (item.kind === 'row' ? `row${item.ordinal}` : item.kind))
        .join(' ');

    it('hands over a transaction of large rows, which is in a file, in pieces of few bytes', async () => {
      from = await source.currentPosition();
      await db.run(
        'CREATE TABLE large (id INT PRIMARY KEY, v LONGBLOB)',
        'BEGIN',
        ...Array.from({ length: 40 }, (_, id) => `INSERT INTO large VALUES (${id}, REPEAT('x', 1000000))`),
        'COMMIT',
      );
      const stop = new AbortController();
      const small = db.source({ spoolBytes: 1 << 20 });
      let rows = 0;
      for await (const items of small.stream({ from, signal: stop.signal })) {
        const ofRows = items.flatMap((item) => (item.kind === 'row' ? [item.bytes] : []));
        rows += ofRows.length;
        assert.ok(ofRows.length <= 4, `${ofRows.length} rows of a MB at once`);
        if (rows > 0 && items.some((item) => item.kind === 'commit')) stop.abort();
      }
      assert.equal(rows, 40);
    });

    it('hands over each transaction whole, its last row marked', async () => {
      const items = await streamed(
        'CREATE TABLE a (id INT PRIMARY KEY, v INT)',
        'INSERT INTO a VALUES (1, 1), (2, 2)',
        'BEGIN',
        'UPDATE a SET v = 3 WHERE id = 1',
        'DELETE FROM a WHERE id = 2',
        'COMMIT',
      );
      assert.equal(kinds(items), 'begin ddl commit begin row1 row2 commit begin row1 row2 commit');
      assert.deepEqual(
        rowsOf(items).map((row) => [row.operation, row.before?.['v'] ?? null, row.after?.['v'] ?? null, row.last]),
        [
          ['insert', null, 1, false],
          ['insert', null, 2, true],
          ['update', 1, 3, false],
          ['delete', 2, null, true],
        ],
      );
      const commits = items.flatMap((item) => (item.kind === 'commit' ? [item] : []));
      assert.deepEqual(
        commits.map((commit) => commit.ordinals),
        [1, 2, 2],
      );
    });

    it('names transactions alike on every reading, and resumes at each commit', async () => {
      const all = await streamed(
        'CREATE TABLE r (id INT PRIMARY KEY)',
        'INSERT INTO r VALUES (1)',
        'INSERT INTO r VALUES (2)',
        'DELETE FROM r',
      );
      const items = all.filter((item) => item.kind !== 'keepalive');
      assert.deepEqual(saidBy(await readItems(source, from)), saidBy(items));
      for (const [i, item] of items.entries()) {
        if (item.kind !== 'commit') continue;
        assert.deepEqual(saidBy(await readItems(source, item.position)), saidBy(items.slice(i + 1)));
      }
    });

    it('knows the GTID set at each commit, also when it starts at a file without one', async () => {
      const items = await streamed('CREATE TABLE g (id INT PRIMARY KEY)', 'INSERT INTO g VALUES (1)');
      await db.run('FLUSH BINARY LOGS');
      const { file } = await source.currentPosition();
      await db.run('INSERT INTO g VALUES (2)');
      const anew = await readItems(source, { file, offset: 4, gtidSet: '' });
      let gtid = '';
      let commits = 0;
      for (const item of [...items, ...anew]) {
        if (item.kind === 'begin') gtid = item.id.gtid;
        if (item.kind !== 'commit') continue;
        commits += 1;
        const { gtidSet, file, offset } = item.position;
        if (flavor === 'mariadb') {
          assert.deepEqual(await db.select(`SELECT BINLOG_GTID_POS('${file}', ${offset})`), [[gtidSet]]);
        } else {
          const inside = `GTID_SUBSET('${gtid}', '${gtidSet}') AND GTID_SUBSET('${gtidSet}', @@GLOBAL.gtid_executed)`;
          const whole = `GTID_SUBTRACT(@@GLOBAL.gtid_executed, '${gtidSet}') NOT LIKE '%:1-%'`;
          assert.deepEqual(await db.select(`SELECT ${inside}, ${whole}`), [['1', '1']]);
        }
      }
      assert.equal(commits, 3);
    });

    it('begins behind a GTID set when only that is known', async () => {
      await db.run('CREATE TABLE gs (id INT PRIMARY KEY)', 'INSERT INTO gs VALUES (1)', 'FLUSH BINARY LOGS');
      const { gtidSet } = await source.currentPosition();
      const items = await streamed('INSERT INTO gs VALUES (2)', 'FLUSH BINARY LOGS', 'INSERT INTO gs VALUES (3)');
      const anew = await readItems(source, { file: '', offset: 0, gtidSet });
      assert.deepEqual(saidBy(anew), saidBy(items));
      assert.ok(anew.every((item) => !('position' in item) || item.position.file !== ''));
    });

    it('hands over nothing of a rolled back transaction', async () => {
      const items = await streamed(
        'CREATE TABLE rb (id INT PRIMARY KEY)',
        'BEGIN',
        'INSERT INTO rb VALUES (1)',
        'ROLLBACK',
      );
      assert.equal(kinds(items), 'begin ddl commit');
    });

    it('reads statements that change several tables, by join and by trigger (D3)', async () => {
      const items = await streamed(
        'CREATE TABLE j1 (id INT PRIMARY KEY, v INT)',
        'CREATE TABLE j2 (id INT PRIMARY KEY, v INT)',
        'CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, what INT)',
        'CREATE TRIGGER tr AFTER UPDATE ON j1 FOR EACH ROW INSERT INTO log (what) VALUES (NEW.v)',
        'INSERT INTO j1 VALUES (1, 1), (2, 2)',
        'INSERT INTO j2 VALUES (1, 1), (2, 2)',
        'UPDATE j1 JOIN j2 USING (id) SET j1.v = 10 + j1.id, j2.v = 20 + j2.id',
      );
      const state = [...replay(items).values()]
        .map((row) => `${row.table}:${Object.values(row.after ?? {}).join('=')}`)
        .sort();
      assert.deepEqual(state, ['j1:1=11', 'j1:2=12', 'j2:1=21', 'j2:2=22', 'log:1=11', 'log:2=12']);
    });

    it('delivers the rows of CREATE TABLE … SELECT (B9)', async () => {
      const items = await streamed(
        'CREATE TABLE s1 (id INT PRIMARY KEY, v INT)',
        'INSERT INTO s1 VALUES (1, 1), (2, 2)',
        'CREATE TABLE s2 SELECT * FROM s1',
        'CREATE TABLE s3 LIKE s1',
        'INSERT INTO s3 SELECT * FROM s1',
      );
      const rows = rowsOf(items);
      assert.equal(rows.filter((row) => row.table === 's2').length, 2);
      assert.equal(rows.find((row) => row.table === 's2')?.schema.keyRule, 'row-hash');
      assert.equal(rows.find((row) => row.table === 's3')?.schema.keyRule, 'primary');
    });

    it('skips what nobody captures, and moves on', async () => {
      const other = db.source({ captures: (ref) => ref.table === 'mine' });
      from = await other.currentPosition();
      await db.run(
        'CREATE TABLE other (id INT PRIMARY KEY)',
        'INSERT INTO other VALUES (1)',
        'CREATE TEMPORARY TABLE tmp (id INT)',
        'DROP TEMPORARY TABLE tmp',
        'FLUSH BINARY LOGS',
        'INSERT INTO other VALUES (2)',
      );
      const items = await readItems(other, from);
      assert.equal(kinds(items), '');
      assert.equal(items.at(-1)?.kind, 'keepalive');
    });

    it('reads XA COMMIT ONE PHASE as a commit', async () => {
      const items = await streamed(
        'CREATE TABLE xo (id INT PRIMARY KEY)',
        "XA START 'x2'",
        'INSERT INTO xo VALUES (1)',
        "XA END 'x2'",
        "XA COMMIT 'x2' ONE PHASE",
      );
      assert.equal(kinds(items), 'begin ddl commit begin row1 commit');
    });

    if (flavor === 'mysql') {
      it('delivers the rows that a foreign key changes', async () => {
        const items = await streamed(
          'CREATE TABLE p (id INT PRIMARY KEY)',
          'CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)',
          'INSERT INTO p VALUES (1), (2)',
          'INSERT INTO c VALUES (1, 1), (2, 2)',
          'DELETE FROM p WHERE id = 1',
          'UPDATE p SET id = 5 WHERE id = 2',
        );
        const state = [...replay(items).values()].map(
          (row) => `${row.table}:${Object.values(row.after ?? {}).join('=')}`,
        );
        assert.deepEqual(state.sort(), ['c:2=5', 'p:5']);
        await db.run('DROP TABLE c', 'DROP TABLE p');
      });
    }

    if (flavor === 'mariadb') {
      it('ignores sequences', async () => {
        const items = await streamed(
          'CREATE SEQUENCE sq',
          'SELECT NEXT VALUE FOR sq',
          'CREATE TABLE after_sq (id INT PRIMARY KEY)',
        );
        assert.equal(rowsOf(items).length, 0);
      });

      it('does not suspect a trigger that did not fire', async () => {
        const items = await streamed(
          'CREATE TABLE tp (id INT PRIMARY KEY, v INT)',
          'CREATE TABLE audit (id INT PRIMARY KEY)',
          'CREATE TRIGGER ta AFTER UPDATE ON tp FOR EACH ROW IF NEW.v > 100 THEN INSERT INTO audit VALUES (NEW.id); END IF',
          'INSERT INTO tp VALUES (1, 1)',
          'UPDATE tp SET v = 2',
        );
        assert.equal(rowsOf(items).length, 2);
      });
    }
  });
}
