import type { Connection } from 'mysql2/promise';

/** Key columns of the tables, as the harness compares them. */
export const KEYS = { pair: ['a', 'b'], words: ['word'] } as const;
export const TABLES = ['item', 'pair', 'words', 'plain', 'log_like'] as const;

export async function createTables(sql: Connection): Promise<void> {
  await sql.query(`
    CREATE TABLE item (id INT PRIMARY KEY, u INT UNIQUE, name VARCHAR(40), amount DECIMAL(20,6), at DATETIME(6), n BIGINT UNSIGNED);
    CREATE TABLE pair (a INT NOT NULL, b INT NOT NULL, note TEXT, PRIMARY KEY (a, b));
    CREATE TABLE words (word VARCHAR(60) COLLATE utf8mb4_bin PRIMARY KEY, meaning VARCHAR(60));
    CREATE TABLE plain (id INT PRIMARY KEY, v INT NOT NULL) ;
    CREATE TABLE log_like (id BIGINT UNSIGNED PRIMARY KEY, line VARCHAR(200) NULL)`);
}

/** Rows that are there before MySync starts. */
export async function fillBefore(sql: Connection): Promise<void> {
  const rows = Array.from({ length: 500 }, (_, id) => [
    id,
    id,
    `name ${id} é 😀`,
    `${id}.123456`,
    '2024-02-29 23:59:59.999999',
    `${id}`,
  ]);
  await sql.query('INSERT INTO item VALUES ?', [rows]);
  await sql.query('INSERT INTO pair VALUES ?', [rows.map(([id]) => [id, 1, 'first'])]);
  await sql.query(
    "INSERT INTO words VALUES ('null', 'not NULL'), ('NULL', NULL), ('a:b', 'colon'), ('%', 'percent'), ('', 'empty'), ('ß', 'sharp s'), ('Ω', '')",
  );
  await sql.query('INSERT INTO plain VALUES ?', [rows.map(([id]) => [id, 0])]);
  await sql.query('INSERT INTO log_like VALUES (18446744073709551615, NULL), (9007199254740993, ?)', ['x'.repeat(200)]);
}

/** One round of everything a table goes through; `round` makes the keys of a round its own. */
export async function changeEverything(sql: Connection, round: number): Promise<void> {
  const base = 10_000 * (round + 1);
  // multi-row statements
  const rows = Array.from({ length: 300 }, (_, i) => [
    base + i,
    base + i,
    `row ${i}`,
    '1.5',
    '2024-01-01 00:00:00.000001',
    '18446744073709551615',
  ]);
  await sql.query('INSERT INTO item VALUES ?', [rows]);
  await sql.query('UPDATE item SET amount = amount + 0.000001 WHERE id BETWEEN ? AND ?', [base, base + 250]);
  await sql.query('DELETE FROM item WHERE id BETWEEN ? AND ?', [base + 200, base + 220]);
  // a transaction over several tables, and ones that are rolled back, in whole and in part
  await sql.query('BEGIN');
  await sql.query('INSERT INTO pair VALUES (?, 1, ?), (?, 2, NULL)', [base, "it's", base]);
  await sql.query('UPDATE plain SET v = v + 1 WHERE id < 50');
  await sql.query('SAVEPOINT half');
  await sql.query('DELETE FROM plain WHERE id < 50');
  await sql.query('ROLLBACK TO half');
  await sql.query('INSERT INTO words VALUES (?, ?)', [`word ${round}`, 'kept']);
  await sql.query('COMMIT');
  await sql.query('BEGIN');
  await sql.query('DELETE FROM pair');
  await sql.query('UPDATE item SET name = ?', ['never']);
  await sql.query('ROLLBACK');
  // primary key changes: to a free key, a shift of many, and a swap in one transaction
  await sql.query('UPDATE pair SET b = b + 10 WHERE a = ?', [base]);
  await sql.query('UPDATE item SET id = id + 1000 WHERE id BETWEEN ? AND ?', [base, base + 20]);
  await sql.query('BEGIN');
  for (const [from, to] of [
    [base + 30, -1],
    [base + 31, base + 30],
    [-1, base + 31],
  ]) {
    await sql.query('UPDATE item SET id = ? WHERE id = ?', [to, from]);
  }
  await sql.query('COMMIT');
  // hidden key changes: REPLACE and upserts that hit the other unique key
  await sql.query('REPLACE INTO item (id, u, name) VALUES (?, ?, ?)', [base + 5000, base + 40, 'replaced']);
  await sql.query('INSERT INTO item (id, u) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = ?', [
    base + 5001,
    base + 41,
    base + 5002,
  ]);
  // the same key through everything, in one transaction
  await sql.query('BEGIN');
  await sql.query('INSERT INTO plain VALUES (?, 1)', [base]);
  await sql.query('UPDATE plain SET v = 2 WHERE id = ?', [base]);
  await sql.query('DELETE FROM plain WHERE id = ?', [base]);
  await sql.query('INSERT INTO plain VALUES (?, 3)', [base]);
  await sql.query('COMMIT');
  await sql.query('UPDATE words SET word = ? WHERE word = ?', [`WORD ${round}`, `word ${round}`]);
}

/** TRUNCATE in the middle of inserts. */
export async function truncateUnderLoad(sql: Connection, other: Connection, round: number): Promise<void> {
  const insert = async (from: number): Promise<void> => {
    for (let i = 0; i < 20; i += 1) {
      const rows = Array.from({ length: 50 }, (_, n) => [from + i * 50 + n, `line ${n}`]);
      await other.query('INSERT INTO log_like VALUES ?', [rows]);
    }
  };
  const load = insert(1_000_000 * (round + 1));
  await sql.query('TRUNCATE TABLE log_like');
  await load;
  await sql.query('DELETE FROM log_like WHERE id % 7 = 0');
}
