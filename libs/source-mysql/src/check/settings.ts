/** Findings about the server's settings. The code of an error finding is that of the error a start raises. */
import type { Finding } from '@mysync/core';
import { sourceErrors } from '../errors.ts';
import type { ServerFacts } from '../server/session.ts';

type Code = keyof typeof sourceErrors.entries;

/** Every setting that the checks below read. */
export const SETTINGS = [
  'log_bin',
  'server_id',
  'binlog_format',
  'binlog_row_image',
  'binlog_row_metadata',
  'binlog_order_commits',
  'binlog_expire_logs_seconds',
  'expire_logs_days',
  'gtid_mode',
  'gtid_strict_mode',
] as const;

const DAY_SECONDS = 86_400;
/** A reader that stands still over a long weekend still finds its place. */
const SHORTEST_RETENTION_SECONDS = 3 * DAY_SECONDS;

export function finding(level: Finding['level'], code: Code, message: string, remedy?: string): Finding {
  return { level, code, message, remedy: remedy ?? (level === 'ok' ? '' : sourceErrors.entries[code].remedy) };
}

/** `settings`: global variables by name; missing ones are unknown to the server. */
export function checkSettings(
  facts: ServerFacts,
  settings: ReadonlyMap<string, string>,
  rowMetadata: 'full' | 'history',
): Finding[] {
  const oldest = facts.flavor === 'mysql' ? 80_001 : 100_500;
  if (facts.versionNumber < oldest) {
    return [finding('error', 'SOURCE_VERSION_UNSUPPORTED', `the server is ${facts.version}`)];
  }
  const findings = [finding('ok', 'SOURCE_VERSION_UNSUPPORTED', `the server is ${facts.flavor} ${facts.version}`)];
  const value = (name: string): string => (settings.get(name) ?? '').toUpperCase();
  const want = (name: string, wanted: string, code: Code): void => {
    const is = value(name);
    findings.push(finding(is === wanted ? 'ok' : 'error', code, `${name} is ${is === '' ? 'not set' : is}`));
  };
  want('log_bin', 'ON', 'SOURCE_BINLOG_OFF');
  want('binlog_format', 'ROW', 'SOURCE_FORMAT_NOT_ROW');
  if (rowMetadata === 'full') want('binlog_row_metadata', 'FULL', 'SOURCE_ROW_METADATA_NOT_FULL');
  else {
    const is = value('binlog_row_metadata');
    const message =
      is === 'FULL'
        ? 'binlog_row_metadata is FULL'
        : `binlog_row_metadata is ${is}: definitions are those of the schema history (rowMetadata: history); FULL is the safer way`;
    findings.push(finding(is === 'FULL' ? 'ok' : 'warning', 'SOURCE_ROW_METADATA_NOT_FULL', message));
  }
  if (settings.has('binlog_order_commits')) want('binlog_order_commits', 'ON', 'SOURCE_COMMIT_ORDER_OFF');
  if (facts.flavor === 'mysql') {
    const is = value('gtid_mode');
    findings.push(finding(is === 'ON' ? 'ok' : 'warning', 'SOURCE_GTID_OFF', `gtid_mode is ${is}`));
  } else {
    const is = value('gtid_strict_mode');
    findings.push(finding(is === 'ON' ? 'ok' : 'warning', 'SOURCE_GTID_STRICT_OFF', `gtid_strict_mode is ${is}`));
  }
  findings.push(checkRetention(settings));
  return findings;
}

/** 0 keeps files for ever. */
function checkRetention(settings: ReadonlyMap<string, string>): Finding {
  const seconds = Number(settings.get('binlog_expire_logs_seconds') ?? 0);
  const kept = seconds > 0 ? seconds : Number(settings.get('expire_logs_days') ?? 0) * DAY_SECONDS;
  if (kept === 0)
    return finding('ok', 'SOURCE_RETENTION_SHORT', 'files of the log are kept until somebody purges them');
  const hours = Math.round(kept / 3600);
  const level = kept < SHORTEST_RETENTION_SECONDS ? 'warning' : 'ok';
  return finding(level, 'SOURCE_RETENTION_SHORT', `files of the log are kept for ${hours} hours`);
}
