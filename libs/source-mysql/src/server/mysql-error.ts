import { isMysyncError, PASSING_MYSQL_ERRORS } from '@mysync/core';

/** What mysql2 puts on its errors, read without trusting it. */
export interface MysqlError {
  /** Symbolic code of the server (`ER_…`), of the operating system, or of mysql2; '' when there is none. */
  readonly code: string;
  /** Number of a server error; 0 for all others. */
  readonly errno: number;
  /** The connection is gone. */
  readonly fatal: boolean;
}

export function mysqlErrorFields(error: unknown): MysqlError {
  if (typeof error !== 'object' || error === null) return { code: '', errno: 0, fatal: true };
  const fields = error as { code?: unknown; errno?: unknown; fatal?: unknown };
  const errno = typeof fields.errno === 'number' && fields.errno > 0 ? fields.errno : 0;
  return { code: typeof fields.code === 'string' ? fields.code : '', errno, fatal: fields.fatal === true };
}

/** Of an error of the server, also where it is the cause of ours; 0 for all others. */
export function serverErrorNumber(error: unknown): number {
  return mysqlErrorFields(isMysyncError(error) ? error.cause : error).errno;
}

/** Server errors by number: MySQL's and MariaDB's error message references. */
export const SERVER_ERRORS = {
  /** The dump thread gives up: position, purge, id and so on; the text says which. */
  MASTER_FATAL_ERROR_READING_BINLOG: 1236,
  ACCESS_DENIED: 1045,
  SPECIFIC_ACCESS_DENIED: 1227,
  /** MariaDB's ER_ACCOUNT_HAS_BEEN_LOCKED; the client library has MySQL's name for it, which is another error's. */
  MARIADB_ACCOUNT_LOCKED: 4151,
  /** MariaDB: another replica with our id connected. */
  SLAVE_SAME_ID: 4052,
  TABLE_DEF_CHANGED: 1412,
  NO_SUCH_TABLE: 1146,
  NO_SUCH_DATABASE: 1049,
  BAD_FIELD: 1054,
  LOCK_WAIT_TIMEOUT: 1205,
  LOCK_DEADLOCK: 1213,
  TABLESPACE_DISCARDED: 1814,
} as const;

export function isTransient(error: MysqlError): boolean {
  return error.fatal || error.errno === 0 || PASSING_MYSQL_ERRORS.has(error.errno);
}
