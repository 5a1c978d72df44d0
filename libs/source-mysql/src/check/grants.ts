/** What the user may do, tried where a statement tells, else read from its grants. */
import { type Finding, formatTableRef, isMysyncError, type TableRef } from '@mysync/core';
import { quoteTable } from '../server/dialect.ts';
import { currentPosition } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { finding } from './settings.ts';

interface Grants {
  /** Privileges on *.*, in upper case; `ALL PRIVILEGES` among them. */
  readonly global: ReadonlySet<string>;
  /** `'user'@'host'` as the server knows us. */
  readonly account: string;
}

async function readGrants(session: ServerSession): Promise<Grants> {
  const who = await session.first('SELECT CURRENT_USER() AS account');
  const account = (who?.['account'] ?? '').replace(/^(.*)@(.*)$/, "'$1'@'$2'");
  const global = new Set<string>();
  for (const row of await session.query('SHOW GRANTS')) {
    const match = /^GRANT (.*) ON \*\.\* TO /i.exec(Object.values(row)[0] ?? '');
    for (const privilege of match?.[1]?.split(',') ?? []) global.add(privilege.trim().toUpperCase());
  }
  return { global, account };
}

function has(grants: Grants, ...anyOf: readonly string[]): boolean {
  return ['ALL PRIVILEGES', 'ALL', ...anyOf].some((privilege) => grants.global.has(privilege));
}

export async function checkGrants(session: ServerSession, tables: readonly TableRef[]): Promise<Finding[]> {
  const grants = await readGrants(session);
  const findings: Finding[] = [];
  const missing = (what: string, privilege: string, on = '*.*'): Finding =>
    finding(
      'error',
      'SOURCE_GRANT_MISSING',
      `${grants.account} may not ${what}`,
      `GRANT ${privilege} ON ${on} TO ${grants.account};`,
    );
  if (!has(grants, 'REPLICATION SLAVE')) findings.push(missing('read the log', 'REPLICATION SLAVE'));
  const client = session.facts.flavor === 'mariadb' ? 'BINLOG MONITOR' : 'REPLICATION CLIENT';
  if (!(await permitted(() => currentPosition(session))))
    findings.push(missing('ask for the position of the log', client));
  for (const ref of tables) {
    if (await permitted(() => session.query(`SELECT 1 FROM ${quoteTable(ref)} LIMIT 0`))) continue;
    findings.push(missing(`read ${formatTableRef(ref)}`, 'SELECT', quoteTable(ref)));
  }
  if (session.facts.flavor === 'mysql' && !has(grants, 'RELOAD', 'BACKUP_ADMIN')) {
    findings.push({
      ...missing('take a consistent snapshot', 'RELOAD'),
      level: 'warning',
      code: 'SOURCE_SNAPSHOT_DENIED',
    });
  }
  if (findings.length === 0) findings.push(finding('ok', 'SOURCE_GRANT_MISSING', `${grants.account} has all grants`));
  return findings;
}

async function permitted(question: () => Promise<unknown>): Promise<boolean> {
  try {
    await question();
    return true;
  } catch (error) {
    if (isMysyncError(error, 'SOURCE_GRANT_MISSING')) return false;
    if (isMysyncError(error, 'SOURCE_BINLOG_OFF')) return true;
    throw error;
  }
}
