/** System-versioned tables whose definition changes, or whose name: rows are read by what the table was then. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SourceItem } from './port.ts';
import { readItems, replay, rowsOf, type TestDatabase } from './testing.fixture.ts';
import { assertCopies, EXPLICIT, emptied, ofUnseen, PERIOD, VERSIONS, VersionedTables } from './versioned.fixture.ts';

for (const version of VERSIONS)
  describe(`system-versioned tables that change, mariadb ${version}`, { timeout: 480_000 }, () => {
    let tables: VersionedTables;
    let full: TestDatabase;
    let scanty: TestDatabase;
    const streamed = (db: TestDatabase, ...statements: readonly string[]): Promise<SourceItem[]> =>
      tables.streamed(db, ...statements);
    before(async () => {
      tables = await VersionedTables.open(version);
      ({ full, scanty } = tables);
    });
    after(() => tables?.close());

    /** One statement at a time, as a stream that is not behind reads it. */
    async function followed(db: TestDatabase, statements: readonly string[]): Promise<SourceItem[]> {
      const items: SourceItem[] = [];
      const source = db.source();
      for (const statement of statements) {
        const from = await source.currentPosition();
        await db.run(statement);
        items.push(...(await readItems(source, from)));
      }
      await source.close();
      return items;
    }

    const TO_VERSIONED = [
      'CREATE TABLE turned (id INT PRIMARY KEY, v INT)',
      'INSERT INTO turned VALUES (1, 1), (2, 2), (3, 3)',
      'ALTER TABLE turned ADD SYSTEM VERSIONING',
      'UPDATE turned SET v = 11 WHERE id = 1',
      'DELETE FROM turned WHERE id = 2',
      'ALTER TABLE turned ADD COLUMN w INT DEFAULT 5',
      'ALTER TABLE turned ADD COLUMN first INT FIRST',
      'UPDATE turned SET id = 30 WHERE id = 3',
      'UPDATE turned SET w = 6',
    ];
    const TO_PLAIN = [
      'ALTER TABLE turned DROP SYSTEM VERSIONING',
      'UPDATE turned SET v = 12 WHERE id = 1',
      'INSERT INTO turned (id, v) VALUES (4, 4), (5, 5)',
      'DELETE FROM turned WHERE id = 4',
    ];
    const TO_EXPLICIT = [
      `ALTER TABLE turned ADD COLUMN s TIMESTAMP(6) AS ROW START INVISIBLE, ADD COLUMN e TIMESTAMP(6) AS ROW END INVISIBLE, ADD ${PERIOD}, ADD SYSTEM VERSIONING`,
      'UPDATE turned SET v = v + 100',
      'DELETE FROM turned WHERE id = 5',
      'ALTER TABLE turned RENAME COLUMN e TO till',
      'UPDATE turned SET v = v + 100',
      'ALTER TABLE turned DROP SYSTEM VERSIONING, DROP COLUMN s, DROP COLUMN till',
      'UPDATE turned SET v = v + 100',
    ];

    it('may become versioned and plain again while they are read', async () => {
      await emptied(full);
      const items = await followed(full, [...TO_VERSIONED, ...TO_PLAIN, ...TO_EXPLICIT]);
      assert.deepEqual(ofUnseen(items), []);
      await assertCopies(full, replay(items));
    });

    it('are read by what the table was then, where the history of its statements tells', async () => {
      for (const statements of [TO_VERSIONED, [...TO_VERSIONED, ...TO_PLAIN, ...TO_EXPLICIT]]) {
        await emptied(scanty);
        const items = await streamed(scanty, ...statements);
        assert.deepEqual(ofUnseen(items), []);
        await assertCopies(scanty, replay(items));
      }
    });

    it('are read by what the table was then, where the log names columns as well', async () => {
      for (const statements of [TO_VERSIONED, [...TO_VERSIONED, ...TO_PLAIN, ...TO_EXPLICIT]]) {
        await emptied(full);
        const items = await streamed(full, ...statements);
        assert.deepEqual(ofUnseen(items), []);
        await assertCopies(full, replay(items));
      }
    });

    it('are none of those whose name they took, and these none of them', async () => {
      const OWN = 's TIMESTAMP(6) NOT NULL DEFAULT NOW(6), e TIMESTAMP(6) NOT NULL DEFAULT NOW(6)';
      for (const db of [full, scanty]) {
        await emptied(db);
        const items = await streamed(
          db,
          `CREATE TABLE a (id INT, v INT, ${OWN})`,
          `CREATE TABLE b (id INT PRIMARY KEY, v INT, ${EXPLICIT}, ${PERIOD}) WITH SYSTEM VERSIONING`,
          'INSERT INTO a (id, v) VALUES (1, 1), (2, 2)',
          'INSERT INTO b (id, v) VALUES (1, 1), (2, 2)',
          'UPDATE a SET v = v + 10',
          'UPDATE b SET v = v + 10',
          'CREATE TABLE c AS SELECT * FROM b',
          'INSERT INTO c (id, v, s, e) VALUES (9, 9, NOW(6), NOW(6))',
          'DELETE FROM a',
          'DELETE FROM b',
          'RENAME TABLE a TO x, b TO a, x TO b',
          'INSERT INTO a (id, v) VALUES (3, 3), (4, 4)',
          'INSERT INTO b (id, v) VALUES (3, 3), (4, 4)',
          'UPDATE a SET v = v + 10',
          'UPDATE b SET v = v + 10',
          'ALTER TABLE a ADD COLUMN w INT',
        );
        assert.deepEqual(
          ofUnseen(items).filter((text) => text.includes('versioning')),
          [],
        );
        const operations = (table: string): string[] =>
          rowsOf(items).flatMap((row) => (row.table === table ? [row.operation] : []));
        const keyed = ['insert', 'insert', 'update', 'update', 'delete', 'delete'];
        const moved = ['insert', 'insert', 'delete', 'insert', 'delete', 'insert'];
        assert.deepEqual(operations('a'), [...moved, 'delete', 'delete', ...keyed.slice(0, 4)]);
        assert.deepEqual(operations('b'), [...keyed, ...moved]);
        assert.deepEqual(operations('c'), ['insert', 'insert', 'insert']);
        const state = replay(items);
        // a column that came without a row
        for (const [key, row] of state) {
          if (row.table === 'a') state.set(key, { ...row, after: { ...row.after, w: null } });
        }
        await assertCopies(db, state);
      }
    });

    it('are read by the catalogue where nothing else tells, and told as unseen where it tells of another time', async () => {
      await emptied(full);
      await full.run(
        `CREATE TABLE turned (id INT PRIMARY KEY, v INT, ${EXPLICIT}, ${PERIOD}) WITH SYSTEM VERSIONING`,
        'CREATE TABLE hidden (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING',
      );
      const source = full.source();
      const from = await source.currentPosition();
      await full.run(
        'INSERT INTO turned (id, v) VALUES (1, 1), (2, 2)',
        'UPDATE turned SET v = 10 WHERE id = 1',
        'INSERT INTO hidden VALUES (1, 1)',
        'UPDATE hidden SET v = 10',
        'ALTER TABLE hidden ADD COLUMN w INT FIRST',
        'ALTER TABLE turned ADD COLUMN w INT, ADD KEY (v)',
        'DELETE FROM turned WHERE id = 2',
      );
      const read = await readItems(source, from);
      assert.deepEqual(ofUnseen(read), []);
      const told = rowsOf(read).map(({ table, operation }) => `${table} ${operation}`);
      const both = ['turned insert', 'turned insert', 'turned update', 'hidden insert', 'hidden update'];
      assert.deepEqual(told, [...both, 'turned delete']);

      await full.run('ALTER TABLE turned RENAME COLUMN e TO till', 'ALTER TABLE hidden DROP SYSTEM VERSIONING');
      const later = await readItems(source, from);
      await source.close();
      assert.deepEqual(ofUnseen(later), [
        ...Array(2).fill('turned versioning'),
        ...Array(2).fill('hidden versioning'),
        'turned versioning',
      ]);
      assert.deepEqual(rowsOf(later), []);
    });

    it('are read by their hidden columns when they are gone', async () => {
      await emptied(full);
      const items = await streamed(
        full,
        'CREATE TABLE dropped (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING',
        'INSERT INTO dropped VALUES (1, 1), (2, 2)',
        'UPDATE dropped SET v = 3 WHERE id = 1',
        'DELETE FROM dropped WHERE id = 2',
        'DROP TABLE dropped',
      );
      assert.deepEqual(ofUnseen(items), []);
      assert.deepEqual(
        rowsOf(items).map(({ operation, before: old, after: image }) => [operation, Object.values(image ?? old ?? {})]),
        [
          ['insert', [1, 1]],
          ['insert', [2, 2]],
          ['update', [1, 3]],
          ['delete', [2, 2]],
        ],
      );
    });

    it('are none of those that have such columns of their own, though they lost them or are gone', async () => {
      await emptied(full);
      const items = await streamed(
        full,
        'CREATE TABLE own (id INT, a TIMESTAMP(6) NOT NULL DEFAULT NOW(6), b TIMESTAMP(6) NOT NULL DEFAULT NOW(6), PRIMARY KEY (id, a))',
        'CREATE TABLE lost (id INT PRIMARY KEY, a TIMESTAMP(6) NOT NULL DEFAULT NOW(6), b TIMESTAMP(6) NOT NULL DEFAULT NOW(6))',
        'INSERT INTO own (id) VALUES (1)',
        'INSERT INTO lost (id) VALUES (1)',
        'ALTER TABLE own ADD SYSTEM VERSIONING',
        'UPDATE own SET id = 2',
        'ALTER TABLE lost DROP COLUMN a, DROP COLUMN b',
        'CREATE TABLE gone LIKE lost',
        'ALTER TABLE gone ADD COLUMN row_start TIMESTAMP(6) NOT NULL DEFAULT NOW(6), ADD COLUMN row_end TIMESTAMP(6) NOT NULL DEFAULT NOW(6)',
        'INSERT INTO gone (id) VALUES (1)',
        'DROP TABLE gone',
      );
      assert.deepEqual(ofUnseen(items), []);
      assert.deepEqual(
        rowsOf(items).map(({ table, operation }) => `${table} ${operation}`),
        ['own insert', 'lost insert', 'own delete', 'own insert', 'gone insert'],
      );
    });
  });
