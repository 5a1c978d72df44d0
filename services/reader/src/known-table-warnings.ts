/** Of tables that consumers may hold rows of, and that are not kept up: the same at a start and in a check. */
import { formatTableRef, type MysyncError, type TableRef } from '@mysync/core';
import { readerErrors } from './errors.ts';

/** So many are named; the log line of a start has them all. */
const NAMED = 5;

export function leftTables(tables: readonly string[]): MysyncError {
  const more = tables.length > NAMED ? ` and ${tables.length - NAMED} more` : '';
  const names = `${tables.slice(0, NAMED).join(', ')}${more}`;
  const message = `not captured any more: ${names}. What sinks hold of them stays as it is, and is not kept up`;
  return readerErrors.READER_TABLE_LEFT({ message });
}

export function uncertainTable({ table, error }: { table: TableRef; error: MysyncError }): MysyncError {
  const name = formatTableRef(table);
  const message = `sinks may hold rows of ${name}, and the user cannot see whether it is still there`;
  return readerErrors.READER_TABLE_UNCERTAIN({ message, cause: error, where: { table: name } });
}
