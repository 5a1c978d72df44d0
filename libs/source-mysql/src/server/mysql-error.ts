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

/** Server errors by number: MySQL's and MariaDB's error message references. */
export const SERVER_ERRORS = {
  /** The dump thread gives up: position, purge, id and so on; the text says which. */
  MASTER_FATAL_ERROR_READING_BINLOG: 1236,
  ACCESS_DENIED: 1045,
  SPECIFIC_ACCESS_DENIED: 1227,
  /** MariaDB: another replica with our id connected. */
  SLAVE_SAME_ID: 4052,
  TABLE_DEF_CHANGED: 1412,
  NO_SUCH_TABLE: 1146,
  NO_SUCH_DATABASE: 1049,
  BAD_FIELD: 1054,
  NEW_ABORTING_CONNECTION: 1184,
  QUERY_INTERRUPTED: 1317,
  CONNECTION_KILLED: 1927,
  SERVER_SHUTDOWN: 1053,
} as const;
