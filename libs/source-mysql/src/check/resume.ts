/** Whether the log still holds the place where a start would go on. */
import { type Finding, formatBinlogPosition, isMysyncError, type SourcePosition } from '@mysync/core';
import { fileCreated } from '../connection/file-created.ts';
import { fileReplaced } from '../errors.ts';
import type { ResolvedOptions } from '../options.ts';
import type { StartIntent } from '../port.ts';
import { checkPosition } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { finding } from './settings.ts';

/** Positions of another server are not looked for: that it is another one is what stands in the way. */
export async function checkResume(
  source: ResolvedOptions,
  session: ServerSession,
  resume: StartIntent['resume'],
): Promise<Finding[]> {
  if (resume === null || (resume.serverUuid !== null && resume.serverUuid !== session.facts.uuid)) return [];
  const { position } = resume;
  try {
    await checkPosition(session, position);
    await checkFile(source, session, position);
  } catch (error) {
    // What the grants or the settings refuse is told by their own findings.
    if (isMysyncError(error, 'SOURCE_GRANT_MISSING') || isMysyncError(error, 'SOURCE_QUERY_FAILED')) return [];
    if (!isMysyncError(error, 'SOURCE_BINLOG_PURGED') && !isMysyncError(error, 'SOURCE_POSITION_UNKNOWN')) throw error;
    const { code, message, remedy, where } = error;
    const held = where['oldest'] === undefined ? '' : `; the log holds ${where['oldest']} to ${where['newest']}`;
    return [
      { level: 'error', code, message: `${message}: reading would go on at ${where['position']}${held}`, remedy },
    ];
  }
  const message = `the log holds the position ${formatBinlogPosition(position)}`;
  return [finding('ok', 'SOURCE_POSITION_UNKNOWN', message)];
}

/** The file of that name is the one that was read before. */
async function checkFile(source: ResolvedOptions, session: ServerSession, position: SourcePosition): Promise<void> {
  const { fileCreated: before } = position;
  if (before === undefined) return;
  const now = await fileCreated(source, session, position);
  if (now !== undefined && now !== before) throw fileReplaced(formatBinlogPosition(position), before, now);
}
