/** System-versioned tables: a copy holds the current rows only, whatever the server logs of their history. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { TestHistory } from './history/history.fixture.ts';
import type { SourceItem } from './port.ts';
import { readItems, readSnapshot, replay, rowsOf, type TestDatabase } from './testing.fixture.ts';
import { assertCopies, EXPLICIT, emptied, ofUnseen, PERIOD, VERSIONS, VersionedTables } from './versioned.fixture.ts';

/** Each as `CREATE TABLE name …`; columns id and v at least. */
const TABLES: Readonly<Record<string, string>> = {
  implicit: '(id INT PRIMARY KEY, v INT, u INT UNIQUE, t LONGTEXT) WITH SYSTEM VERSIONING',
  explicit: `(id INT, v INT, ${EXPLICIT}, t LONGTEXT, PRIMARY KEY (id), ${PERIOD}) WITH SYSTEM VERSIONING`,
  invisible: `(id INT PRIMARY KEY, v INT, s TIMESTAMP(6) AS ROW START INVISIBLE, e TIMESTAMP(6) AS ROW END INVISIBLE, ${PERIOD}) WITH SYSTEM VERSIONING`,
  end_in_key: `(id INT, v INT, ${EXPLICIT}, PRIMARY KEY (e, id), ${PERIOD}) WITH SYSTEM VERSIONING`,
  start_in_key: `(id INT, v INT, ${EXPLICIT}, PRIMARY KEY (id, s), ${PERIOD}) WITH SYSTEM VERSIONING`,
  unique_key: '(id INT NOT NULL, v INT, UNIQUE (id)) WITH SYSTEM VERSIONING',
  no_key: '(id INT, v INT, d DATETIME(3)) WITH SYSTEM VERSIONING',
  one_column: '(id INT PRIMARY KEY, v INT WITH SYSTEM VERSIONING, w INT)',
  some_columns: '(id INT PRIMARY KEY, v INT, w INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING',
  partitioned:
    '(id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME LIMIT 3 (PARTITION p0 HISTORY, PARTITION p1 HISTORY, PARTITION pc CURRENT)',
  virtual: `(id INT PRIMARY KEY, v INT, g INT AS (v * 2) VIRTUAL, h VARCHAR(9) AS (CONCAT(v, 'x')) INVISIBLE, k DATE AS (NULL)) WITH SYSTEM VERSIONING`,
  virtual_explicit: `(id INT PRIMARY KEY, ${EXPLICIT}, g DECIMAL(9,2) AS (v / 3) VIRTUAL, v INT, st INT AS (v + 1) STORED, ${PERIOD}) WITH SYSTEM VERSIONING`,
  virtual_indexed:
    '(id INT NOT NULL, v INT, g INT AS (v * 2) VIRTUAL, w INT WITHOUT SYSTEM VERSIONING, UNIQUE (id), KEY (g)) WITH SYSTEM VERSIONING',
  virtual_long: `(id INT PRIMARY KEY, v INT, g TEXT AS (CONCAT(v, '!')) VIRTUAL, j JSON AS (v * 100) VIRTUAL, KEY (g(9))) WITH SYSTEM VERSIONING`,
  virtual_no_key: '(id INT, v INT, g INT AS (v * 2) VIRTUAL) WITH SYSTEM VERSIONING',
  plain:
    '(id INT, v INT, row_start TIMESTAMP(6) NOT NULL DEFAULT NOW(6), row_end TIMESTAMP(6) NOT NULL DEFAULT NOW(6), PRIMARY KEY (id, row_end))',
};
const IMAGES = ['FULL', 'MINIMAL', 'NOBLOB'] as const;

