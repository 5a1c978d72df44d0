/** The table that is measured with: twelve mixed columns, about 250 bytes a row, a NULL in one of ten rows. */
import type { Connection } from 'mysql2/promise';

export const DATABASE = 'bench';
export const TABLE = 'orders';

export const CREATE_TABLE = `CREATE TABLE ${DATABASE}.${TABLE} (
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

/** Inserts the rows first…last in one statement; MariaDB makes them itself. The connection has chosen the database. */
export async function insertRows(connection: Connection, first: number, last: number): Promise<void> {
  await connection.query(`INSERT INTO ${DATABASE}.${TABLE} SELECT ${ROW} FROM seq_${first}_to_${last}`);
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
