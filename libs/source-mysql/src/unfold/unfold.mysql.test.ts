/** Case F9: compressed transactions, and partial updates of JSON, against what the server itself answers. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { BinlogSource, SourceItem } from '../port.ts';
import { readItems, replay, rowsOf, saidBy, TestDatabase } from '../testing.fixture.ts';

describe('events of mysql that hold other events, or changes of values', { timeout: 170_000 }, () => {
  let db: TestDatabase;
  let source: BinlogSource;

  before(async () => {
    db = await TestDatabase.create('mysql');
    source = db.source();
    await db.run('CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)');
  });
  after(async () => {
    await db.close();
  });

  async function streamed(...statements: readonly string[]): Promise<SourceItem[]> {
    const from = await source.currentPosition();
    await db.run(...statements);
    return await readItems(source, from);
  }
  async function compressed(...statements: readonly string[]): Promise<SourceItem[]> {
    return await streamed(
      'SET SESSION binlog_transaction_compression = ON',
      ...statements,
      'SET SESSION binlog_transaction_compression = OFF',
    );
  }
  const kinds = (items: readonly SourceItem[]): string =>
    items
      .filter((item) => item.kind !== 'keepalive')
      .map((item) => (item.kind === 'row' ? `row${item.ordinal}` : item.kind))
      .join(' ');
  /** The server counts what it compressed: without this a test could pass on plain events. */
  async function compressions(): Promise<number> {
    const [row] = await db.select(
      "SELECT SUM(TRANSACTION_COUNTER) FROM performance_schema.binary_log_transaction_compression_stats WHERE LOG_TYPE = 'BINARY' AND COMPRESSION_TYPE = 'ZSTD'",
    );
    return Number(row?.[0] ?? 0);
  }

  it('reads compressed transactions, resumes at each', async () => {
    const before = await compressions();
    const from = await source.currentPosition();
    const items = await compressed(
      "INSERT INTO t VALUES (1, REPEAT('a', 100000)), (2, 'b')",
      'BEGIN',
      "UPDATE t SET v = 'c' WHERE id = 1",
      'DELETE FROM t WHERE id = 2',
      "INSERT INTO t VALUES (3, 'd')",
      'COMMIT',
      "INSERT INTO t VALUES (4, 'plain again')",
    );
    assert.equal(kinds(items), 'begin row1 row2 commit begin row1 row2 row3 commit begin row1 commit');
    assert.deepEqual(
      [...replay(items).values()].map((row) => row.after).sort((a, b) => Number(a?.['id']) - Number(b?.['id'])),
      [
        { id: 1, v: 'c' },
        { id: 3, v: 'd' },
        { id: 4, v: 'plain again' },
      ],
    );
    assert.ok((await compressions()) - before >= 3);
    const plain = items.filter((item) => item.kind !== 'keepalive');
    for (const [i, item] of plain.entries()) {
      if (item.kind !== 'commit') continue;
      assert.deepEqual(saidBy(await readItems(source, item.position)), saidBy(plain.slice(i + 1)));
    }
    assert.deepEqual(saidBy(await readItems(source, from)), saidBy(plain));
  });

  it('reads a compressed transaction of many megabytes', async () => {
    const before = await compressions();
    await db.run('DELETE FROM t');
    const inserts = Array.from(
      { length: 60 },
      (_, i) =>
        `INSERT INTO t SELECT ${i * 10} + n, REPEAT(SHA2(${i} + n, 256), 1000) FROM (VALUES ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8), ROW(9)) AS s (n)`,
    );
    const items = await compressed('BEGIN', ...inserts, 'COMMIT');
    assert.ok((await compressions()) > before);
    const rows = rowsOf(items);
    assert.equal(rows.length, 600);
    const sums = await db.select('SELECT id, v FROM t');
    const texts = new Map(rows.map((row) => [String(row.after?.['id']), row.after?.['v']]));
    for (const [id, v] of sums) assert.ok(texts.get(String(id)) === v, `row ${id}`);
    await db.run('DELETE FROM t');
  });

  it('applies partial changes of JSON to the text that the server prints', async () => {
    await db.run(
      'CREATE TABLE j (id INT PRIMARY KEY, a JSON, n DECIMAL(20, 5), b JSON, s VARCHAR(300), c JSON, ts DATETIME(3), e ENUM("x", "y"), bi BIT(9))',
    );
    const pad = 'p'.repeat(300);
    const big = 'q'.repeat(70_000);
    const document = JSON.stringify({
      k: 1,
      list: [1, 2.5, { deep: [1, 2, 3] }],
      pad,
      'a b': { 'x"y': 'z', é: 'ü' },
      t: true,
    });
    const insert = (id: number): string =>
      `INSERT INTO j VALUES (${id}, '${document.replaceAll('\\', '\\\\')}', 1.5, '{"o":{"i":18446744073709551615,"d":1.0},"pad":"${pad}"}', 'text', NULL, '2024-01-02 03:04:05.678', 'y', b'101010101')`;
    const from = await source.currentPosition();
    await db.run(insert(1), insert(2), "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'");
    const [file, offset] = await logEnd();
    const updates = [
      "a = JSON_SET(a, '$.k', 2)",
      "a = JSON_SET(a, '$.k', 'now a text that is longer', '$.list[1]', CAST('12.50' AS DECIMAL(10, 2)))",
      "a = JSON_SET(a, '$.new', JSON_OBJECT('x', 1, 'long', REPEAT('l', 200))), n = n + 1",
      "a = JSON_REMOVE(a, '$.list[0]')",
      "a = JSON_SET(a, '$.list[9]', 'appended')",
      "a = JSON_SET(a, '$.\"a b\".\"x\\\\\"y\"', CAST('2024-02-03' AS DATE), '$.\"a b\".é', 'ö')",
      "a = JSON_REPLACE(a, '$.list[1].deep[2]', 99), b = JSON_SET(b, '$.o.i', -5, '$.o.d', 2.0), s = 'other'",
      "b = JSON_REMOVE(b, '$.o.d'), c = '[1, 2, 3]'",
      "c = JSON_SET(c, '$[1]', JSON_ARRAY()), a = NULL",
      "b = JSON_SET(b, '$.pad', REPEAT('r', 1000), '$.z', NULL)",
      `b = JSON_SET(b, '$.big', '${big}')`,
      "b = JSON_SET(b, '$.o.i', 70000, '$.q', 1)",
      "b = JSON_REMOVE(b, '$.big')",
      "b = JSON_SET(b, '$', JSON_ARRAY(1))",
      `a = '${JSON.stringify({ k: 'scalar', list: [1, 2, 3, 4, [5, 6]], empty: [], pad })}'`,
      "a = JSON_SET(a, '$.list[last]', 'l')",
      "a = JSON_SET(a, '$.list[last-1]', JSON_ARRAY(7, 8, 9))",
      "a = JSON_SET(a, '$.list[last-1][last]', 10, '$.list[ last - 2 ]', 11)",
      "a = JSON_REMOVE(a, '$.list[last-3]', '$.list[last]')",
      "a = JSON_REPLACE(a, '$.list[last-30]', 'nowhere', '$.list[last]', 'end')",
      "a = JSON_SET(a, '$.list[last-30]', 'before the first')",
      "a = JSON_SET(a, '$.empty[last]', 'first')",
      "a = JSON_REMOVE(a, '$.list[last-30]', '$.empty[last]')",
      "a = JSON_SET(a, '$.k[last]', 'still a scalar', '$[0].list[0]', 0)",
      "a = JSON_SET(a, '$.k[0]', 'another scalar')",
      "a = JSON_SET(a, '$.k[1]', 'an array now')",
      "a = JSON_SET(a, '$.k[last].none', 1, '$.k[0][0]', 'deeper')",
    ];
    const expected: (string | null)[][] = [];
    for (const update of updates) {
      await db.run(`UPDATE j SET ${update}`);
      expected.push(...(await db.select('SELECT a, n, b, s, c, ts, e FROM j ORDER BY id')));
    }
    await db.run("SET SESSION binlog_row_value_options = ''");
    const rows = rowsOf(await readItems(source, from)).filter((row) => row.operation === 'update');
    const names = ['a', 'n', 'b', 's', 'c', 'ts', 'e'];
    for (const [i, row] of rows.entries()) {
      assert.deepEqual(
        names.map((name) => row.after?.[name] ?? null),
        expected[i],
        updates[i >> 1],
      );
    }
    assert.equal(rows.length, updates.length * 2);
    const logged = (await db.select(`SHOW BINLOG EVENTS IN '${file}' FROM ${offset}`)).map((row) => row[2]);
    assert.ok(logged.filter((type) => type === 'Update_rows_partial').length >= updates.length, logged.join());
  });

  it('does both at once', async () => {
    await db.run(
      'CREATE TABLE both_ (id INT PRIMARY KEY, j JSON)',
      `INSERT INTO both_ VALUES (1, '{"a":1,"p":"${'p'.repeat(500)}"}')`,
    );
    const items = await compressed(
      "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
      "UPDATE both_ SET j = JSON_SET(j, '$.a', 2)",
      "SET SESSION binlog_row_value_options = ''",
    );
    const [[text] = []] = await db.select('SELECT j FROM both_');
    assert.deepEqual(
      rowsOf(items).map((row) => row.after),
      [{ id: 1, j: text }],
    );
  });

  async function logEnd(): Promise<[string, number]> {
    const { file, offset } = await source.currentPosition();
    return [file, offset];
  }
});
