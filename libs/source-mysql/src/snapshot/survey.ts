/** Which captured tables can be read now, and which cannot: for those who must not overlook one. */
import { isMysyncError, type MysyncError, type TableRef, type TableSchema, tableRefKey } from '@mysync/core';
import { type MysqlSourceOptions, type ResolvedOptions, resolveOptions } from '../options.ts';
import { listTables, requireGone } from '../schema/table-facts.ts';
import { openFirst } from '../server/first-host.ts';
import type { ServerSession } from '../server/session.ts';
import { describeTable } from './table-rows.ts';

/** Captured tables that are there, each in one of the two lists. */
interface TableSurvey {
  readonly schemas: readonly TableSchema[];
  /** Of which no row can be read as things are, with why. */
  readonly unreadable: readonly UnreadableTable[];
}

interface UnreadableTable {
  readonly table: TableRef;
  readonly error: MysyncError;
}

/**
 * The catalogue hides tables on which the user has no privilege at all: `known` ones that it does not list are asked for one by one. Throws where
 * the server does not answer.
 */
export async function surveyTables(given: MysqlSourceOptions, known: readonly TableRef[]): Promise<TableSurvey> {
  const options = resolveOptions(given);
  const session = await openFirst(options);
  try {
    const listed = await listTables(session, options.captures);
    const names = new Set(listed.map(tableRefKey));
    const hidden = known.filter((ref) => options.captures(ref) && !names.has(tableRefKey(ref)));
    const schemas: TableSchema[] = [];
    const unreadable: UnreadableTable[] = [];
    const look = async (table: TableRef, ask: () => Promise<void>): Promise<void> => {
      try {
        await ask();
      } catch (error) {
        if (!isMysyncError(error) || error.retriable) throw error;
        unreadable.push({ table, error });
      }
    };
    for (const table of listed) {
      await look(table, async () => {
        const schema = await readableSchema(session, table, options);
        if (schema !== undefined) schemas.push(schema);
      });
    }
    // one that can be read was made just now, is a view, or a listed one by another spelling
    for (const table of hidden) await look(table, () => requireGone(session, table));
    return { schemas, unreadable };
  } finally {
    session.close();
  }
}

/** undefined: there is no such table (any more). */
async function readableSchema(
  session: ServerSession,
  table: TableRef,
  options: ResolvedOptions,
): Promise<TableSchema | undefined> {
  const reading = await describeTable(session, table, options);
  // a user with another privilege than SELECT sees the table, and no row
  if (reading !== undefined) await requireGone(session, table);
  return reading?.plan.schema;
}
