/** Findings about the tables that are to be captured. */
import { type Finding, formatTableRef, type TableRef, tableRefKey } from '@mysync/core';
import type { ResolvedOptions } from '../options.ts';
import type { ColumnShape } from '../schema/column-shape.ts';
import { type ForeignKey, readForeignKeys } from '../schema/foreign-keys.ts';
import { readColumnShapes } from '../schema/info-schema.ts';
import { chooseKey, namedByHash, tableWithoutKey } from '../schema/key-choice.ts';
import type { Period } from '../schema/period.ts';
import { listTables, readTableFacts } from '../schema/table-facts.ts';
import { logsCascades, NATIVE_FOREIGN_KEYS, quoteTable } from '../server/dialect.ts';
import type { ServerSession } from '../server/session.ts';
import { checkTableImage } from './row-image.ts';
import { finding } from './settings.ts';

export async function checkTables(
  session: ServerSession,
  options: Pick<ResolvedOptions, 'captures' | 'tableRule'> & { readonly image: string; readonly resumes: boolean },
  tables: readonly TableRef[],
): Promise<Finding[]> {
  if (tables.length === 0) return [noTables(options.resumes)];
  const findings = [
    finding('ok', 'SOURCE_TABLES_NONE', `${tables.length} ${tables.length === 1 ? 'table is' : 'tables are'} captured`),
  ];
  for (const ref of tables) findings.push(...(await checkTable(session, options, ref)));
  if (logsCascades(session.facts, await session.variables([NATIVE_FOREIGN_KEYS]))) return findings;
  return [...findings, ...(await checkForeignKeys(session, options.captures))];
}

async function checkForeignKeys(session: ServerSession, captures: (ref: TableRef) => boolean): Promise<Finding[]> {
  const keys = await readForeignKeys(session);
  const findings: Finding[] = [];
  for (const { name, child, parent } of keys.filter((key) => captures(key.child))) {
    const message = `the foreign key ${name} lets the server change rows of ${formatTableRef(child)} with those of ${formatTableRef(parent)}, which the log does not show`;
    findings.push(finding('warning', 'SOURCE_CASCADE_SUSPECTED', message));
  }
  // MariaDB's log names the tables that are reached; MySQL's does not, and keys of tables that the user cannot see are not known
  if (findings.length === 0 || session.facts.flavor === 'mariadb') return findings;
  const user = await session.first('SELECT CURRENT_USER() AS account');
  const account = (user?.['account'] ?? '').replace(/^(.*)@(.*)$/, "'$1'@'$2'");
  const visible = new Set((await listTables(session, () => true)).map(tableRefKey));
  for (const ref of unseenParents(keys, captures, visible)) {
    const message = `the user cannot see ${formatTableRef(ref)}, to which a foreign key refers: what other tables change in it by foreign keys, and in captured tables with it, is not noticed`;
    findings.push(
      finding('warning', 'SOURCE_GRANT_MISSING', message, `GRANT SELECT ON ${quoteTable(ref)} TO ${account};`),
    );
  }
  return findings;
}

/** Of captured tables, and of those above them. */
function unseenParents(
  keys: readonly ForeignKey[],
  captures: (ref: TableRef) => boolean,
  visible: ReadonlySet<string>,
): readonly TableRef[] {
  const unseen = new Map<string, TableRef>();
  const above = new Set<string>();
  let found = keys.filter((key) => captures(key.child));
  while (found.length > 0) {
    const next = new Set<string>();
    for (const { parent } of found) {
      const name = tableRefKey(parent);
      if (!visible.has(name)) unseen.set(name, parent);
      else if (!above.has(name)) next.add(name);
      above.add(name);
    }
    found = keys.filter((key) => next.has(tableRefKey(key.child)));
  }
  return [...unseen.values()];
}

/** With a checkpoint the log has still to be read: for the rows of tables that were dropped meanwhile, and those of tables still to be made. */
function noTables(resumes: boolean): Finding {
  const none = 'no table that the user can see matches the patterns of the tables to capture';
  if (!resumes) return finding('error', 'SOURCE_TABLES_NONE', none);
  return finding(
    'warning',
    'SOURCE_TABLES_NONE',
    `${none}: the log is read on from the checkpoint, for what tables that are gone held and for tables made later`,
    'Nothing, where all of them were dropped; else correct the patterns, or let the user see the tables (GRANT SELECT).',
  );
}

function checkVersioning(name: string, period: Period | null, columns: readonly ColumnShape[]): Finding[] {
  if (period === null) return [];
  const code = 'SOURCE_TABLE_VERSIONED';
  if (columns.find((column) => column.name === period.end)?.base === 'bigint') {
    const message = `table ${name} is system-versioned by transaction: the server logs statements that change it as text, so that it is read again after each`;
    return [finding('warning', code, message)];
  }
  return [finding('ok', code, `table ${name} is system-versioned: its current rows are captured, not their history`)];
}

async function checkTable(
  session: ServerSession,
  options: Pick<ResolvedOptions, 'tableRule'> & { readonly image: string },
  ref: TableRef,
): Promise<Finding[]> {
  const facts = await readTableFacts(session, ref);
  if (facts === undefined) return [];
  const name = formatTableRef(ref);
  const columns = await readColumnShapes(session, ref);
  if (columns.unsupported !== undefined) {
    const { column, type } = columns.unsupported;
    return [finding('error', 'SOURCE_TYPE_UNSUPPORTED', `column ${name}.${column} has the type ${type}`)];
  }
  const key = chooseKey(columns.shapes, facts.primaryKey, facts.uniqueKeys);
  const rule = options.tableRule(ref);
  const { partitionBy = [] } = rule;
  const images = [
    ...checkVersioning(name, facts.period, columns.shapes),
    ...checkTableImage({ image: options.image, facts: session.facts, name, key, partitionBy }),
  ];
  if (key.rule === 'primary') return images;
  const code = 'SOURCE_TABLE_WITHOUT_KEY';
  const addKey = `ALTER TABLE ${quoteTable(ref)} ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY;`;
  if (key.rule === 'unique') {
    const message = `table ${name} has no primary key: rows are named by its unique key (${key.columns.join(', ')})`;
    return [...images, finding('warning', code, message, `Nothing, if the unique key stays; else ${addKey}`)];
  }
  if (rule.noKey === 'refuse') {
    const { remedy } = tableWithoutKey(ref) as { remedy?: string };
    return [
      finding('error', code, `table ${name} has neither a primary key nor a unique key over NOT NULL columns`, remedy),
    ];
  }
  return [
    ...images,
    finding('warning', code, namedByHash(ref), `${addKey} or do not capture it; leave it where all rows differ.`),
  ];
}
