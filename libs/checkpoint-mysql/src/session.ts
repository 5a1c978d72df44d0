import { checkpointErrors } from '@mysync/checkpoint';
import { causeText, isMysyncError, type MysyncError, PASSING_MYSQL_ERRORS, Turns } from '@mysync/core';
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type ResultSetHeader,
  type RowDataPacket,
} from 'mysql2/promise';

export interface MysqlPlace {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** Where the tables stand. */
  readonly database: string;
  /** What makes the connection an encrypted one, to this host and no other. */
  readonly secure?: Pick<ConnectionOptions, 'ssl' | 'stream'>;
  /** For the connection, and for each answer. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** The server or the way to it, not what was asked (mysql2, Node, and the manual's "Server Error Message Reference"). */
const TRANSIENT = /^(PROTOCOL_|ECONN|ETIMEDOUT|EPIPE|EHOST|ENET|ENOTFOUND|EAI_)/;
const TLS = /^(ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|HANDSHAKE_)/;
/** What the shared list leaves to whoever writes. */
const READ_ONLY_NUMBERS: ReadonlySet<number> = new Set([
  1290, // --read-only: a failover is under way
  1836, // read only mode
]);
/** A full disk, as the server, its storage engine and its file system say it (1030 and 1026 hold the number of the system's error in the text alone). */
const DISK_FULL_NUMBERS: ReadonlySet<number> = new Set([3, 20, 1021, 1026, 1030, 1114]);
const NO_DATABASE = 1049;
/** Also of a locked account (MySQL's 3118, MariaDB's 4151) and of a host that is blocked or not allowed. */
const DENIED_NUMBERS: ReadonlySet<number> = new Set([
  1044,
  1045,
  NO_DATABASE,
  1129,
  1130,
  1142,
  1143,
  1227,
  1698,
  3118,
  4151,
]);

/**
 * A connection that is made when it is needed and made anew when it was lost: nothing in the session is relied on. A statement whose answer was
 * lost may have been done: the statements of the store can be told so by what they find.
 *
 * Calls are served one after another: what one call does is its own transaction, and there is one connection, however many ask.
 */
export class CheckpointSession {
  readonly #place: MysqlPlace;
  #connection: Connection | undefined;
  readonly #turns = new Turns();
  #closed = false;
  /** A denial after that may pass (docs/adr/0211). */
  #wasLetIn = false;

  constructor(place: MysqlPlace) {
    this.#place = place;
  }

  /** `host:port/database`, for error texts. */
  get name(): string {
    const { host, port, database } = this.#place;
    return `${host}:${port}/${database}`;
  }

