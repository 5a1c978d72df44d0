/** Fills the table whose log is measured. */
import { textConnection } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';
import { createTable, insertRows, SUMMED, TABLE } from './table.ts';

/** Beyond what one transaction may hold (`--transaction-rows`). */
const MOST_NUMBERS = 1_000_001;
const CONNECTIONS = 2;
const INSERTS_AT_A_TIME = 50;

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

export interface LoadedTable {
  readonly database: string;
  readonly rows: number;
  readonly transactionRows: number;
}

export interface LogPosition {
  readonly file: string;
  readonly offset: number;
}

/** Where the log ends now. */
export async function logPosition(address: ServerAddress, server: 'mariadb' | 'mysql'): Promise<LogPosition> {
  return await connected(address, async (connection) => {
    const [rows] = await connection.query(server === 'mysql' ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS');
    const [status] = rows as { File: string; Position: string }[];
    if (status === undefined) throw new Error('the server keeps no log');
    return { file: status.File, offset: Number(status.Position) };
  });
}

/** What the server itself says of the table. */
export async function tableFacts(address: ServerAddress, database: string): Promise<{ rows: number; sum: number }> {
  return await connected(address, async (connection) => {
    const [rows] = await connection.query(`SELECT COUNT(*) AS n, SUM(${SUMMED}) AS total FROM ${database}.${TABLE}`);
    const [facts] = rows as { n: string; total: string }[];
    return { rows: Number(facts?.n), sum: Number(facts?.total) };
  });
}

export async function loadTable(address: ServerAddress, loaded: LoadedTable): Promise<void> {
  const { database, rows, transactionRows } = loaded;
  await connected(address, (connection) => createTable(connection, database));
  let next = 1;
  const insert = async (connection: Connection): Promise<void> => {
    // MySQL's name; MariaDB has another one
    await connection.query(`SET SESSION cte_max_recursion_depth = ${MOST_NUMBERS}`).catch(async () => {
      await connection.query(`SET SESSION max_recursive_iterations = ${MOST_NUMBERS}`);
    });
    while (next <= rows) {
      const statements: Promise<void>[] = [];
      for (let at = 0; at < INSERTS_AT_A_TIME && next <= rows; at += 1) {
        statements.push(insertRows(connection, database, next, Math.min(rows, next + transactionRows - 1)));
        next += transactionRows;
      }
      await Promise.all(statements);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, () => connected(address, insert)));
}

async function connected<T>(address: ServerAddress, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await textConnection(address);
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}
