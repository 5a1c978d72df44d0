/** The table that is measured with: twelve mixed columns, about 250 bytes a row, a NULL in one of ten rows. */
import type { TableRef } from '@mysync/core';
import type { Connection } from 'mysql2/promise';

export const DATABASE = 'bench';
/** Holds the same table again, with each row in a transaction of its own. */
export const SINGLES_DATABASE = 'bench_singles';
/** Holds one with a JSON document, and with microseconds, in place of flag and note. */
export const JSON_DATABASE = 'bench_json';
export const TABLE = 'orders';
/** The column that readers of the log add up, to show that they have read all of it. */
export const SUMMED = 'tenant';

const COLUMNS = `(
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  sent_us BIGINT NOT NULL,
  tenant INT NOT NULL,
  name VARCHAR(64) NOT NULL,
  email VARCHAR(96) NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  ratio DOUBLE NOT NULL,
  flag TINYINT NOT NULL,
  kind ENUM('new','paid','sent') NOT NULL,
  created DATETIME(3) NOT NULL,
  note TEXT NULL,
  raw VARBINARY(32) NOT NULL
) CHARACTER SET utf8mb4`;

export function isMeasured({ database, table }: TableRef): boolean {
  return [DATABASE, SINGLES_DATABASE, JSON_DATABASE].includes(database) && table === TABLE;
}

export async function createTable(connection: Connection, database: string): Promise<void> {
  await connection.query(`CREATE DATABASE ${database}`);
  await connection.query(`CREATE TABLE ${database}.${TABLE} ${database === JSON_DATABASE ? JSON_COLUMNS : COLUMNS}`);
}

/** The row of an id, as SQL expressions over `seq`. */
const ROW = `seq,
  1700000000000000 + seq * 977,
  seq % 1000,
  IF(seq % 16 = 0, CONCAT('Łukasz Ørsted ', seq), CONCAT('Customer Name ', seq)),
  CONCAT('customer.', seq, '@mail.example.com'),
  seq % 100000 + (seq % 100) / 100,
  seq / 7,
  seq % 2,
  1 + seq % 3,
  TIMESTAMPADD(MICROSECOND, (seq % 86400000) * 1000, '2024-03-01'),
  IF(seq % 10 = 0, NULL, CONCAT('note ', seq, REPEAT(' the quick brown fox jumps over the dog', 2), IF(seq % 8 = 0, ' größer als 表', ''))),
  UNHEX(SHA2(seq, 256))`;

const JSON_COLUMNS = `(
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  sent_us BIGINT NOT NULL,
  tenant INT NOT NULL,
  name VARCHAR(64) NOT NULL,
  email VARCHAR(96) NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  ratio DOUBLE NOT NULL,
  kind ENUM('new','paid','sent') NOT NULL,
  created DATETIME(3) NOT NULL,
  seen TIMESTAMP(6) NOT NULL,
  doc JSON NULL,
  raw VARBINARY(32) NOT NULL
) CHARACTER SET utf8mb4`;

const JSON_ROW = `seq,
  1700000000000000 + seq * 977,
  seq % 1000,
  IF(seq % 16 = 0, CONCAT('Łukasz Ørsted ', seq), CONCAT('Customer Name ', seq)),
  CONCAT('customer.', seq, '@mail.example.com'),
  seq % 100000 + (seq % 100) / 100,
  seq / 7,
  1 + seq % 3,
  TIMESTAMPADD(MICROSECOND, (seq % 86400000) * 1000, '2024-03-01'),
  TIMESTAMPADD(MICROSECOND, seq * 1001, '2024-03-01'),
  IF(seq % 10 = 0, NULL, JSON_OBJECT('i', seq, 'tags', JSON_ARRAY('alpha', CONCAT('beta ', seq % 97)), 'price', seq / 8, 'active', seq % 2)),
  UNHEX(SHA2(seq, 256))`;

/** Inserts the rows first…last in one statement; the server makes them itself. */
export async function insertRows(connection: Connection, database: string, first: number, last: number): Promise<void> {
  const name = `${database}.${TABLE}`;
  const row = database === JSON_DATABASE ? JSON_ROW : ROW;
  if (first === last) {
    await connection.query(`INSERT INTO ${name} SELECT ${row} FROM (SELECT ${first} AS seq) AS numbers`);
    return;
  }
  const next = `SELECT seq + 1 FROM numbers WHERE seq < ${last}`;
  const numbers = `WITH RECURSIVE numbers (seq) AS (SELECT ${first} UNION ALL ${next})`;
  await connection.query(`INSERT INTO ${name} ${numbers} SELECT ${row} FROM numbers`);
}

/** One row as a client without our code would hold it: field names and texts, NULL left out; nearly the same bytes. */
export function textRow(id: number): [string, string][] {
  const note = `note ${id} the quick brown fox jumps over the dog the quick brown fox jumps over the dog`;
  const fields: [string, string][] = [
    ['id', String(id)],
    ['sent_us', String(1_700_000_000_000_000 + id * 977)],
    ['tenant', String(id % 1000)],
    ['name', id % 16 === 0 ? `Łukasz Ørsted ${id}` : `Customer Name ${id}`],
    ['email', `customer.${id}@mail.example.com`],
    ['amount', `${id % 100_000}.${String(id % 100).padStart(2, '0')}`],
    ['ratio', String(id / 7)],
    ['flag', String(id % 2)],
    ['kind', ['new', 'paid', 'sent'][id % 3] ?? ''],
    ['created', '2024-03-01 12:34:56.789'],
    ['raw', Buffer.alloc(32, id & 255).toString('base64')],
  ];
  if (id % 10 !== 0) fields.push(['note', id % 8 === 0 ? `${note} größer als 表` : note]);
  return fields;
}
