import type { TableRef } from '@mysync/core';
import type { ServerSession } from '../server/session.ts';

/** The server's guess of how many rows a table has; 0 when it has none. */
export async function estimateRows(session: ServerSession, table: TableRef): Promise<number> {
  const row = await session.first(
    'SELECT TABLE_ROWS AS estimate FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?',
    [table.database, table.table],
  );
  return Number(row?.['estimate'] ?? 0);
}
