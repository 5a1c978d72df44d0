/** What became of tables that were captured once, and are not among those captured now. */
import { isMysyncError, type TableRef, tableRefKey } from '@mysync/core';
import type { ResolvedOptions } from '../options.ts';
import type { TableFate } from '../port.ts';
import { isGone, listTables } from '../schema/table-facts.ts';
import type { ServerSession } from '../server/session.ts';

/** The catalogue hides tables on which the user has no privilege: only the answer that there is no such table says that one is gone. */
export async function tableFates(
  session: ServerSession,
  options: ResolvedOptions,
  tables: readonly TableRef[],
): Promise<readonly TableFate[]> {
  const listed = new Set((await listTables(session, options.captures)).map(tableRefKey));
  const fates: TableFate[] = [];
  for (const table of tables) {
    if (!options.captures(table)) fates.push({ table, fate: 'left' });
    else if (listed.has(tableRefKey(table))) fates.push({ table, fate: 'there' });
    else fates.push(await askFate(session, table));
  }
  return fates;
}

async function askFate(session: ServerSession, table: TableRef): Promise<TableFate> {
  try {
    // one that can be read was made just now, is a view, or a listed one by another spelling
    return { table, fate: (await isGone(session, table)) ? 'gone' : 'there' };
  } catch (error) {
    if (!isMysyncError(error) || error.retriable) throw error;
    return { table, fate: 'uncertain', error };
  }
}
