/** The captured tables as the server has them now: what the mappings are checked against. */
import type { TableSchema } from '@mysync/core';
import type { ResolvedOptions } from '../options.ts';
import type { ServerSession } from '../server/session.ts';
import { readColumnShapes } from './info-schema.ts';
import { buildSchema, chooseKey } from './key-choice.ts';
import { listTables, readTableFacts } from './table-facts.ts';

/** Tables that cannot be captured are left out: `check` says why. */
export async function currentSchemas(
  session: ServerSession,
  options: Pick<ResolvedOptions, 'captures' | 'tableRule'>,
): Promise<readonly TableSchema[]> {
  const schemas: TableSchema[] = [];
  for (const ref of await listTables(session, options.captures)) {
    const facts = await readTableFacts(session, ref);
    if (facts === undefined) continue;
    const { shapes, unsupported } = await readColumnShapes(session, ref);
    if (unsupported !== undefined) continue;
    const key = chooseKey(shapes, facts.primaryKey, facts.uniqueKeys);
    const rule = options.tableRule(ref);
    if (key.rule === 'row-hash' && rule.noKey === 'refuse') continue;
    schemas.push(buildSchema(ref, shapes, key, rule));
  }
  return schemas;
}
