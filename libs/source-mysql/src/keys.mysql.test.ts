/** How rows are named: cases C1, C2, C4, C6, A2, A17. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isMysyncError, type Logger, silentLogger } from '@mysync/core';
import type { BinlogSource } from './port.ts';
import { FLAVORS, failureOf, readItems, readSnapshot, replay, rowsOf, TestDatabase } from './testing.fixture.ts';

for (const flavor of FLAVORS) {
  describe(`keys on ${flavor}`, { timeout: 120_000 }, () => {
    let db: TestDatabase;
    let source: BinlogSource;
    before(async () => {
      db = await TestDatabase.create(flavor);
      source = db.source();
    });
    after(async () => {
      await db.close();
    });

    /** The state that the stream leads to, and that a snapshot shows: both as sorted JSON. */
    async function states(table: string, ...statements: readonly string[]): Promise<[string[], string[]]> {
      const from = await source.currentPosition();
      await db.run(...statements);
      const show = (state: ReturnType<typeof replay>): string[] =>
        [...state.values()]
          .filter((row) => row.table === table)
          .map((row) => `${row.key} ${JSON.stringify(row.after, printable)}`)
          .sort();
      return [show(replay(await readItems(source, from))), show(replay((await readSnapshot(source)).items))];
    }
    const printable = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

    it('moves rows whose primary key changes, also in a swap (C1)', async () => {
      const [stream, snapshot] = await states(
        't',
        'CREATE TABLE t (id INT PRIMARY KEY, v INT)',
        'INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)',
        'UPDATE t SET id = id + 1000 WHERE id = 3',
        'BEGIN',
        'UPDATE t SET id = 99 WHERE id = 1',
        'UPDATE t SET id = 1 WHERE id = 2',
        'UPDATE t SET id = 2 WHERE id = 99',
        'COMMIT',
      );
      assert.deepEqual(stream, snapshot);
      assert.equal(stream.length, 3);
    });

    it('sees the key change of REPLACE and upsert (C2)', async () => {
      const [stream, snapshot] = await states(
        'k',
        'CREATE TABLE k (id INT PRIMARY KEY, u INT UNIQUE)',
        'INSERT INTO k VALUES (1, 1), (2, 2)',
        'REPLACE INTO k VALUES (3, 1)',
        'INSERT INTO k VALUES (9, 2) ON DUPLICATE KEY UPDATE id = 7',
      );
      assert.deepEqual(stream, snapshot);
      assert.equal(stream.length, 2);
    });

    it('keeps composite keys apart whose texts look alike (C4)', async () => {
      const [stream, snapshot] = await states(
        'c',
        'CREATE TABLE c (v INT, b VARCHAR(10) NOT NULL, a VARCHAR(10) NOT NULL, PRIMARY KEY (a, b))',
        "INSERT INTO c VALUES (1, 'z', 'x:y'), (2, 'y:z', 'x'), (3, 'null', ''), (4, '', 'null')",
      );
      assert.deepEqual(stream, snapshot);
      assert.equal(stream.length, 4);
    });

    it('keeps big integers and trailing zero bytes (A2, A17)', async () => {
      const [stream, snapshot] = await states(
        'b',
        'CREATE TABLE b (id BIGINT UNSIGNED, k BINARY(16), v INT, PRIMARY KEY (id, k))',
        "INSERT INTO b VALUES (9007199254740991, x'00112233445566778899AABBCCDD0000', 1), (9007199254740992, x'00', 1), (9007199254740993, x'00', 1), (18446744073709551615, x'', 1)",
        'UPDATE b SET v = 2',
        'DELETE FROM b WHERE id = 9007199254740992',
      );
      assert.deepEqual(stream, snapshot);
      assert.equal(stream.length, 3);
    });

    it('takes a unique key over NOT NULL columns, else the hash of the row (C6)', async () => {
      const [stream, snapshot] = await states(
        'u',
        'CREATE TABLE u (a INT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE KEY n (a), UNIQUE KEY y (c, b))',
        'INSERT INTO u VALUES (1, 1, 1), (2, 2, 2)',
        'UPDATE u SET a = 5 WHERE b = 1',
      );
      assert.deepEqual(stream, snapshot);
      const from = await source.currentPosition();
      await db.run(
        'CREATE TABLE n (a INT)',
        'INSERT INTO n VALUES (1), (2)',
        'DELETE FROM n WHERE a = 1',
        'UPDATE n SET a = 3',
      );
      const items = await readItems(source, from);
      assert.equal(rowsOf(items)[0]?.schema.keyRule, 'row-hash');
      assert.deepEqual(
        [...replay(items).values()].map((row) => row.after?.['a']),
        [3],
      );
      const strict = db.source({ tableRule: () => ({ noKey: 'refuse' }) });
      const error = await failureOf(readItems(strict, from));
      assert.ok(isMysyncError(error, 'SOURCE_TABLE_WITHOUT_KEY'));
      assert.match(error.remedy, /ALTER TABLE/);
      assert.ok(isMysyncError(await failureOf(readSnapshot(strict)), 'SOURCE_TABLE_WITHOUT_KEY'));
    });

    it('takes identical rows for one: the deletion of one is that of the row, though the other stays (C6)', async () => {
      const warned: string[] = [];
      const logger: Logger = { ...silentLogger, child: () => logger, warn: (_, message) => warned.push(message) };
      const told = db.source({ logger });
      const from = await told.currentPosition();
      await db.run('CREATE TABLE twins (a INT)', 'INSERT INTO twins VALUES (1), (1), (2)');
      const both = await readItems(told, from);
      assert.deepEqual(
        [...replay(both).values()].map((row) => row.after?.['a']),
        [1, 2],
      );
      await db.run('DELETE FROM twins WHERE a = 1 LIMIT 1');
      const items = await readItems(told, from);
      assert.deepEqual(
        rowsOf(items).map((row) => row.operation),
        ['insert', 'insert', 'insert', 'delete'],
      );
      assert.deepEqual(
        [...replay(items).values()].map((row) => row.after?.['a']),
        [2],
      );
      assert.deepEqual(await db.select('SELECT a FROM twins ORDER BY a'), [['1'], ['2']]);
      assert.match(warned.join(), /twins has no key: .*deleting one of them removes it there though the others stay/);
      const finding = (await told.check()).find(({ message }) => message.includes('twins'));
      assert.equal(finding?.level, 'warning');
      assert.match(finding?.message ?? '', /deleting one of them removes it there though the others stay/);
    });

    it('names a row by the unique key that the table had then, not by that of now', async () => {
      const from = await source.currentPosition();
      await db.run(
        'CREATE TABLE later (a INT NOT NULL, b INT NOT NULL, UNIQUE KEY ka (a))',
        'INSERT INTO later VALUES (1, 7), (2, 7)',
        'DELETE FROM later WHERE a = 1',
        'ALTER TABLE later DROP KEY ka, ADD UNIQUE KEY kb (b)',
        'CREATE TABLE gone (a INT NOT NULL, b INT, UNIQUE KEY ka (a))',
        'INSERT INTO gone VALUES (1, 7)',
        'UPDATE gone SET b = 8',
        'DROP TABLE gone',
        'CREATE TABLE keyless (a INT NOT NULL, b INT NOT NULL)',
        'INSERT INTO keyless VALUES (1, 7), (2, 7)',
        'DELETE FROM keyless WHERE a = 1',
        'ALTER TABLE keyless ADD UNIQUE KEY kb (b)',
      );
      const items = await readItems(source, from);
      const keyColumns = rowsOf(items).map(({ table, schema }) => [
        table,
        schema.columns.flatMap((column) => (column.keyPosition > 0 ? column.name : [])).join(','),
      ]);
      assert.deepEqual(keyColumns, [
        ...Array(3).fill(['later', 'a']),
        ...Array(2).fill(['gone', 'a']),
        ...Array(3).fill(['keyless', '']),
      ]);
      assert.deepEqual(
        [...replay(items.filter((item) => item.kind === 'row')).values()].map((row) => [row.table, row.after?.['a']]),
        [
          ['later', 2],
          ['gone', 1],
          ['keyless', 2],
        ],
      );
    });

    it('chooses the partition by other columns where told', async () => {
      const by = db.source({
        tableRule: (ref) => ({ noKey: 'row-hash', ...(ref.table === 'pb' ? { partitionBy: ['g'] } : {}) }),
      });
      const from = await by.currentPosition();
      await db.run(
        'CREATE TABLE pb (id INT PRIMARY KEY, g INT)',
        'INSERT INTO pb VALUES (1, 7), (2, 7), (3, 8)',
        'UPDATE pb SET g = 8 WHERE id = 1',
      );
      const rows = (await readItems(by, from)).flatMap((item) => (item.kind === 'row' ? [item] : []));
      assert.equal(rows[0]?.partitionHash, rows[1]?.partitionHash);
      assert.notEqual(rows[0]?.partitionHash, rows[2]?.partitionHash);
      assert.deepEqual(
        rows.slice(3).map((row) => [row.deletes, row.partitionHash]),
        [
          [true, rows[0]?.partitionHash],
          [false, rows[2]?.partitionHash],
        ],
      );
    });
  });
}
