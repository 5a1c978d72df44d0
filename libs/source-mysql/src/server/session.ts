/** Sessions with the server, and the translation of what the client library throws. */

import { causeText, coreErrors, isMysyncError, type MysyncError } from '@mysync/core';
import { type Connection, type ConnectionOptions, createConnection } from 'mysql2/promise';
import { sourceErrors } from '../errors.ts';
import type { HostAddress, ResolvedOptions } from '../options.ts';
import type { ServerIdentity } from '../port.ts';
import { signWithPassword } from './ed25519.ts';
import { isTransient, type MysqlError, mysqlErrorFields, SERVER_ERRORS } from './mysql-error.ts';
import { KEEP_ALIVE_MS, secureOptions } from './secure-options.ts';

/** One row of a result: text exactly as the server prints it, or null. */
export type TextRow = Readonly<Record<string, string | null>>;

/** One row of a result: the bytes of its values as the server prints them, or null. */
export type RawRow = readonly (Buffer | null)[];

export interface RawRows {
  readonly rows: readonly RawRow[];
  /** What the columns are, as far as reading their values goes: equal texts for equal columns. */
  readonly signature: string;
}

/** What a host is: asked once for each session. */
export interface ServerFacts extends ServerIdentity {
  readonly host: HostAddress;
  /** `major * 10000 + minor * 100 + patch`. */
  readonly versionNumber: number;
}

/** A question that takes longer has met a dead connection, or a lock that others wait for too. */
const ANSWER_MS = 60_000;

export type Credentials = Pick<ResolvedOptions, 'user' | 'password' | 'tls' | 'connectionTimeoutMs'> &
  Partial<Pick<ResolvedOptions, 'admission'>>;

/** mysql2's connection options: everything as text, nothing converted. */
export function connectionOptions(credentials: Credentials, host: HostAddress): ConnectionOptions {
  return {
    host: host.host,
    port: host.port,
    user: credentials.user,
    password: credentials.password,
    connectTimeout: credentials.connectionTimeoutMs,
    enableKeepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    charset: 'utf8mb4_general_ci',
    dateStrings: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    authPlugins: {
      client_ed25519: () => (nonce: Buffer) => signWithPassword(credentials.password, nonce),
    },
    ...(credentials.tls === undefined ? {} : secureOptions(credentials.tls, host)),
  };
}

/** A session for questions: every value of every result is text as the server prints it. */
export class ServerSession {
  readonly facts: ServerFacts;
  readonly #connection: Connection;

  private constructor(connection: Connection, facts: ServerFacts) {
    this.#connection = connection;
    this.facts = facts;
  }

  static async open(credentials: Credentials, host: HostAddress): Promise<ServerSession> {
    let connection: Connection | undefined;
    try {
      connection = await createConnection(connectionOptions(credentials, host));
      // without a listener an error between two queries would end the process; the next query reports it
      connection.on('error', () => undefined);
      const facts = await readFacts(connection, host, credentials.connectionTimeoutMs);
      credentials.admission?.given();
      // the server may be set to show system-versioned tables as they were
      if (facts.flavor === 'mariadb') await connection.query('SET SESSION system_versioning_asof = DEFAULT');
      return new ServerSession(connection, facts);
    } catch (error) {
      connection?.destroy();
      throw connectError(error, host, credentials);
    }
  }

  /** mysql2's own connection, for what needs streaming. */
  get connection(): Connection {
    return this.#connection;
  }

  /** Values are escaped into the text by the client library. */
  async query(sql: string, values: readonly unknown[] = []): Promise<readonly TextRow[]> {
    try {
      const [rows] = await this.#connection.query({ sql, values: [...values], timeout: ANSWER_MS, typeCast: asText });
      return Array.isArray(rows) ? (rows as unknown as readonly TextRow[]) : [];
    } catch (error) {
      throw queryError(error, this.facts.host, sql);
    }
  }

  /** How many rows the statement reached; 0 for one that changes none. */
  async change(sql: string, values: readonly unknown[] = []): Promise<number> {
    try {
      const [done] = await this.#connection.query({ sql, values: [...values], timeout: ANSWER_MS });
      return 'affectedRows' in done ? done.affectedRows : 0;
    } catch (error) {
      throw queryError(error, this.facts.host, sql);
    }
  }

  async first(sql: string, values: readonly unknown[] = []): Promise<TextRow | undefined> {
    return (await this.query(sql, values))[0];
  }

  /** For values of any type, charset and size; all rows are in memory. */
  async raw(sql: string): Promise<RawRows> {
    try {
      const [rows, fields] = await this.#connection.query({
        sql,
        rowsAsArray: true,
        typeCast: false,
        timeout: ANSWER_MS,
      });
      const columns = fields.map((field) => [
        field.name,
        field.columnType,
        field.extendedTypeName,
        field.characterSet,
        field.columnLength,
        field.flags,
        field.decimals,
      ]);
      return { rows: rows as unknown as readonly RawRow[], signature: JSON.stringify(columns) };
    } catch (error) {
      throw queryError(error, this.facts.host, sql);
    }
  }

  /** Global variables by name; those that the server does not know are missing. */
  async variables(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const list = names.map(() => '?').join(', ');
    const rows = await this.query(`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${list})`, names);
    return new Map(rows.map((row) => [String(row['Variable_name']).toLowerCase(), row['Value'] ?? '']));
  }

  close(): void {
    this.#connection.destroy();
  }
}

function asText(field: { string(): string | null }): string | null {
  return field.string();
}

