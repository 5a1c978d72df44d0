/** A database for checkpoints in the server that the tests read. */
import { randomName, sharedServer } from '@mysync/harness';
import { type Connection, createConnection } from 'mysql2/promise';

export class CheckpointDatabase implements AsyncDisposable {
  /** The section `checkpoint`. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly #sql: Connection;
  readonly #name: string;

  private constructor(sql: Connection, name: string, config: Readonly<Record<string, unknown>>) {
    this.#sql = sql;
    this.#name = name;
    this.config = config;
  }

  static async create(): Promise<CheckpointDatabase> {
    const server = await sharedServer('mariadb');
    const host = server.get('MYSQL_HOST');
    const port = Number(server.get('MYSQL_PORT'));
    const login = { user: server.get('MYSQL_USER'), password: server.get('MYSQL_PASSWORD') };
    const name = randomName('checkpoints');
    const sql = await createConnection({ host, port, ...login });
    await sql.query(`CREATE DATABASE ${name}`);
    const mysql = { host: `${host}:${port}`, ...login, database: name };
    return new CheckpointDatabase(sql, name, { kind: 'mysql', mysql });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sql.query(`DROP DATABASE ${this.#name}`);
    await this.#sql.end();
  }
}
