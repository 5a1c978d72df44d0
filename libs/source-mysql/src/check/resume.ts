/** Whether the log still holds the place where a start would go on. */
import { type Finding, formatBinlogPosition, isMysyncError } from '@mysync/core';
import type { StartIntent } from '../port.ts';
import { checkPosition } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { finding } from './settings.ts';

/** Positions of another server are not looked for: that it is another one is what stands in the way. */
export async function checkResume(session: ServerSession, resume: StartIntent['resume']): Promise<Finding[]> {
  if (resume === null || (resume.serverUuid !== null && resume.serverUuid !== session.facts.uuid)) return [];
  try {
    await checkPosition(session, resume.position);
  } catch (error) {
    // What the grants or the settings refuse is told by their own findings.
    if (isMysyncError(error, 'SOURCE_GRANT_MISSING') || isMysyncError(error, 'SOURCE_QUERY_FAILED')) return [];
    if (!isMysyncError(error, 'SOURCE_BINLOG_PURGED') && !isMysyncError(error, 'SOURCE_POSITION_UNKNOWN')) throw error;
    const { code, message, remedy, where } = error;
    const place = `reading would go on at ${where['position']}; the log holds ${where['oldest']} to ${where['newest']}`;
    return [{ level: 'error', code, message: `${message}: ${place}`, remedy }];
  }
  const message = `the log holds the position ${formatBinlogPosition(resume.position)}`;
  return [finding('ok', 'SOURCE_POSITION_UNKNOWN', message)];
}
