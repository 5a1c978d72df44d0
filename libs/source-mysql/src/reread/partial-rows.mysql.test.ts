/** Case C8: row images that are not whole. What the stream leads to is held against the server's SELECT. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, type SourcePosition, type TableRef } from '@mysync/core';
import type { TableRule } from '../options.ts';
import type { BinlogSource, SourceItem } from '../port.ts';
import {
  type DecodedRow,
  FLAVORS,
  failureOf,
  readItems,
  replay,
  rowsOf,
  saidBy,
  TestDatabase,
} from '../testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`row images that are not whole, ${flavor}`, { timeout: 170_000 }, () => {
    let db: TestDatabase;
    let rule: Partial<TableRule> = {};
    let reread: [string, number][] = [];
    let source: BinlogSource;

    before(async () => {
      db = await TestDatabase.create(flavor);
      source = db.source({
        tableRule: () => ({ noKey: 'row-hash', ...rule }),
        observer: { rowsReread: (ref: TableRef, rows: number) => reread.push([ref.table, rows]) },
      });
    });
    after(async () => {
      await db.close();
    });

    /** What the statements lead to, read after all of them. */
    async function streamed(image: string, ...statements: readonly string[]): Promise<SourceItem[]> {
      const from = await begin();
      await db.run(`SET SESSION binlog_row_image = '${image}'`, ...statements, "SET SESSION binlog_row_image = 'FULL'");
      return await readItems(source, from);
    }
    async function begin(): Promise<SourcePosition> {
      reread = [];
      return await source.currentPosition();
    }
    const summary = (items: readonly SourceItem[]): string[] =>
      rowsOf(items).map((row) => `${row.ordinal} ${row.operation}`);
    const unseen = (items: readonly SourceItem[]): string[] =>
      items.flatMap((item) => (item.kind === 'unseen' ? [`${item.ordinal} ${item.table.table} ${item.cause}`] : []));
    const texts = (rows: Iterable<DecodedRow>, columns: readonly string[]): (string | null)[][] =>
      [...rows].map((row) =>
        columns.map((name) => {
          const value = row.after?.[name];
          assert.notEqual(value, undefined, `column ${name} of ${row.key}`);
          return value == null ? null : String(value);
        }),
      );
    const sorted = (rows: (string | null)[][]): string[] => rows.map((row) => JSON.stringify(row)).sort();
    async function sameAsSelect(table: string, columns: readonly string[], state: ReadonlyMap<string, DecodedRow>) {
      const rows = [...state.values()].filter((row) => row.table === table);
      assert.deepEqual(
        sorted(texts(rows, columns)),
        sorted(await db.select(`SELECT ${columns.join(', ')} FROM ${table}`)),
      );
    }

    const COLUMNS = ['id', 'a', 'keep', 'd', 'g', 'v'];
    async function makeTable(name: string): Promise<SourceItem[]> {
      const from = await source.currentPosition();
      await db.run(
        `CREATE TABLE ${name} (id INT PRIMARY KEY, a INT, keep TEXT, d VARCHAR(20) DEFAULT 'default', g INT AS (a * 2) STORED, v INT AS (a * 3) VIRTUAL)`,
        `INSERT INTO ${name} (id, a, keep) VALUES (1, 1, 'kept'), (2, 2, 'kept'), (3, NULL, NULL), (4, 4, '')`,
      );
      return await readItems(source, from);
    }

    for (const image of ['MINIMAL', 'NOBLOB']) {
      it(`${image}: every change leads to the row that SELECT shows`, async () => {
        const table = `t_${image}`;
        const first = await makeTable(table);
        const items = await streamed(
          image,
          `UPDATE ${table} SET a = 10 WHERE id = 1`,
          `UPDATE ${table} SET keep = 'new' WHERE id = 2`,
          `UPDATE ${table} SET a = 5, d = NULL`,
          `INSERT INTO ${table} (id, a) VALUES (5, 50), (6, 60)`,
          `REPLACE INTO ${table} (id, d) VALUES (5, 'replaced')`,
          `INSERT INTO ${table} (id, a) VALUES (6, 0) ON DUPLICATE KEY UPDATE a = a + 1`,
          `UPDATE ${table} SET id = 7 WHERE id = 4`,
          `DELETE FROM ${table} WHERE id = 3`,
        );
        await sameAsSelect(table, COLUMNS, replay(items, replay(first)));
        const moves = summary(items).filter((line) => line.startsWith('2'));
        assert.ok(moves.length > 0);
        assert.ok(items.every((item) => item.kind !== 'row' || item.deletes || rowsOf([item])[0]?.after !== null));
      });
    }

    it('counts a change once, a change of the key twice, whether the row is still there or gone', async () => {
      await makeTable('counted');
      const items = await streamed(
        'MINIMAL',
        'BEGIN',
        'UPDATE counted SET a = 2 WHERE id = 1',
        'UPDATE counted SET a = 3 WHERE id = 1',
        'UPDATE counted SET id = 8 WHERE id = 2',
        'UPDATE counted SET a = 9 WHERE id = 3',
        'COMMIT',
      );
      assert.deepEqual(summary(items), ['1 read', '2 read', '3 delete', '4 read', '5 read']);
      const later = await begin();
      await db.run("SET SESSION binlog_row_image = 'MINIMAL'", 'BEGIN');
      await db.run('UPDATE counted SET a = 100', 'UPDATE counted SET id = 9 WHERE id = 3', 'COMMIT');
      await db.run('DELETE FROM counted WHERE id IN (1, 9)', "SET SESSION binlog_row_image = 'FULL'");
      const gone = await readItems(source, later);
      assert.deepEqual(summary(gone), [
        '1 delete',
        '2 delete',
        '3 read',
        '4 read',
        '5 delete',
        '6 delete',
        '1 delete',
        '2 delete',
      ]);
      assert.deepEqual(saidBy(await readItems(source, later)), saidBy(gone));
      assert.ok(gone.every((item) => item.kind !== 'commit' || item.ordinals > 0));
    });

    it('publishes what the images hold together without a question', async () => {
      await makeTable('exact');
      const items = await streamed(
        'MINIMAL',
        "UPDATE exact SET id = 11, a = 1, keep = 'k', d = 'd' WHERE id = 1",
        'DELETE FROM exact WHERE id = 2',
      );
      const [, inserted] = rowsOf(items);
      if (flavor === 'mysql') {
        assert.deepEqual(summary(items), ['1 delete', '2 insert', '1 delete']);
        assert.deepEqual(inserted?.after, { id: 11, a: 1, keep: 'k', d: 'd', g: 2, v: 3 });
        assert.deepEqual(reread, []);
      } else assert.deepEqual(summary(items), ['1 delete', '2 read', '1 delete']);
      assert.deepEqual(rowsOf(items)[2]?.before?.['id'], 2);
      assert.equal(rowsOf(items)[2]?.before?.['a'], undefined);
    });

    it('rows without a key: an update is whole, an insert that leaves out columns has the table read again', async () => {
      await db.run(
        "CREATE TABLE nokey (a INT, t TEXT, d VARCHAR(10) DEFAULT 'x', g INT AS (a * 2) STORED, v INT AS (a * 3) VIRTUAL, ts TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))",
      );
      const from = await begin();
      await db.run(
        "INSERT INTO nokey (a, t) VALUES (1, 'one'), (2, 'two')",
        "SET SESSION binlog_row_image = 'MINIMAL'",
      );
      await db.run('UPDATE nokey SET a = 3 WHERE a = 1', "UPDATE nokey SET t = 'zwei' WHERE a = 2");
      await db.run("INSERT INTO nokey (a, t, d, ts) VALUES (9, 'nine', 'd', NOW(3))", 'DELETE FROM nokey WHERE a = 9');
      const items = await readItems(source, from);
      await sameAsSelect('nokey', ['a', 't', 'd', 'g', 'v', 'CAST(ts AS CHAR) AS ts'].slice(0, 5), replay(items));
      const stamps = (
        await db.select("SELECT CONVERT_TZ(ts, @@session.time_zone, '+00:00') FROM nokey ORDER BY a")
      ).flat();
      const rows = [...replay(items).values()].sort((x, y) => Number(x.after?.['a']) - Number(y.after?.['a']));
      assert.deepEqual(
        rows.map((row) => row.after?.['ts']),
        stamps,
      );
      assert.deepEqual(reread, []);
      const later = await begin();
      await db.run('INSERT INTO nokey (a) VALUES (5)', "SET SESSION binlog_row_image = 'FULL'");
      if (flavor === 'mariadb') {
        // its images are whole where there is no key
        assert.deepEqual(summary(await readItems(source, later)), ['1 insert']);
        return;
      }
      assert.deepEqual(unseen(await readItems(source, later)), ['1 nokey partial-row']);
    });

    it('finds rows by keys of every type', async () => {
      const keys: readonly (readonly [string, readonly string[]])[] = [
        ['BIGINT', ['-9223372036854775808', '0', '9223372036854775807']],
        ['BIGINT UNSIGNED', ['18446744073709551615', '9007199254740993']],
        ['DECIMAL(65, 30)', ['-12345678901234567890123456789012345.123456789012345678901234567890', '0.1']],
        ['FLOAT', ['0.1', '16777216', '-3.4e38', '1e-30']],
        ['DOUBLE', ['0.1', '1.7976931348623157e308', '-2.5e-300', '12345678901234567']],
        ['BIT(64)', ["b'1'", '0xFFFFFFFFFFFFFFFF']],
        ['BIT(9)', ["b'101010101'", '0']],
        ['YEAR', ['0', '1901', '2155']],
        ['DATE', ["'2024-02-29'", "'0000-00-00'", "'9999-12-31'"]],
        ['TIME(6)', ["'-838:59:58.999999'", "'00:00:00.000001'"]],
        ['DATETIME(3)', ["'2024-03-31 02:30:00.123'", "'0000-00-00 00:00:00'"]],
        ['TIMESTAMP(6)', ["'2024-10-27 00:30:00.000001'", "'2001-01-01 00:00:00'"]],
        [
          'VARCHAR(50) COLLATE utf8mb4_general_ci',
          ["'plain'", "'Ünïcödé 日本 \u{1F600}'", "''", "'quote''s \\\\ back'", "'trailing  '"],
        ],
        ['VARCHAR(50) CHARACTER SET latin1', ["'caf\u00e9 \u20ac'", "'x'"]],
        ['VARCHAR(50) CHARACTER SET sjis', ["_sjis X'8754'", "'\u65e5\u672c'"]],
        ['VARCHAR(20) CHARACTER SET utf16', ["'\u65e5\u672c'", "'a'"]],
        ['CHAR(10) CHARACTER SET gbk', ["'\u4e2d\u6587'", "'a'"]],
        ['VARBINARY(20)', ["X'00FF80'", "X''", "'text'"]],
        ['BINARY(8)', ["X'0102030400000000'", "'a'"]],
        ["ENUM('a,b', 'it''s', '\u00fc')", ["'a,b'", "'it''s'", "'\u00fc'", "''"]],
        ["SET('a', 'b', '\u00fc')", ["'a,\u00fc'", "''", "'b'"]],
        ...(flavor === 'mariadb'
          ? ([
              ['UUID', ["'123e4567-e89b-12d3-a456-426655440000'"]],
              ['INET6', ["'2001:db8::ff00:42:8329'", "'::'"]],
              ['INET4', ["'192.168.0.1'"]],
            ] as const)
          : []),
      ];
      await db.run("SET SESSION sql_mode = ''", "SET SESSION time_zone = '+05:30'");
      for (const [i, [type, values]] of keys.entries()) {
        await db.run(`CREATE TABLE key_${i} (id ${type} NOT NULL PRIMARY KEY, a INT, t TEXT)`);
        await db.run(...values.map((value) => `INSERT INTO key_${i} VALUES (${value}, 1, 'kept')`));
      }
      const from = await begin();
      await db.run("SET SESSION binlog_row_image = 'MINIMAL'");
      for (const i of keys.keys()) await db.run(`UPDATE key_${i} SET a = 2`);
      await db.run("SET SESSION binlog_row_image = 'FULL'");
      const rows = rowsOf(await readItems(source, from));
      for (const [i, [type, values]] of keys.entries()) {
        const own = rows.filter((row) => row.table === `key_${i}`);
        assert.deepEqual(
          own.map(({ operation, after: now }) => [operation, now?.['a'], now?.['t']]),
          values.map(() => ['read', 2, 'kept']),
          type,
        );
      }
      // the names of the rows are those of whole events
      const full = await begin();
      for (const i of keys.keys()) await db.run(`UPDATE key_${i} SET a = 3`);
      const whole = rowsOf(await readItems(source, full));
      assert.deepEqual(rows.map((row) => row.key).sort(), whole.map((row) => row.key).sort());
      await db.run('SET SESSION sql_mode = DEFAULT', 'SET SESSION time_zone = DEFAULT');
    });

    it('finds rows by keys of several columns, and by a unique key', async () => {
      await db.run(
        'CREATE TABLE pair (x INT, y VARCHAR(10), a INT, t TEXT, PRIMARY KEY (y, x))',
        'CREATE TABLE uni (a INT, u INT NOT NULL, t TEXT, UNIQUE KEY (u))',
        "INSERT INTO pair VALUES (1, 'a', 1, 'kept'), (1, 'b', 1, 'kept'), (2, 'a', 1, 'kept'), (2, 'b', 1, 'kept')",
        "INSERT INTO uni VALUES (1, 1, 'kept'), (1, 2, 'kept')",
      );
      const items = await streamed(
        'MINIMAL',
        "UPDATE pair SET a = x * 10 WHERE NOT (x = 2 AND y = 'b')",
        "UPDATE pair SET x = 3 WHERE x = 2 AND y = 'b'",
        'UPDATE uni SET a = 5',
        'UPDATE uni SET u = 7 WHERE u = 2',
      );
      assert.deepEqual(summary(items).join(), '1 read,2 read,3 read,1 delete,2 read,1 read,2 delete,1 delete,2 read');
      const state = replay(items);
      await sameAsSelect('pair', ['x', 'y', 'a', 't'], state);
      await sameAsSelect('uni', ['a', 'u', 't'], state);
    });

    it('rows whose key another collation calls equal are told apart', async () => {
      await db.run(
        'CREATE TABLE ci (id VARCHAR(10) COLLATE utf8mb4_general_ci PRIMARY KEY, a INT, t TEXT)',
        "INSERT INTO ci VALUES ('a', 1, 'kept')",
      );
      const from = await begin();
      await db.run("SET SESSION binlog_row_image = 'MINIMAL'", 'UPDATE ci SET a = 2', "UPDATE ci SET id = 'A'");
      await db.run("SET SESSION binlog_row_image = 'FULL'");
      const items = await readItems(source, from);
      assert.deepEqual(summary(items), ['1 delete', '1 delete', '2 read']);
      await sameAsSelect('ci', ['id', 'a', 't'], replay(items));
    });

    it('a table that was altered meanwhile: its columns of now, as long as the key is the same', async () => {
      await makeTable('altered');
      const from = await begin();
      await db.run("SET SESSION binlog_row_image = 'MINIMAL'", 'UPDATE altered SET a = 7');
      await db.run("SET SESSION binlog_row_image = 'FULL'");
      await db.run(
        "ALTER TABLE altered ADD COLUMN fresh VARCHAR(10) DEFAULT 'f' FIRST, DROP COLUMN d, CHANGE keep kept TEXT, MODIFY id BIGINT NOT NULL",
      );
      const rows = rowsOf(await readItems(source, from));
      assert.deepEqual(
        rows.map((row) => row.operation),
        ['read', 'read', 'read', 'read'],
      );
      assert.deepEqual(rows[0]?.after, { fresh: 'f', id: 1, a: 7, kept: 'kept', g: 14, v: 21 });
      assert.ok(reread.length > 0);
    });

    it('a table that is gone: its rows are deleted; one with another key: it is to be read again', async () => {
      await makeTable('dropped');
      await makeTable('rekeyed');
      const from = await begin();
      await db.run(
        "SET SESSION binlog_row_image = 'MINIMAL'",
        'UPDATE dropped SET a = 7 WHERE id < 3',
        'DROP TABLE dropped',
      );
      await db.run("SET SESSION binlog_row_image = 'FULL'");
      assert.deepEqual(summary((await readItems(source, from)).filter((item) => item.kind === 'row')), [
        '1 delete',
        '2 delete',
      ]);
      const later = await begin();
      await db.run("SET SESSION binlog_row_image = 'MINIMAL'", 'UPDATE rekeyed SET a = 7');
      await db.run(
        "SET SESSION binlog_row_image = 'FULL'",
        'UPDATE rekeyed SET d = id',
        'ALTER TABLE rekeyed DROP PRIMARY KEY, ADD PRIMARY KEY (d)',
      );
      const items = await readItems(source, later);
      assert.deepEqual(summary(items.slice(0, 5)), ['1 delete', '2 delete', '3 delete', '4 delete']);
      assert.deepEqual(unseen(items), ['5 rekeyed partial-row']);
    });

    it('halts where the table is to halt, though not at what is whole without a question', async () => {
      await makeTable('halting');
      rule = { onPartialRow: 'halt' };
      try {
        const items = await streamed('MINIMAL', 'DELETE FROM halting WHERE id = 1');
        assert.deepEqual(summary(items), ['1 delete']);
        const error = await failureOf(streamed('MINIMAL', 'UPDATE halting SET a = 3'));
        assert.ok(isMysyncError(error, 'SOURCE_ROW_IMAGE_PARTIAL'), String(error));
        assert.match(String(error), /halting.*position.*onPartialRow: reread.*SET GLOBAL binlog_row_image = 'FULL'/s);
        assert.deepEqual(reread, []);
      } finally {
        rule = {};
      }
    });

    it('a column that chooses the partition must be in the images, else the table is to be read again', async () => {
      await makeTable('parted');
      rule = { partitionBy: ['a'] };
      try {
        const items = await streamed(
          'NOBLOB',
          "UPDATE parted SET d = 'x' WHERE id = 2",
          'UPDATE parted SET a = 9 WHERE id = 1',
        );
        assert.deepEqual(summary(items), ['1 read', '1 delete', '2 read']);
        for (const statement of [
          "UPDATE parted SET d = 'y' WHERE id = 1",
          'UPDATE parted SET a = 5 WHERE id = 1',
          'DELETE FROM parted WHERE id = 1',
        ]) {
          const found = await streamed('MINIMAL', statement);
          assert.deepEqual(summary(found), [], statement);
          assert.deepEqual(unseen(found), ['1 parted partial-row'], statement);
        }
      } finally {
        rule = {};
      }
    });

    it('reads rows of XA transactions again', async () => {
      await makeTable('xa');
      const items = await streamed(
        'MINIMAL',
        "XA START 'p'",
        'UPDATE xa SET a = 70 WHERE id = 1',
        "XA END 'p'",
        "XA PREPARE 'p'",
        "XA COMMIT 'p'",
      );
      assert.deepEqual(summary(items), ['1 read']);
      assert.equal(rowsOf(items)[0]?.after?.['a'], 70);
    });

    it('asks for many rows in few questions, large ones in small portions', async () => {
      await db.run('CREATE TABLE many (id INT PRIMARY KEY, a INT, t LONGTEXT)');
      await db.run(
        `INSERT INTO many VALUES ${Array.from({ length: 2000 }, (_, i) => `(${i}, 0, 'text ${i}')`).join()}`,
      );
      const items = await streamed('MINIMAL', 'UPDATE many SET a = id + 1');
      await sameAsSelect('many', ['id', 'a', 't'], replay(items));
      assert.equal(rowsOf(items).length, 2000);
      assert.ok(reread.length < 30, `${reread.length} questions`);
      await db.run('DELETE FROM many WHERE id >= 20', "UPDATE many SET t = REPEAT('x', 3000000)");
      const large = await streamed('MINIMAL', 'UPDATE many SET a = -1 - id');
      await sameAsSelect('many', ['id', 'a', 'LENGTH(t)'].slice(0, 2), replay(large));
      assert.ok(rowsOf(large).every((row) => String(row.after?.['t']).length === 3_000_000));
      assert.ok(
        reread.every(([, rows]) => rows <= 2),
        JSON.stringify(reread),
      );
    });

    if (flavor === 'mysql') {
      it('partial documents without the document before them, and compressed transactions', async () => {
        await db.run(
          'CREATE TABLE doc (id INT PRIMARY KEY, a JSON, n INT, b JSON, t TEXT)',
          `INSERT INTO doc VALUES (1, '{"k":1,"pad":"${'p'.repeat(300)}"}', 1, '{"l":[1,2],"pad":"${'q'.repeat(300)}"}', 'kept'), (2, NULL, 2, '{"l":[],"pad":"${'q'.repeat(300)}"}', NULL)`,
          "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
        );
        for (const image of ['MINIMAL', 'NOBLOB']) {
          for (const compressed of ['OFF', 'ON']) {
            await db.run(`SET SESSION binlog_transaction_compression = ${compressed}`);
            const items = await streamed(
              image,
              "UPDATE doc SET a = JSON_SET(a, '$.k', n + 1), n = n + 1",
              "UPDATE doc SET b = JSON_SET(b, '$.l', 5)",
              "UPDATE doc SET a = JSON_SET(a, '$.k', 7), b = JSON_SET(b, '$.l', 6) WHERE id = 1",
              "UPDATE doc SET b = '[]' WHERE id = 2",
            );
            await sameAsSelect('doc', ['id', 'a', 'n', 'b', 't'], replay(items));
          }
        }
        await db.run("SET SESSION binlog_row_value_options = ''", 'SET SESSION binlog_transaction_compression = OFF');
      });

      it('partial documents of rows without a key are whole with the image before them', async () => {
        await db.run(
          'CREATE TABLE docs (a JSON, b JSON)',
          `INSERT INTO docs VALUES ('{"k":1,"pad":"${'p'.repeat(300)}"}', '{"l":[1,2],"pad":"${'q'.repeat(300)}"}')`,
          "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
        );
        const items = await streamed('MINIMAL', "UPDATE docs SET b = JSON_SET(b, '$.l', 5)");
        await sameAsSelect('docs', ['a', 'b'], replay(items));
        assert.deepEqual(reread, []);
        await db.run("SET SESSION binlog_row_value_options = ''");
      });
    } else {
      it('compressed events', async () => {
        await makeTable('squeezed');
        await db.run('SET GLOBAL log_bin_compress = ON');
        try {
          const items = await streamed(
            'MINIMAL',
            "UPDATE squeezed SET d = REPEAT('z', 20)",
            "UPDATE squeezed SET keep = REPEAT('k', 2000)",
          );
          await sameAsSelect('squeezed', COLUMNS, replay(items));
        } finally {
          await db.run('SET GLOBAL log_bin_compress = OFF');
        }
      });
    }
  });
}
