/**
 * A transaction that sees all tables as they were at one known position of the log.
 *
 * MariaDB tells the position of a consistent view by itself, without any lock. MySQL does not: writes are held off while the view is
 * made and the position is asked, for a few milliseconds: by FLUSH TABLES WITH READ LOCK, or, where that is not permitted (RELOAD),
 * by LOCK TABLES … READ of the captured tables, which waits for every transaction that has changed one of them.
 */
import { isMysyncError, type SourcePosition, type TableRef } from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import { quoteTable } from '../server/dialect.ts';
import { currentPosition, mariadbGtidSet } from '../server/log-state.ts';
import { SERVER_ERRORS, serverErrorNumber } from '../server/mysql-error.ts';
import type { ServerSession } from '../server/session.ts';

/** How long to wait for running statements before giving up, so that nobody queues up behind our lock for long. */
const LOCK_WAIT_SECONDS = 20;
const YEAR_SECONDS = 31_536_000;

/** Opens the view in `reader`; it lasts until that session ends. `control` is a second session. */
export async function openConsistentView(
  reader: ServerSession,
  control: ServerSession,
  tables: readonly TableRef[],
): Promise<SourcePosition> {
  await reader.query(
    `SET SESSION time_zone = '+00:00', SESSION sql_mode = '', SESSION net_write_timeout = ${YEAR_SECONDS}, SESSION wait_timeout = ${YEAR_SECONDS}`,
  );
  await reader.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  if (reader.facts.flavor === 'mariadb') return await mariadbView(reader);
  return await mysqlView(reader, control, tables);
}

async function mariadbView(reader: ServerSession): Promise<SourcePosition> {
  await withoutLog(reader);
  await beginView(reader);
  const rows = await reader.query("SHOW STATUS LIKE 'binlog_snapshot_%'");
  const status = new Map(rows.map((row) => [String(row['Variable_name']).toLowerCase(), row['Value'] ?? '']));
  const file = status.get('binlog_snapshot_file') ?? '';
  const offset = Number(status.get('binlog_snapshot_position') ?? 0);
  if (file === '') throw sourceErrors.SOURCE_BINLOG_OFF({ message: 'the server writes no binary log' });
  return { file, offset, gtidSet: (await mariadbGtidSet(reader, { file, offset })) ?? '' };
}

async function mysqlView(
  reader: ServerSession,
  control: ServerSession,
  tables: readonly TableRef[],
): Promise<SourcePosition> {
  await control.query(`SET SESSION lock_wait_timeout = ${LOCK_WAIT_SECONDS}`);
  try {
    await holdWrites(control, tables);
    await beginView(reader);
    return await currentPosition(control);
  } finally {
    await control.query('UNLOCK TABLES');
  }
}

/**
 * A session that may log keeps the locks of all tables that it has read until its transaction ends, even beyond ROLLBACK TO SAVEPOINT
 * (seen on 10.11). Without the grant (BINLOG ADMIN) they stay, and DDL on tables already read waits for the end of the snapshot.
 */
async function withoutLog(reader: ServerSession): Promise<void> {
  try {
    await reader.query('SET SESSION sql_log_bin = 0');
  } catch (error) {
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING')) throw error;
  }
}

async function beginView(reader: ServerSession): Promise<void> {
  await reader.query('START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY');
}

async function holdWrites(control: ServerSession, tables: readonly TableRef[]): Promise<void> {
  try {
    await control.query('FLUSH TABLES WITH READ LOCK');
    return;
  } catch (error) {
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING')) throw lockError(error);
  }
  try {
    await control.query(`LOCK TABLES ${tables.map((ref) => `${quoteTable(ref)} READ`).join(', ')}`);
  } catch (error) {
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING')) throw lockError(error);
    const account = (await control.first('SELECT CURRENT_USER() AS account'))?.['account'] ?? 'the user';
    throw sourceErrors.SOURCE_SNAPSHOT_DENIED({
      message: `${account} may neither hold off writes (RELOAD) nor lock the captured tables (LOCK TABLES)`,
      remedy: `GRANT RELOAD ON *.* TO ${account.replace(/^(.*)@(.*)$/, "'$1'@'$2'")}; or GRANT LOCK TABLES on the captured databases.`,
      cause: error,
    });
  }
}

/** Somebody's long statement or transaction is in the way: try again later. */
function lockError(error: unknown): unknown {
  if (serverErrorNumber(error) !== SERVER_ERRORS.LOCK_WAIT_TIMEOUT) return error;
  return sourceErrors.SOURCE_SNAPSHOT_RESTART({
    message: `writes could not be held off within ${LOCK_WAIT_SECONDS} s: a long statement or transaction is in the way`,
    cause: error,
  });
}