/** What an application does to a table; `w` where it has one. */
function changes(table: string): string[] {
  const more = TABLES[table]?.includes('w INT') ? [`UPDATE ${table} SET w = 7`] : [];
  return [
    `INSERT INTO ${table} (id, v) VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50)`,
    `UPDATE ${table} SET v = v + 1 WHERE id <= 3`,
    ...more,
    `UPDATE ${table} SET id = 20 WHERE id = 2`,
    `DELETE FROM ${table} WHERE id = 3`,
    `REPLACE INTO ${table} (id, v) VALUES (1, 12)`,
    `INSERT INTO ${table} (id, v) VALUES (4, 0) ON DUPLICATE KEY UPDATE v = 42`,
    'BEGIN',
    `INSERT INTO ${table} (id, v) VALUES (6, 1), (7, 1)`,
    `UPDATE ${table} SET v = 2 WHERE id = 6`,
    `UPDATE ${table} SET v = 3 WHERE id = 6`,
    `DELETE FROM ${table} WHERE id IN (6, 7)`,
    `INSERT INTO ${table} (id, v) VALUES (6, 9)`,
    'COMMIT',
    // times that stand still, so that a row has no time in which it was current
    'SET timestamp = 1900000000',
    `INSERT INTO ${table} (id, v) VALUES (8, 1), (9, 1)`,
    `UPDATE ${table} SET v = 2 WHERE id = 8`,
    `DELETE FROM ${table} WHERE id = 9`,
    'SET timestamp = 1900000001',
    `INSERT INTO ${table} (id, v) VALUES (9, 5)`,
    `DELETE FROM ${table} WHERE id = 9`,
    'SET timestamp = DEFAULT',
  ];
}

const history = (table: string): string[] => (table === 'plain' ? [] : [`DELETE HISTORY FROM ${table}`]);

/** TIMESTAMP(6). */
const HIGHEST = { '10.11': '2038-01-19 03:14:07.999999', '11.8': '2106-02-07 06:28:15.999999' } as const;

