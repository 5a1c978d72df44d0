/** What the user may do, tried where a statement tells, else read from its grants. */
import { type Finding, formatTableRef, isMysyncError, type TableRef } from '@mysync/core';
import { quoteTable } from '../server/dialect.ts';
import { currentPosition } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { finding } from './settings.ts';

interface Grants {
  /** Privileges in upper case, `ALL PRIVILEGES` among them, by what they are on: `*.*`, `` `db`.* `` or a table. */
  readonly on: ReadonlyMap<string, ReadonlySet<string>>;
  /** `'user'@'host'` as the server knows us. */
  readonly account: string;
}

async function readGrants(session: ServerSession): Promise<Grants> {
  const who = await session.first('SELECT CURRENT_USER() AS account');
  const account = (who?.['account'] ?? '').replace(/^(.*)@(.*)$/, "'$1'@'$2'");
  return { on: parseGrants((await session.query('SHOW GRANTS')).map((row) => Object.values(row)[0] ?? '')), account };
}

/** Lines of SHOW GRANTS. Grants of roles and on routines hold nothing for us. */
export function parseGrants(lines: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const on = new Map<string, Set<string>>();
  for (const line of lines) {
    const [, privileges, object] = /^GRANT (.+?) ON (\*\.\*|`.+`\.(?:\*|`.+`)) TO /i.exec(line) ?? [];
    if (privileges === undefined || object === undefined) continue;
    const granted = on.get(object) ?? new Set<string>();
    for (const privilege of privileges.split(',')) granted.add(privilege.trim().toUpperCase());
    on.set(object, granted);
  }
  return on;
}

function has(grants: Grants, ...anyOf: readonly string[]): boolean {
  return holds(grants.on.get('*.*'), anyOf);
}

function holds(granted: ReadonlySet<string> | undefined, anyOf: readonly string[]): boolean {
  return granted !== undefined && ['ALL PRIVILEGES', 'ALL', ...anyOf].some((privilege) => granted.has(privilege));
}

/** LOCK TABLES is granted globally or on databases, which may be named with the wildcards _ and %. */
export function mayLock(on: Grants['on'], database: string): boolean {
  for (const [object, granted] of on) {
    if (!holds(granted, ['LOCK TABLES'])) continue;
    if (object === '*.*') return true;
    const [, name] = /^`(.+)`\.\*$/.exec(object) ?? [];
    if (name !== undefined && databasePattern(name).test(database)) return true;
  }
  return false;
}

function databasePattern(name: string): RegExp {
  const source = name.replaceAll('``', '`').replace(/\\?[\s\S]/g, (part) => {
    if (part === '_') return '.';
    if (part === '%') return '.*';
    return part.slice(-1).replace(/[\\^$.*+?()[\]{}|/]/, '\\$&');
  });
  return new RegExp(`^${source}$`, 's');
}

/** `snapshot`: a start would take one. */
export async function checkGrants(
  session: ServerSession,
  tables: readonly TableRef[],
  snapshot: boolean,
): Promise<Finding[]> {
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
  const isMysql = session.facts.flavor === 'mysql';
  if ((isMysql || (await usesXa(session))) && !has(grants, 'RELOAD', 'FLUSH_TABLES')) {
    const unlocked = [...new Set(tables.map(({ database }) => database))].filter((name) => !mayLock(grants.on, name));
    // MariaDB needs it amid XA transactions only
    if (unlocked.length > 0) findings.push(snapshotDenied(grants.account, unlocked, snapshot, isMysql && snapshot));
  }
  if (findings.length === 0) findings.push(finding('ok', 'SOURCE_GRANT_MISSING', `${grants.account} has all grants`));
  return findings;
}

async function usesXa(session: ServerSession): Promise<boolean> {
  const row = await session.first("SHOW GLOBAL STATUS LIKE 'Com_xa_prepare'");
  return Number(row?.['Value'] ?? 0) > 0;
}

/** As `openConsistentView` (snapshot/) raises it. */
function snapshotDenied(account: string, databases: readonly string[], snapshot: boolean, isError: boolean): Finding {
  const what = snapshot
    ? 'which the snapshot at the next start needs'
    : 'which reading a table again (onUnseenChange) and a snapshot need; none will be taken at the next start';
  const locks = databases.map((name) => `GRANT LOCK TABLES ON \`${name.replaceAll('`', '``')}\`.* TO ${account};`);
  return finding(
    isError ? 'error' : 'warning',
    'SOURCE_SNAPSHOT_DENIED',
    `${account} may neither hold off writes (RELOAD) nor lock the captured tables (LOCK TABLES), ${what}`,
    `GRANT RELOAD ON *.* TO ${account}; or: ${locks.join(' ')}`,
  );
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
