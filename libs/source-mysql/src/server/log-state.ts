/** What the server tells of its log: where it begins and ends, whether a position is in it, and who reads it. */
import {
  type BinlogPosition,
  binlogFileNumber,
  formatBinlogPosition,
  isMysyncError,
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
  return { file, offset, gtidSet: await mariadbGtidSet(session, { file, offset }) };
}

/** MariaDB knows the GTID position of any place that begins an event. */
export async function mariadbGtidSet(session: ServerSession, position: BinlogPosition): Promise<string> {
  const row = await session.first('SELECT BINLOG_GTID_POS(?, ?) AS gtids', [position.file, position.offset]);
  return row?.['gtids'] ?? '';
}

/**
 * Throws when reading cannot go on from the position: SOURCE_BINLOG_PURGED when its file is gone,
 * SOURCE_POSITION_UNKNOWN when the log is another one.
 */
export async function checkPosition(session: ServerSession, position: BinlogPosition): Promise<void> {
  const files = await logFiles(session);
  const found = files.find((entry) => entry.file === position.file);
  const where = {
    position: formatBinlogPosition(position),
    oldest: files[0]?.file ?? 'none',
    newest: files.at(-1)?.file ?? 'none',
  };
  if (found !== undefined) {
    if (position.offset <= found.size) return;
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
