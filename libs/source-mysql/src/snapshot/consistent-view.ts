/**
 * A transaction that sees all tables as they were at one known position of the log.
 *
 * MariaDB tells the position of a consistent view by itself, without any lock, and rightly for all but XA: XA COMMIT is in the log, and counted in
 * that position, before the engine has committed (seen on 10.11: 49 times in 441 views beside 12 sessions). While it lasts, and as long as a transaction is
 * prepared, XA RECOVER lists it. So a view is taken as it is where none was listed before and no XA COMMIT was begun until after; else commits are
 * held off while the view is made (BACKUP STAGE BLOCK_COMMIT), or, where that is not permitted (RELOAD), by LOCK TABLES … READ. MySQL tells no
 * position: writes are held off while the view is made and the position is asked, for a few milliseconds: by FLUSH TABLES WITH READ LOCK, or, where that is not permitted (RELOAD),
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
import { READING_SESSION } from '../server/reading-session.ts';
import type { ServerSession } from '../server/session.ts';

/** How long to wait for running statements before giving up, so that nobody queues up behind our lock for long. */
const LOCK_WAIT_SECONDS = 20;
const BESIDE_LOCK_WAIT_SECONDS = 2;

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
  await reader.query(READING_SESSION);
  await reader.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  const seconds = beside ? BESIDE_LOCK_WAIT_SECONDS : LOCK_WAIT_SECONDS;
  const lockWait = `SET SESSION lock_wait_timeout = ${seconds}, SESSION innodb_lock_wait_timeout = ${seconds}`;
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

async function mariadbView(options: ViewOptions): Promise<SourcePosition> {
  const { reader, control } = options;
  await withoutLog(reader);
  const before = await xaActivity(control);
  if (before.open === 0) {
    const position = await freeView(options);
    if ((await xaActivity(control)).commits === before.commits) return position;
    await reader.query('COMMIT');
  }
  const release = await holdXaCommits(options);
  try {
    return await beginMariadbView(options);
  } finally {
    await release();
  }
}

/** Without holding off anybody. */
async function freeView(options: ViewOptions): Promise<SourcePosition> {
  const { control, tables, beside } = options;
  if (!beside) return await beginMariadbView(options);
  await control.query('START TRANSACTION READ ONLY');
  await keepDefinitions(control, tables);
  const position = await beginMariadbView(options);
  await control.query('COMMIT');
  return position;
}

async function beginMariadbView({ reader, tables, beside }: ViewOptions): Promise<SourcePosition> {
  await beginView(reader);
  const rows = await reader.query("SHOW STATUS LIKE 'binlog_snapshot_%'");
  const status = new Map(rows.map((row) => [String(row['Variable_name']).toLowerCase(), row['Value'] ?? '']));
  const file = status.get('binlog_snapshot_file') ?? '';
  const offset = Number(status.get('binlog_snapshot_position') ?? 0);
  if (file === '') throw sourceErrors.SOURCE_BINLOG_OFF({ message: 'the server writes no binary log' });
  if (beside) await keepDefinitions(reader, tables);
  return { file, offset, gtidSet: (await mariadbGtidSet(reader, { file, offset })) ?? '' };
}

interface XaActivity {
  /** Statements XA COMMIT that were ever begun. */
  readonly commits: string;
  /** Transactions that are prepared, or amid their XA COMMIT. */
  readonly open: number;
}

async function xaActivity(session: ServerSession): Promise<XaActivity> {
  const row = await session.first("SHOW GLOBAL STATUS LIKE 'Com_xa_commit'");
  return { commits: row?.['Value'] ?? '', open: (await session.query('XA RECOVER')).length };
}

/** Gives what lets them go on. */
async function holdXaCommits({ control, tables }: ViewOptions): Promise<() => Promise<unknown>> {
  try {
    return await blockCommits(control);
  } catch (error) {
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING') && !isLockTimeout(error)) throw error;
  }
  try {
    // beside the lock on the definition, which a transaction found after a crash may lack, InnoDB's own on the table
    await control.query('SET SESSION autocommit = 0, SESSION innodb_table_locks = ON');
    await lockTables(control, tables);
  } catch (error) {
    await control.query('SET SESSION autocommit = 1');
    if (!isMysyncError(error, 'SOURCE_GRANT_MISSING')) throw error;
    throw sourceErrors.SOURCE_SNAPSHOT_RESTART({
      message: 'XA transactions are open: without RELOAD or LOCK TABLES it cannot be told which of them the rows hold',
      remedy:
        'Waits for a moment without any. GRANT RELOAD on *.* or LOCK TABLES on the captured databases to the user.',
      cause: error,
    });
  }
  return async () => {
    await control.query('UNLOCK TABLES');
    await control.query('SET SESSION autocommit = 1');
  };
}

/** Waits for commits that have begun, XA COMMIT among them, and holds off others. Nobody else waits, but for DDL. */
async function blockCommits(control: ServerSession): Promise<() => Promise<unknown>> {
  const end = (): Promise<unknown> => control.query('BACKUP STAGE END');
  await control.query('BACKUP STAGE START');
  try {
    await control.query('BACKUP STAGE BLOCK_COMMIT');
    return end;
  } catch (error) {
    await end();
    throw error;
  }
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
  if (!isLockTimeout(error)) return error;
  return sourceErrors.SOURCE_SNAPSHOT_RESTART({
    message: 'writes or DDL could not be held off: a long statement or transaction is in the way',
    cause: error,
  });
}

function isLockTimeout(error: unknown): boolean {
  return serverErrorNumber(error) === SERVER_ERRORS.LOCK_WAIT_TIMEOUT;
}
