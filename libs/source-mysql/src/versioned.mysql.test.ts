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

describe('system-versioned tables', { timeout: 240_000 }, () => {
  let full: TestDatabase;
  let scantyServer: TestServer;
  let scanty: TestDatabase;
  before(async () => {
    full = await TestDatabase.create('mariadb');
    scantyServer = await startServer('mariadb', { args: ['--binlog-row-metadata=NO_LOG'] });
    scanty = await TestDatabase.create('mariadb', scantyServer);
    for (const db of [full, scanty]) await db.run("SET time_zone = '+00:00'");
  });
  after(async () => {
    await full?.close();
    await scanty?.close();
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

  it('are read by the catalogue where the table is still versioned, and told as unseen where it is not any more', async () => {
    await emptied(full);
    const versioned = await streamed(full, ...TO_VERSIONED);
    assert.deepEqual(ofUnseen(versioned), []);
    await assertCopies(full, replay(versioned));

    await full.run('DROP TABLE turned');
    const plain = await streamed(full, ...TO_VERSIONED, ...TO_PLAIN);
    assert.deepEqual(ofUnseen(plain), Array(4).fill('turned versioning'));
    const ids = rowsOf(plain).map(({ after: image, before: gone }) => (image ?? gone)?.['id']);
    assert.deepEqual(ids, [1, 2, 3, 1, 4, 5, 4]);

    const explicit = await streamed(full, ...TO_EXPLICIT);
    assert.deepEqual(ofUnseen(explicit), Array(3).fill('turned versioning'));
    assert.equal(rowsOf(explicit).length, 2);
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
        "INSERT INTO past (id, v, row_start, row_end) VALUES (1, 0, '2020-01-01', '2021-01-01'), (2, 2, '2020-01-01', '2038-01-19 03:14:07.999999'), (3, 0, '2020-01-01', '2021-01-01')",
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
