/**
 * A transaction that sees all tables as they were at one known position of the log.
 *
 * MariaDB tells the position of a consistent view by itself, without any lock. MySQL does not: writes are held off while the view is
 * made and the position is asked, for a few milliseconds: by FLUSH TABLES WITH READ LOCK, or, where that is not permitted (RELOAD),
 * by LOCK TABLES … READ of the captured tables, which waits for every transaction that has changed one of them.
 *
 * A view of a few tables while the stream runs is made gently and exactly:
 * 1. MySQL: LOCK TABLES first, so that nobody waits but who writes to these tables, and never for long.
 * 2. Their definitions are kept from before the view began until it is read. Else a RENAME in between would put another table's rows in their
 *    place, as of a time when that was not yet the table (a ghost table that still lags behind its original).
 */
import { isMysyncError, type SourcePosition, type TableRef } from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import { quoteTable } from '../server/dialect.ts';
import { currentPosition, mariadbGtidSet } from '../server/log-state.ts';
import { SERVER_ERRORS, serverErrorNumber } from '../server/mysql-error.ts';
import type { ServerSession } from '../server/session.ts';

/** How long to wait for running statements before giving up, so that nobody queues up behind our lock for long. */
const LOCK_WAIT_SECONDS = 20;
const BESIDE_LOCK_WAIT_SECONDS = 2;
const YEAR_SECONDS = 31_536_000;

export interface ViewOptions {
  /** The view lasts until this session ends. */
  readonly reader: ServerSession;
  /** A second session. */
  readonly control: ServerSession;
  readonly tables: readonly TableRef[];
  /** Beside a running stream: 1 and 2 above. */
  readonly beside: boolean;
}

export async function openConsistentView(options: ViewOptions): Promise<SourcePosition> {
  const { reader, control, beside } = options;
  await reader.query(
    `SET SESSION time_zone = '+00:00', SESSION sql_mode = '', SESSION net_write_timeout = ${YEAR_SECONDS}, SESSION wait_timeout = ${YEAR_SECONDS}`,
  );
  await reader.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  const lockWait = `SET SESSION lock_wait_timeout = ${beside ? BESIDE_LOCK_WAIT_SECONDS : LOCK_WAIT_SECONDS}`;
  await control.query(lockWait);
  if (beside) await reader.query(lockWait);
  try {
    if (reader.facts.flavor === 'mysql') return await mysqlView(options);
    return await mariadbView(options);
  } catch (error) {
    throw lockError(error);
  }
}

/** Keeps the definitions of the tables until the session's transaction ends; whoever writes rows does not notice. */
async function keepDefinitions(session: ServerSession, tables: readonly TableRef[]): Promise<void> {
  for (const table of tables) await session.query(`SELECT 1 FROM ${quoteTable(table)} LIMIT 0`);
}

async function mariadbView({ reader, control, tables, beside }: ViewOptions): Promise<SourcePosition> {
  await withoutLog(reader);
  if (beside) {
    await control.query('START TRANSACTION READ ONLY');
    await keepDefinitions(control, tables);
  }
  await beginView(reader);
  const rows = await reader.query("SHOW STATUS LIKE 'binlog_snapshot_%'");
  const status = new Map(rows.map((row) => [String(row['Variable_name']).toLowerCase(), row['Value'] ?? '']));
  const file = status.get('binlog_snapshot_file') ?? '';
  const offset = Number(status.get('binlog_snapshot_position') ?? 0);
  if (file === '') throw sourceErrors.SOURCE_BINLOG_OFF({ message: 'the server writes no binary log' });
  if (beside) {
    await keepDefinitions(reader, tables);
    await control.query('COMMIT');
  }
  return { file, offset, gtidSet: (await mariadbGtidSet(reader, { file, offset })) ?? '' };
}

async function mysqlView({ reader, control, tables, beside }: ViewOptions): Promise<SourcePosition> {
  const ways = beside ? [lockTables, lockServer] : [lockServer, lockTables];
  try {
    await holdWrites(control, tables, ways);
    await beginView(reader);
    const position = await currentPosition(control);
    if (beside) await keepDefinitions(reader, tables);
    return position;
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

type Lock = (control: ServerSession, tables: readonly TableRef[]) => Promise<unknown>;

const lockServer: Lock = async (control) => await control.query('FLUSH TABLES WITH READ LOCK');
const lockTables: Lock = async (control, tables) =>
  await control.query(`LOCK TABLES ${tables.map((ref) => `${quoteTable(ref)} READ`).join(', ')}`);

/** By the first way that is permitted. */
async function holdWrites(
  control: ServerSession,
  tables: readonly TableRef[],
  [first, second]: readonly Lock[],
): Promise<void> {
  try {
    await first?.(control, tables);
    return;
  } catch (error) {
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING')) throw error;
  }
  try {
    await second?.(control, tables);
  } catch (error) {
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING')) throw error;
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
    message: 'writes or DDL could not be held off: a long statement or transaction is in the way',
    cause: error,
  });
}