for (const version of VERSIONS)
  describe(`system-versioned tables, mariadb ${version}`, { timeout: 480_000 }, () => {
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

    for (const image of IMAGES) {
      for (const metadata of ['full', 'history'] as const) {
        it(`come as their current rows, image ${image}, metadata ${metadata}`, async () => {
          const db = metadata === 'full' ? full : scanty;
          await emptied(db);
          const source = db.source();
          const from = await source.currentPosition();
          await db.run(`SET SESSION binlog_row_image = ${image}`);
          for (const [name, body] of Object.entries(TABLES)) {
            // its updates lack the computed column, whatever the image: told as unseen, as in "are read whole again"
            if (version === '11.8' && name === 'virtual_no_key') continue;
            await db.run(`CREATE TABLE ${name} ${body}`, ...changes(name), ...history(name));
            await db.run(`INSERT INTO ${name} (id, v) VALUES (10, 10)`);
          }
          await db.run('SET SESSION binlog_row_image = FULL');
          await using kept = await TestHistory.create();
          const items = metadata === 'full' ? await readItems(source, from) : await kept.read(db, from);
          await source.close();
          assert.deepEqual(ofUnseen(items), []);
          await assertCopies(db, replay(items));
          const keyOf = (name: string): unknown =>
            rowsOf(items)
              .find(({ table }) => table === name)
              ?.schema.columns.flatMap((column) => (column.keyPosition > 0 ? [column.name] : []));
          for (const name of ['implicit', 'explicit', 'invisible', 'end_in_key', 'unique_key', 'partitioned']) {
            assert.deepEqual(keyOf(name), ['id'], name);
          }
          const row = rowsOf(items).find(({ table }) => table === 'implicit');
          assert.deepEqual(
            row?.schema.columns.map(({ name, keyPosition }) => [name, keyPosition]),
            [
              ['id', 1],
              ['v', 0],
              ['u', 0],
              ['t', 0],
            ],
          );
        });
      }
    }

    it('are read whole again where they have no key and long virtual columns', async () => {
      await emptied(full);
      const items = await streamed(
        full,
        `CREATE TABLE bare (id INT, v INT, g TEXT AS (CONCAT(v, '!')) VIRTUAL) WITH SYSTEM VERSIONING`,
        'INSERT INTO bare (id, v) VALUES (1, 1), (2, 2)',
        'UPDATE bare SET v = v + 1 ORDER BY v',
      );
      assert.deepEqual([...new Set(ofUnseen(items))], ['bare partial-row']);
      assert.ok(rowsOf(items).every(({ after: image }) => image === null || image['g'] === `${image['v']}!`));
    });

    it('take no rows of history that are inserted as such', async () => {
      for (const db of [full, scanty]) {
        await emptied(db);
        const items = await streamed(
          db,
          'CREATE TABLE past (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING',
          'INSERT INTO past VALUES (1, 1)',
          'SET system_versioning_insert_history = 1',
          `INSERT INTO past (id, v, row_start, row_end) VALUES (1, 0, '2020-01-01', '2021-01-01'), (2, 2, '2020-01-01', '${HIGHEST[version]}'), (3, 0, '2020-01-01', '2021-01-01')`,
          'SET system_versioning_insert_history = 0',
        );
        assert.equal(rowsOf(items).length, 2);
        await assertCopies(db, replay(items));
      }
    });

    it('are told as changed unseen where the server logs them as statements: those versioned by transaction', async () => {
      await emptied(full);
      const items = await streamed(
        full,
        `CREATE TABLE numbered (id INT PRIMARY KEY, v INT, s BIGINT UNSIGNED AS ROW START, e BIGINT UNSIGNED AS ROW END, ${PERIOD}) WITH SYSTEM VERSIONING`,
        'INSERT INTO numbered (id, v) VALUES (1, 1), (2, 2)',
        'UPDATE numbered SET v = 2',
        'DELETE FROM numbered WHERE id = 1',
      );
      assert.deepEqual(ofUnseen(items), Array(3).fill('numbered statement'));
      const source = full.source();
      const findings = await source.check();
      const found = findings.find(({ code }) => code === 'SOURCE_TABLE_VERSIONED');
      assert.equal(found?.level, 'warning');
      assert.match(found?.message ?? '', /by transaction/);
      const { items: read } = await readSnapshot(source);
      await source.close();
      assert.deepEqual(
        rowsOf(read).map(({ after: image }) => [image?.['id'], image?.['e']]),
        [[2, 18_446_744_073_709_551_615n]],
      );
    });

    it('are suspected where a foreign key changes them, as others are', async () => {
      await emptied(full);
      const items = await streamed(
        full,
        'CREATE TABLE parent (id INT PRIMARY KEY)',
        'CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE) WITH SYSTEM VERSIONING',
        'INSERT INTO parent VALUES (1), (2)',
        'INSERT INTO child VALUES (1, 1), (2, 2)',
        'DELETE FROM parent WHERE id = 1',
      );
      assert.deepEqual(ofUnseen(items), ['child cascade']);
      await full.run('DROP TABLE child');
    });

    it('are read as they are now, whatever moment the server shows to others', async () => {
      await emptied(full);
      await full.run(
        `CREATE TABLE seen (id INT PRIMARY KEY, v INT, ${EXPLICIT}, ${PERIOD}) WITH SYSTEM VERSIONING`,
        'INSERT INTO seen (id, v) VALUES (1, 1), (2, 2)',
        'UPDATE seen SET v = 5',
        'DELETE FROM seen WHERE id = 2',
        "SET GLOBAL system_versioning_asof = '2000-01-01'",
      );
      try {
        const source = full.source();
        const { items } = await readSnapshot(source);
        assert.deepEqual(
          rowsOf(items).map(({ after: image }) => [image?.['id'], image?.['v']]),
          [[1, 5]],
        );
        const table = { database: full.name, table: 'seen' };
        const reader = await source.openTable({ table, chunkRows: 10, signal: new AbortController().signal });
        const rows: SourceItem[] = [];
        for await (const chunk of reader.chunks()) rows.push(...chunk);
        assert.deepEqual([...replay(rows).keys()], [...replay(items).keys()]);
        await reader.close();
        const findings = await source.check();
        const found = findings.find(({ code }) => code === 'SOURCE_TABLE_VERSIONED');
        assert.deepEqual([found?.level, /current rows/.test(found?.message ?? '')], ['ok', true]);
        await source.close();
      } finally {
        await full.run('SET GLOBAL system_versioning_asof = DEFAULT');
      }
    });
  });
