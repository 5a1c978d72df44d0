/** Findings about the tables that are to be captured. */
import { type Finding, formatTableRef, type TableRef } from '@mysync/core';
import type { ResolvedOptions } from '../options.ts';
import { readColumnShapes } from '../schema/info-schema.ts';
import { chooseKey, tableWithoutKey } from '../schema/key-choice.ts';
import { readCascades, readTableFacts } from '../schema/table-facts.ts';
import type { ServerSession } from '../server/session.ts';
import { finding } from './settings.ts';

export async function checkTables(
  session: ServerSession,
  options: Pick<ResolvedOptions, 'captures' | 'tableRule' | 'onCascade'>,
  tables: readonly TableRef[],
): Promise<Finding[]> {
  if (tables.length === 0) {
    return [
      finding(
        'error',
        'SOURCE_TABLES_NONE',
        'no table that the user can see matches the patterns of the tables to capture',
      ),
    ];
  }
  const findings = [finding('ok', 'SOURCE_TABLES_NONE', `${tables.length} tables are captured`)];
  for (const ref of tables) findings.push(...(await checkTable(session, options, ref)));
  if (logsCascades(session)) return findings;
  for (const { child, parent } of await readCascades(session)) {
    if (!options.captures(child)) continue;
    const level = 'warning';
    const message = `a foreign key lets the server change rows of ${formatTableRef(child)} with those of ${formatTableRef(parent)}, which the log may not show`;
    findings.push(finding(level, 'SOURCE_CASCADE_SUSPECTED', message));
  }
  return findings;
}

/** Newer versions of MySQL log the rows that a foreign key changes (seen on 9.7). */
function logsCascades(session: ServerSession): boolean {
  return session.facts.flavor === 'mysql' && session.facts.versionNumber >= 90_700;
}

async function checkTable(
  session: ServerSession,
  options: Pick<ResolvedOptions, 'tableRule'>,
  ref: TableRef,
): Promise<Finding[]> {
  const facts = await readTableFacts(session, ref);
  if (facts === undefined) return [];
  const name = formatTableRef(ref);
  if (facts.versioned) return [finding('error', 'SOURCE_TABLE_VERSIONED', `table ${name} is system-versioned`)];
  const columns = await readColumnShapes(session, ref);
  if (columns.unsupported !== undefined) {
    const { column, type } = columns.unsupported;
    return [finding('error', 'SOURCE_TYPE_UNSUPPORTED', `column ${name}.${column} has the type ${type}`)];
  }
  const key = chooseKey(columns.shapes, facts.primaryKey, facts.uniqueKeys);
  if (key.rule === 'primary') return [];
  const message = `table ${name} has no primary key: rows are named by ${key.rule === 'unique' ? `its unique key (${key.columns.join(', ')})` : 'the hash of the whole row'}`;
  const refused = key.rule === 'row-hash' && options.tableRule(ref).noKey === 'refuse';
  const remedy = (tableWithoutKey(ref) as { remedy?: string }).remedy ?? '';
  return [
    refused
      ? finding('error', 'SOURCE_TABLE_WITHOUT_KEY', `table ${name} has no key`, remedy)
      : finding('warning', 'SOURCE_TABLE_WITHOUT_KEY', message, remedy),
  ];
}
