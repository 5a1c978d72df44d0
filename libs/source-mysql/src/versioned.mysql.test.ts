/** System-versioned tables: a copy holds the current rows only, whatever the server logs of their history. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '@mysync/harness';
import { TestHistory } from './history/history.fixture.ts';
import type { SourceItem } from './port.ts';
import { type DecodedRow, readItems, readSnapshot, replay, rowsOf, TestDatabase } from './testing.fixture.ts';

const EXPLICIT = 's TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END';
const PERIOD = 'PERIOD FOR SYSTEM_TIME(s, e)';
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

const VERSIONS = ['10.11', '11.8'] as const;
/** TIMESTAMP(6). */
const HIGHEST = { '10.11': '2038-01-19 03:14:07.999999', '11.8': '2106-02-07 06:28:15.999999' } as const;

for (const version of VERSIONS)
  describe(`system-versioned tables, mariadb ${version}`, { timeout: 480_000 }, () => {
    let fullServer: TestServer;
    let full: TestDatabase;
    let scantyServer: TestServer;
    let scanty: TestDatabase;
    before(async () => {
      const env = { MARIADB_VERSION: version };
      fullServer = await startServer('mariadb', { env });
      full = await TestDatabase.create('mariadb', fullServer);
      scantyServer = await startServer('mariadb', { env, args: ['--binlog-row-metadata=NO_LOG'] });
      scanty = await TestDatabase.create('mariadb', scantyServer);
      for (const db of [full, scanty]) await db.run("SET time_zone = '+00:00'");
    });
    after(async () => {
      await full?.close();
      await scanty?.close();
      await fullServer?.wipe();
      await scantyServer?.wipe();
    });

    async function emptied(db: TestDatabase): Promise<void> {
      const tables = await db.select(
        `SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '${db.name}'`,
      );
      await db.run(...tables.map(([name]) => `DROP TABLE ${name}`));
    }

    /** The state is that which the server's SELECT shows, under the names that a snapshot gives the rows. */
    async function assertCopies(db: TestDatabase, state: ReadonlyMap<string, DecodedRow>): Promise<void> {
      const tables = await db.select(
        `SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '${db.name}'`,
      );
      for (const [name] of tables) {
        const columns = await db.select(
          `SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '${db.name}' AND TABLE_NAME = '${name}' ORDER BY ORDINAL_POSITION`,
        );
        const rows = await db.select(`SELECT ${columns.join(', ')} FROM ${name}`);
        const copied = [...state.values()].filter((row) => row.table === name);
        const texts = copied.map((row) =>
          Object.values(row.after ?? {}).map((value) => (value === null ? null : String(value))),
        );
        const order = (list: (string | null)[][]): string[] => list.map((row) => JSON.stringify(row)).sort();
        // equal rows of a table without a key are one
        assert.deepEqual([...new Set(order(texts))], [...new Set(order(rows))], `${name}`);
        for (const { after: image } of copied) {
          assert.deepEqual(Object.keys(image ?? {}), columns.flat(), `columns of ${name}`);
        }
      }
      const source = db.source();
      const { items } = await readSnapshot(source);
      await source.close();
      assert.deepEqual([...state.keys()].sort(), [...replay(items).keys()].sort());
    }

    const ofUnseen = (items: readonly SourceItem[]): string[] =>
      items.flatMap((item) => (item.kind === 'unseen' ? [`${item.table.table} ${item.cause}`] : []));

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

    /** The stream's items at once, with the catalogue of the end. */
    async function streamed(db: TestDatabase, ...statements: readonly string[]): Promise<SourceItem[]> {
      const source = db.source();
      const from = await source.currentPosition();
      await db.run(...statements);
      try {
        if (db === full) return await readItems(source, from);
        await using kept = await TestHistory.create();
        return await kept.read(db, from);
      } finally {
        await source.close();
      }
    }

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
      'SET system_versioning_alter_history = KEEP',
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
          'SET system_versioning_alter_history = KEEP',
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
        'SET system_versioning_alter_history = KEEP',
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