async function readFacts(connection: Connection, host: HostAddress, timeout: number): Promise<ServerFacts> {
  const [rows] = await connection.query({ sql: 'SELECT VERSION() AS version', timeout, typeCast: asText });
  const version = String((rows as unknown as readonly TextRow[])[0]?.['version'] ?? '');
  const flavor = /mariadb/i.test(version) ? 'mariadb' : 'mysql';
  const name = flavor === 'mysql' ? 'server_uuid' : 'server_uid';
  const [found] = await connection.query({
    sql: `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('${name}', 'hostname', 'port', 'server_id')`,
    timeout,
    typeCast: asText,
  });
  const values = new Map((found as unknown as readonly TextRow[]).map((row) => [row['Variable_name'], row['Value']]));
  // MariaDB before 10.10 has no unique id of its own
  const uuid = values.get(name) ?? `${values.get('hostname')}:${values.get('port')}:${values.get('server_id')}`;
  const [major = 0, minor = 0, patch = 0] = (/^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1) ?? []).map(Number);
  return { host, uuid, flavor, version, versionNumber: major * 10_000 + minor * 100 + patch };
}

export function formatHost(host: HostAddress): string {
  return `${host.host}:${host.port}`;
}

const DENIED = new Set([
  'ER_ACCESS_DENIED_ERROR',
  'ER_ACCESS_DENIED_NO_PASSWORD_ERROR',
  'ER_DBACCESS_DENIED_ERROR',
  'ER_ACCOUNT_HAS_BEEN_LOCKED',
  'ER_MUST_CHANGE_PASSWORD_LOGIN',
]);
const NO_HOST = new Set(['ER_HOST_NOT_PRIVILEGED', 'ER_HOST_IS_BLOCKED']);

/** The server is not known yet: both take these names (MariaDB 10.5 calls REPLICATION CLIENT also BINLOG MONITOR). */
function accessRemedy(user: string): string {
  const account = `'${user.replaceAll("'", "''")}'@'%'`;
  return `Correct user and password of the source. If there is no such user, let an administrator create it: CREATE USER ${account} IDENTIFIED BY '(password)'; GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${account}; and on MySQL, for snapshots: GRANT RELOAD ON *.* TO ${account};`;
}

/** What a failed connect means to an operator. */
export function connectError(
  error: unknown,
  host: HostAddress,
  { user, admission }: Pick<Credentials, 'user' | 'admission'>,
): MysyncError {
  if (isMysyncError(error)) return error;
  const { code, errno } = mysqlErrorFields(error);
  const where = { host: formatHost(host) };
  if (errno === SERVER_ERRORS.SPECIFIC_ACCESS_DENIED) {
    return sourceErrors.SOURCE_GRANT_MISSING({
      message: `user '${user}' may not read the log`,
      where,
      remedy: `GRANT REPLICATION SLAVE ON *.* TO '${user}'@'%';`,
      cause: error,
    });
  }
  if (DENIED.has(code) || NO_HOST.has(code) || errno === SERVER_ERRORS.MARIADB_ACCOUNT_LOCKED) {
    const message = `${formatHost(host)} refuses user '${user}'`;
    if (admission?.isGiven) return sourceErrors.SOURCE_ACCESS_LOST({ message, where, cause: error });
    return sourceErrors.SOURCE_ACCESS_DENIED({
      message,
      where,
      remedy: accessRemedy(user),
      cause: error,
    });
  }
  if (code === 'AUTH_SWITCH_PLUGIN_ERROR') {
    return sourceErrors.SOURCE_ACCESS_DENIED({
      message: `${formatHost(host)} wants user '${user}' to authenticate in a way that is not supported, or over TLS only`,
      where,
      remedy:
        'Let an administrator identify the user by caching_sha2_password, mysql_native_password, or on MariaDB ed25519; or switch on tls for the source.',
      cause: error,
    });
  }
  if (isTlsError(error, code)) {
    return sourceErrors.SOURCE_TLS_FAILED({ message: `no TLS connection to ${formatHost(host)}`, where, cause: error });
  }
  if (code === '' && errno === 0) return coreErrors.INTERNAL({ message: 'connecting failed', where, cause: error });
  return sourceErrors.SOURCE_UNREACHABLE({ message: `no answer from ${formatHost(host)}`, where, cause: error });
}

function isTlsError(error: unknown, code: string): boolean {
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT' || code === 'HANDSHAKE_SSL_ERROR') return true;
  if (/^(ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO)/.test(code)) return true;
  return (
    error instanceof Error &&
    error.cause instanceof Error &&
    isTlsError(error.cause, mysqlErrorFields(error.cause).code)
  );
}

const PRIVILEGE = new Set([
  'ER_SPECIFIC_ACCESS_DENIED_ERROR',
  'ER_TABLEACCESS_DENIED_ERROR',
  'ER_COLUMNACCESS_DENIED_ERROR',
  'ER_DBACCESS_DENIED_ERROR',
  'ER_ACCESS_DENIED_ERROR',
]);

function queryError(error: unknown, host: HostAddress, sql: string): MysyncError {
  if (isMysyncError(error)) return error;
  const fields: MysqlError = mysqlErrorFields(error);
  const where = { host: formatHost(host), statement: sql.length > 200 ? `${sql.slice(0, 200)}…` : sql };
  if (isTransient(fields)) {
    return sourceErrors.SOURCE_CONNECTION_LOST({
      message: `lost the connection to ${formatHost(host)}`,
      where,
      cause: error,
    });
  }
  if (PRIVILEGE.has(fields.code)) {
    return sourceErrors.SOURCE_GRANT_MISSING({
      message: `the server does not permit a statement: ${causeText(error)}`,
      where,
      cause: error,
    });
  }
  return sourceErrors.SOURCE_QUERY_FAILED({ message: `a statement failed: ${causeText(error)}`, where, cause: error });
}
