/** What the server tells of its log: where it begins and ends, whether a position is in it, and who reads it. */
import {
  type BinlogPosition,
  binlogFileNumber,
  formatBinlogPosition,
  type GtidSet,
  isMysyncError,
  parseGtidSet,
  type SourcePosition,
} from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import { showLogStatus, showReplicas } from './dialect.ts';
import type { ServerSession } from './session.ts';

export interface LogFile {
  readonly file: string;
  readonly size: number;
}

export async function logFiles(session: ServerSession): Promise<readonly LogFile[]> {
  const rows = await session.query('SHOW BINARY LOGS');
  return rows.map((row) => ({ file: row['Log_name'] ?? '', size: Number(row['File_size']) }));
}

/** The newest position, with the GTID set there. Throws SOURCE_BINLOG_OFF when nothing is logged. */
export async function currentPosition(session: ServerSession): Promise<SourcePosition> {
  const status = await session.first(showLogStatus(session.facts));
  if (status === undefined) throw sourceErrors.SOURCE_BINLOG_OFF({ message: 'the server writes no binary log' });
  const file = status['File'] ?? '';
  const offset = Number(status['Position']);
  if (session.facts.flavor === 'mysql') {
    return { file, offset, gtidSet: (status['Executed_Gtid_Set'] ?? '').replace(/\s/g, '').toLowerCase() };
  }
  return { file, offset, gtidSet: (await mariadbGtidSet(session, { file, offset })) ?? '' };
}

/** MariaDB knows the GTID position of any place that begins an event; null elsewhere. */
export async function mariadbGtidSet(session: ServerSession, position: BinlogPosition): Promise<string | null> {
  const row = await session.first('SELECT BINLOG_GTID_POS(?, ?) AS gtids', [position.file, position.offset]);
  return row?.['gtids'] ?? null;
}

/**
 * Throws when reading cannot go on from the position: SOURCE_BINLOG_PURGED when its file is gone,
 * SOURCE_POSITION_UNKNOWN when the log is another one. Whether the file is the one that was read before, its first event tells beside this.
 */
export async function checkPosition(session: ServerSession, position: SourcePosition): Promise<void> {
  const files = await logFiles(session);
  const found = files.find((entry) => entry.file === position.file);
  const where = {
    position: formatBinlogPosition(position),
    oldest: files[0]?.file ?? 'none',
    newest: files.at(-1)?.file ?? 'none',
  };
  if (found !== undefined) {
    if (position.offset <= found.size) {
      await checkGtids(session, position, where);
      return;
    }
    throw sourceErrors.SOURCE_POSITION_UNKNOWN({
      message: `file ${position.file} has only ${found.size} bytes: the log was reset`,
      where,
    });
  }
  const oldest = files[0];
  if (oldest !== undefined && isOlder(position.file, oldest.file)) {
    throw sourceErrors.SOURCE_BINLOG_PURGED({ message: `file ${position.file} of the log is gone`, where });
  }
  throw sourceErrors.SOURCE_POSITION_UNKNOWN({ message: `the log has no file ${position.file}`, where });
}

/** The same file name and an offset that exists are not enough: a log that was reset grows past our offset again. */
async function checkGtids(
  session: ServerSession,
  position: SourcePosition,
  where: Readonly<Record<string, string>>,
): Promise<void> {
  if (position.gtidSet === '') return;
  const { flavor } = session.facts;
  const ours = parseGtidSet(flavor, position.gtidSet);
  if (flavor === 'mariadb') {
    // it answers NULL for places beyond 32 bits: those are told by the time of their file alone
    if (position.offset > 0xffff_ffff) return;
    const there = await mariadbGtidSet(session, position);
    if (there !== null && ours.equals(parseGtidSet(flavor, there))) return;
    const found = there === null ? 'no event begins at our position' : `at our position it has got to '${there}'`;
    throw sourceErrors.SOURCE_POSITION_UNKNOWN({
      message: `the log is another one: ${found}, we had read up to '${ours}'`,
      where,
    });
  }
  const known = await mysqlGtids(session);
  if (!known.contains(ours)) {
    throw sourceErrors.SOURCE_POSITION_UNKNOWN({
      message: `the log is another one: the server does not know the transactions ${ours.subtract(known)}, which were read from it`,
      where,
    });
  }
  const before = parseGtidSet(flavor, await previousGtids(session, position.file));
  if (!ours.contains(before)) {
    throw sourceErrors.SOURCE_POSITION_UNKNOWN({
      message: `the log is another one: before our file it has the transactions ${before.subtract(ours)}, which were never read`,
      where,
    });
  }
}

/**
 * Executed or being committed: what is in the log, and therefore with us, may wait for its commit (for replicas that have to confirm it, for
 * instance) and is owned until then. Asked for in this order it is in one of them.
 */
async function mysqlGtids(session: ServerSession): Promise<GtidSet> {
  const owned = (await session.first('SELECT @@GLOBAL.gtid_owned AS gtids'))?.['gtids'] ?? '';
  const known = parseGtidSet('mysql', owned.replace(/#\d+/g, ''));
  known.addAll((await session.first('SELECT @@GLOBAL.gtid_executed AS gtids'))?.['gtids'] ?? '');
  return known;
}

/** What was executed before the file was begun: its second event. */
async function previousGtids(session: ServerSession, file: string): Promise<string> {
  const events = await session.query('SHOW BINLOG EVENTS IN ? LIMIT 3', [file]);
  return events.find((event) => event['Event_type'] === 'Previous_gtids')?.['Info'] ?? '';
}

function isOlder(file: string, oldest: string): boolean {
  const base = (name: string): string => name.slice(0, name.lastIndexOf('.'));
  return base(file) === base(oldest) && binlogFileNumber(file) < binlogFileNumber(oldest);
}

export interface ConnectedReplica {
  readonly serverId: number;
  readonly host: string;
}

/** How SHOW REPLICAS names the reader of a source; the server keeps 60 bytes. */
export function replicaName(source: string): string {
  return `mysync-${source}`.slice(0, 60);
}

/** The replicas that are connected; undefined when we may not see them. */
export async function connectedReplicas(session: ServerSession): Promise<readonly ConnectedReplica[] | undefined> {
  try {
    const rows = await session.query(showReplicas(session.facts));
    return rows.map((row) => ({ serverId: Number(row['Server_Id'] ?? row['Server_id']), host: row['Host'] ?? '' }));
  } catch (error) {
    if (isMysyncError(error, 'SOURCE_GRANT_MISSING')) return undefined;
    throw error;
  }
}

export async function ownServerId(session: ServerSession): Promise<number> {
  const row = await session.first('SELECT @@GLOBAL.server_id AS id');
  return Number(row?.['id']);
}