  async rows(sql: string, values: readonly unknown[]): Promise<readonly RowDataPacket[]> {
    return await this.#run(async (connection, timeout) => {
      const [rows] = await connection.query<RowDataPacket[]>({ sql, values: [...values], timeout });
      return rows;
    });
  }

  /** How many rows the statement found, changed or not. */
  async change(sql: string, values: readonly unknown[]): Promise<number> {
    return await this.#run(async (connection, timeout) => {
      const [result] = await connection.query<ResultSetHeader>({ sql, values: [...values], timeout });
      return result.affectedRows;
    });
  }

  /** All statements or none; `each` says whether a statement's number of rows is as it must be. */
  async changeAll(
    statements: readonly { readonly sql: string; readonly values: readonly unknown[]; readonly rows?: number }[],
  ): Promise<boolean> {
    return await this.#run(async (connection, timeout) => {
      await connection.query({ sql: 'START TRANSACTION', timeout });
      for (const { sql, values, rows } of statements) {
        const [result] = await connection.query<ResultSetHeader>({ sql, values: [...values], timeout });
        if (rows === undefined || result.affectedRows === rows) continue;
        await connection.query({ sql: 'ROLLBACK', timeout });
        return false;
      }
      await connection.query({ sql: 'COMMIT', timeout });
      return true;
    });
  }

  /** For good: calls that wait are refused. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  async #run<T>(act: (connection: Connection, timeoutMs: number) => Promise<T>): Promise<T> {
    return await this.#turns.take(() => this.#act(act));
  }

  async #act<T>(act: (connection: Connection, timeoutMs: number) => Promise<T>): Promise<T> {
    const timeoutMs = this.#place.timeoutMs ?? TIMEOUT_MS;
    try {
      this.#requireOpen();
      this.#connection ??= await this.#connect(timeoutMs);
      // closed meanwhile: the connection was not there yet to be closed with it
      this.#requireOpen();
      const done = await act(this.#connection, timeoutMs);
      this.#wasLetIn = true;
      return done;
    } catch (error) {
      // whatever is open in the session ends with it
      this.#drop();
      throw this.#translate(error);
    }
  }

  #requireOpen(): void {
    if (!this.#closed) return;
    const message = 'the checkpoint store is closed';
    throw checkpointErrors.CHECKPOINT_FENCED({ message, where: { path: this.name } });
  }

  #drop(): void {
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  async #connect(timeoutMs: number): Promise<Connection> {
    const { host, port, user, password, database, secure } = this.#place;
    const connection = await createConnection({
      host,
      port,
      user,
      password,
      database,
      charset: 'utf8mb4_bin',
      connectTimeout: timeoutMs,
      supportBigNumbers: true,
      bigNumberStrings: true,
      ...secure,
    });
    // lost between two statements: the next one makes another
    connection.on('error', () => {
      connection.destroy();
      if (this.#connection === connection) this.#connection = undefined;
    });
    try {
      const sql = "SET SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION autocommit = 1";
      await connection.query({ sql, timeout: timeoutMs });
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  #translate(error: unknown): MysyncError {
    if (isMysyncError(error)) return error;
    const { code = '', errno = 0 } = error as { code?: string; errno?: number };
    const where = { path: this.name };
    const message = `the checkpoint's tables in ${this.name}: ${causeText(error)}`;
    if (DENIED_NUMBERS.has(errno) && this.#wasLetIn && errno !== NO_DATABASE) {
      return checkpointErrors.CHECKPOINT_ACCESS_LOST({ message, where, cause: error });
    }
    if (DENIED_NUMBERS.has(errno)) {
      const { user, database } = this.#place;
      const remedy = `Correct user, password and database of checkpoint.mysql, or let an administrator say: CREATE DATABASE IF NOT EXISTS \`${database}\`; CREATE USER IF NOT EXISTS '${user}'@'%' IDENTIFIED BY '(password)'; GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON \`${database}\`.* TO '${user}'@'%';`;
      return checkpointErrors.CHECKPOINT_DENIED({ message, where, remedy, cause: error });
    }
    if (DISK_FULL_NUMBERS.has(errno)) {
      const remedy =
        'Free some space where the server of the checkpoint keeps its data, or see what else its storage says in the cause. It is tried again; nothing is lost meanwhile.';
      return checkpointErrors.CHECKPOINT_DISK_FULL({ message, where, remedy, cause: error });
    }
    if (TRANSIENT.test(code) || PASSING_MYSQL_ERRORS.has(errno) || READ_ONLY_NUMBERS.has(errno)) {
      return checkpointErrors.CHECKPOINT_UNREACHABLE({ message, where, cause: error });
    }
    if (TLS.test(code)) {
      const remedy =
        'Set checkpoint.mysql.tls: the authority of its certificate (ca), or verifyName: false where it is not for this host.';
      return checkpointErrors.CHECKPOINT_UNWRITABLE({ message, where, remedy, cause: error });
    }
    return checkpointErrors.CHECKPOINT_UNWRITABLE({
      message,
      where,
      remedy:
        'Look at the cause: the tables mysync_owner, mysync_checkpoint and mysync_schema_history must be as MySync made them.',
      cause: error,
    });
  }
}
