/** Rows are read with the columns of their own moment: cases B1, B3 to B10, B13, B14, A13, A20. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { randomName } from '@mysync/harness';
import { createConnection } from 'mysql2/promise';
import type { BinlogSource, SourceItem } from './port.ts';
import { FLAVORS, readItems, readSnapshot, replay, rowsOf, TestDatabase } from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`DDL in the backlog on ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    let source: BinlogSource;
    before(async () => {
      db = await TestDatabase.create(flavor);
      source = db.source();
    });
    after(async () => {
      await db.close();
    });

    async function streamed(...statements: readonly string[]): Promise<SourceItem[]> {
      const from = await source.currentPosition();
      await db.run(...statements);
      return await readItems(source, from);
    }
    const images = (items: readonly SourceItem[]): unknown[] => rowsOf(items).map((row) => row.after);
    const changes = (items: readonly SourceItem[]): string[] =>
      items.flatMap((item) =>
        item.kind === 'truncate' || item.kind === 'ddl' ? [`${item.kind} ${item.table.table}`] : [],
      );

    it('statements that change no table do not stop it, among rows (B8)', async () => {
      const [role, user] = [randomName('role'), randomName('user')];
      const mariadb = [
        'CREATE SEQUENCE s8 CACHE 2',
        'SELECT NEXTVAL(s8)',
        'ALTER SEQUENCE s8 INCREMENT BY 5 CACHE 100',
        'SELECT NEXTVAL(s8)',
        'ALTER TABLE b8 PAGE_COMPRESSED = 1',
        'DROP SEQUENCE s8',
      ];
      const mysql = [`ALTER USER ${user} IDENTIFIED BY 'Other-1'`, 'ALTER TABLE b8 ADD b INT, ALGORITHM = INSTANT'];
      const statements = [
        "CREATE EVENT e8 ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DO DELETE FROM b8",
        "ALTER EVENT e8 COMMENT 'ALTER TABLE b8 DROP v'",
        `CREATE ROLE ${role}`,
        `CREATE USER ${user} IDENTIFIED BY 'Some-1'`,
        `GRANT SELECT, UPDATE ON ${db.name}.b8 TO ${role}`,
        `GRANT ${role} TO ${user}`,
        `CREATE VIEW w8 AS SELECT j.* FROM b8, JSON_TABLE(b8.v, '$[*]' COLUMNS (x INT PATH '$.x')) AS j`,
        "CREATE PROCEDURE p8() BEGIN DROP TABLE IF EXISTS nothing_8; SELECT 'ALTER TABLE b8 ADD q INT'; END",
        'CREATE FUNCTION f8() RETURNS INT DETERMINISTIC RETURN 1',
        'ANALYZE TABLE b8',
        ...(flavor === 'mariadb' ? mariadb : mysql),
        `REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${user}`,
        `DROP USER ${user}`,
        `DROP ROLE ${role}`,
        'DROP EVENT e8',
        'DROP VIEW w8',
        'DROP FUNCTION f8',
      ];
      const among = statements.flatMap((statement, i) => [
        statement,
        `INSERT INTO b8 (id, v) VALUES (${i}, '[{"x": ${i}}]')`,
      ]);
      const items = await streamed('CREATE TABLE b8 (id INT PRIMARY KEY, v JSON)', ...among);
      const rows = [...replay(items).values()].map(({ after }) => [String(after?.['id']), after?.['v']]);
      assert.equal(rows.length, statements.length);
      assert.deepEqual(rows, await db.select('SELECT id, v FROM b8 ORDER BY id'));
      assert.deepEqual(changes(items), ['ddl b8', 'ddl b8']);
    });

    for (const [charset, name] of [
      // its second byte is a backslash
      ['SJIS_JAPANESE_CI', '表ソ'],
      ['GBK_CHINESE_CI', '表'],
      ['LATIN1_SWEDISH_CI', 'äß'],
    ] as const) {
      it(`statements of a client in ${charset} name their tables (B7, B14)`, async () => {
        const address = { host: '127.0.0.1', port: db.port, user: 'mysync', password: 'mysync' };
        /** What is told of a table with this name, when this client has it made, emptied, renamed and dropped. */
        const told = async (table: string, clientCharset: string): Promise<string[]> => {
          const from = await source.currentPosition();
          const client = await createConnection({ ...address, database: db.name, charset: clientCharset });
          try {
            await client.query(`CREATE TABLE \`${table}\` (id INT PRIMARY KEY) COMMENT '${table}'`);
            await client.query(`INSERT INTO \`${table}\` VALUES (1)`);
            await client.query(`TRUNCATE TABLE \`${table}\``);
            await client.query(`RENAME TABLE \`${table}\` TO \`${table}2\``);
            await client.query(`DROP TABLE \`${table}2\``);
          } finally {
            await client.end();
          }
          return (await readItems(source, from)).flatMap((item) =>
            item.kind === 'truncate' || item.kind === 'ddl'
              ? [`${item.kind} ${item.table.table}: ${item.statement.replace(/ \/\*.*/, '')}`]
              : [],
          );
        };
        const plain = await told('plain', 'UTF8MB4_GENERAL_CI');
        assert.ok(plain.length >= 4, JSON.stringify(plain));
        assert.deepEqual(
          await told(name, charset),
          plain.map((text) => text.replaceAll('plain', name)),
        );
      });
    }

    it('adds and drops columns (B1)', async () => {
      const items = await streamed(
        'CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5))',
        "INSERT INTO t VALUES (1, 'a')",
        'ALTER TABLE t ADD COLUMN z INT FIRST',
        "INSERT INTO t VALUES (7, 2, 'b')",
        'ALTER TABLE t DROP COLUMN z',
        "INSERT INTO t VALUES (3, 'c')",
      );
      assert.deepEqual(images(items), [
        { id: 1, a: 'a' },
        { z: 7, id: 2, a: 'b' },
        { id: 3, a: 'c' },
      ]);
      assert.deepEqual(changes(items), ['ddl t', 'ddl t', 'ddl t']);
    });

    it('renames and reorders columns, also of the key (B5, B6)', async () => {
      const items = await streamed(
        'CREATE TABLE r (id INT PRIMARY KEY, a INT)',
        'INSERT INTO r VALUES (1, 10)',
        'ALTER TABLE r CHANGE a b INT, ADD c INT AFTER b, RENAME COLUMN id TO pk',
        'UPDATE r SET c = 5',
      );
      assert.deepEqual(rowsOf(items).at(-1)?.before, { pk: 1, b: 10, c: null });
      assert.deepEqual(
        rowsOf(items)
          .at(-1)
          ?.schema.columns.map((column) => [column.name, column.keyPosition]),
        [
          ['pk', 1],
          ['b', 0],
          ['c', 0],
        ],
      );
    });

    it('reads rows of tables that are gone (B3)', async () => {
      const items = await streamed(
        'CREATE TABLE d1 (id INT PRIMARY KEY)',
        'INSERT INTO d1 VALUES (1)',
        'DROP TABLE d1',
        'CREATE TABLE d2 (id INT PRIMARY KEY)',
        'INSERT INTO d2 VALUES (1)',
        'RENAME TABLE d2 TO d3',
        'INSERT INTO d3 VALUES (2)',
      );
      assert.deepEqual(
        rowsOf(items).map((row) => row.table),
        ['d1', 'd2', 'd3'],
      );
      assert.deepEqual(changes(items), ['ddl d1', 'truncate d1', 'ddl d2', 'ddl d2', 'truncate d2', 'ddl d3']);
    });

    it('is not misled by CREATE TABLE IF NOT EXISTS (B4)', async () => {
      const items = await streamed(
        'CREATE TABLE e (id INT PRIMARY KEY, a INT, b INT)',
        'CREATE TABLE IF NOT EXISTS e (id INT PRIMARY KEY)',
        'INSERT INTO e VALUES (1, 2, 3)',
      );
      assert.deepEqual(images(items), [{ id: 1, a: 2, b: 3 }]);
    });

    it('sees TRUNCATE and DROP through comments and odd names (B7, B14, B16)', async () => {
      const items = await streamed(
        'CREATE TABLE `we-ird.na``me` (id INT PRIMARY KEY, `q"x` INT, `a.b` INT)',
        'INSERT INTO `we-ird.na``me` VALUES (1, 2, 3)',
        'TRUNCATE /* DROP TABLE x */ `we-ird.na``me`',
        'CREATE TABLE `表` (id INT PRIMARY KEY)',
        'INSERT INTO `表` VALUES (1)',
        `/* note */ ALTER/**/TABLE \`表\` /*!50000 ADD */ COLUMN x INT -- note
         COMMENT 'it''s -- not a comment; DROP TABLE t'`,
        'DROP TABLE IF EXISTS `表`, `we-ird.na``me`, not_there',
      );
      assert.deepEqual(images(items), [{ id: 1, 'q"x': 2, 'a.b': 3 }, { id: 1 }]);
      const seen = changes(items);
      assert.deepEqual(seen.slice(0, 4), ['ddl we-ird.na`me', 'truncate we-ird.na`me', 'ddl 表', 'ddl 表']);
      assert.deepEqual(new Set(seen.slice(4)), new Set(['truncate 表', 'truncate we-ird.na`me', 'truncate not_there']));
      assert.equal(replay(items).size, 0);
    });

    it('empties the tables of a dropped database', async () => {
      await db.run(`CREATE DATABASE ${db.name}_x`, `CREATE TABLE ${db.name}_x.q (id INT PRIMARY KEY)`);
      const both = db.source({ captures: (ref) => ref.database.startsWith(db.name) });
      const from = await both.currentPosition();
      await db.run(`INSERT INTO ${db.name}_x.q VALUES (1)`, `DROP DATABASE ${db.name}_x`);
      assert.deepEqual(changes(await readItems(both, from)), ['truncate q']);
    });

    it('empties those that were gone before reading began, as far as its consumer knows of them', async () => {
      const [there, other] = [`${db.name}_y`, `${db.name}_z`];
      await db.run(`CREATE DATABASE ${there}`, `CREATE TABLE ${there}.q (id INT PRIMARY KEY)`);
      const only = db.source({ captures: (ref) => ref.database === there && ref.table !== 'not_captured' });
      const from = await only.currentPosition();
      await db.run(`INSERT INTO ${there}.q VALUES (1)`, `DROP DATABASE ${there}`);
      const known = ['q', 'a.b', 'not_captured'].map((table) => ({ database: there, table }));
      const items = await readItems(only, from, undefined, [...known, { database: other, table: 'q' }]);
      assert.deepEqual(changes(items).sort(), ['truncate a.b', 'truncate q']);
    });

    it('does not empty a table that a ghost table replaces (B10)', async () => {
      const only = db.source({ captures: (ref) => ref.database === db.name && ref.table === 'gh' });
      const from = await only.currentPosition();
      await db.run(
        'CREATE TABLE gh (id INT PRIMARY KEY)',
        'INSERT INTO gh VALUES (1)',
        'CREATE TABLE _gh_gho (id INT PRIMARY KEY, x INT)',
        'INSERT INTO _gh_gho (id) SELECT id FROM gh',
        'RENAME TABLE gh TO _gh_del, _gh_gho TO gh',
        'INSERT INTO gh VALUES (2, 5)',
      );
      const items = await readItems(only, from);
      assert.deepEqual(images(items), [{ id: 1 }, { id: 2, x: 5 }]);
      assert.deepEqual(
        changes(items).filter((change) => change.startsWith('truncate')),
        [],
      );
    });

    it('ignores definitions that hold any text', async () => {
      const items = await streamed(
        'CREATE TABLE v (id INT PRIMARY KEY)',
        `CREATE DEFINER = CURRENT_USER VIEW vw AS SELECT * FROM v`,
        'CREATE PROCEDURE pr() BEGIN UPDATE v SET id = 5; DROP TABLE v; END',
        'CREATE FUNCTION fn() RETURNS INT DETERMINISTIC RETURN 1',
        'CREATE INDEX ix ON v (id)',
        'ANALYZE TABLE v',
        'DROP VIEW vw',
        'DROP PROCEDURE pr',
      );
      assert.deepEqual(changes(items), ['ddl v', 'ddl v']);
    });

    it('reads ENUM members and charsets of their own moment (A13, A20)', async () => {
      const items = await streamed(
        "CREATE TABLE en (id INT PRIMARY KEY, e ENUM('a','b'), s VARCHAR(10) CHARACTER SET gbk)",
        "INSERT INTO en VALUES (1, 'b', '测试')",
        "ALTER TABLE en MODIFY e ENUM('x','a','b')",
        'ALTER TABLE en CONVERT TO CHARACTER SET utf8mb4',
        "INSERT INTO en VALUES (2, 'a', '😀')",
      );
      assert.deepEqual(images(items), [
        { id: 1, e: 'b', s: '测试' },
        { id: 2, e: 'a', s: '😀' },
      ]);
    });

    it('shows bytes that are no character as the server does: members whose bytes a conversion kept', async () => {
      const charsets = ['ujis', 'euckr', 'gbk', 'gb2312', 'big5', 'sjis', 'cp1251'];
      const from = await source.currentPosition();
      await db.run("SET SESSION sql_mode = ''");
      for (const charset of charsets) {
        await db.run(
          `CREATE TABLE kept_${charset} (id INT PRIMARY KEY, e ENUM('日本', 'é', 'aé本') CHARACTER SET utf8mb4)`,
          `ALTER TABLE kept_${charset} CONVERT TO CHARACTER SET ${charset}`,
          `INSERT INTO kept_${charset} VALUES (1, 1), (2, 2), (3, 3)`,
        );
      }
      const rows = rowsOf(await readItems(source, from));
      for (const charset of charsets) {
        assert.deepEqual(
          rows.filter((row) => row.table === `kept_${charset}`).map((row) => row.after?.['e']),
          (await db.select(`SELECT e FROM kept_${charset} ORDER BY id`)).map(([text]) => text),
          charset,
        );
      }
    });

    it('takes an ALTER of two phases where it ends, and not at all where it fails', async (test) => {
      if (flavor !== 'mariadb') return test.skip('of MariaDB only');
      const from = await source.currentPosition();
      await db.run(
        'SET SESSION binlog_alter_two_phase = ON',
        'CREATE TABLE two (id INT PRIMARY KEY, v INT)',
        'INSERT INTO two VALUES (1, 7), (2, 7)',
        'ALTER TABLE two ADD COLUMN w INT',
      );
      await assert.rejects(db.run('ALTER TABLE two ADD UNIQUE KEY (v), RENAME TO other'), /Duplicate/);
      await db.run('SET SESSION binlog_alter_two_phase = OFF');
      const items = await readItems(source, from);
      assert.deepEqual(changes(items), ['ddl two', 'ddl two']);
      assert.equal(replay(items).size, 2);
      const statements = await db.select(`SHOW BINLOG EVENTS IN '${from.file}' FROM ${from.offset}`);
      assert.equal(statements.filter((row) => /ADD UNIQUE KEY/.test(row[5] ?? '')).length, 2);
    });

    it('reads generated, invisible and hidden columns (B13)', async () => {
      const from = await source.currentPosition();
      await db.run(
        `CREATE TABLE ge (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, s INT AS (a * 3) STORED, inv INT ${flavor === 'mysql' ? 'DEFAULT 9 INVISIBLE' : 'INVISIBLE DEFAULT 9'}${flavor === 'mysql' ? ', KEY fk ((a + 1))' : ''})`,
        'INSERT INTO ge (id, a) VALUES (1, 5)',
        'UPDATE ge SET a = 6',
      );
      if (flavor === 'mysql')
        await db.run(
          'SET SESSION sql_generate_invisible_primary_key = ON',
          'CREATE TABLE gi (a INT)',
          'INSERT INTO gi VALUES (3)',
        );
      const stream = replay(await readItems(source, from));
      const snapshot = replay((await readSnapshot(source)).items);
      for (const table of flavor === 'mysql' ? ['ge', 'gi'] : ['ge']) {
        const rows = [stream, snapshot].map((state) =>
          [...state.values()].filter((row) => row.table === table).map((row) => [row.key, row.after, row.schema]),
        );
        assert.deepEqual(rows[0], rows[1]);
        assert.equal(rows[0]?.length, 1);
      }
      assert.deepEqual([...stream.values()].find((row) => row.table === 'ge')?.after, {
        id: 1,
        a: 6,
        v: 12,
        s: 18,
        inv: 9,
      });
    });
  });
}
