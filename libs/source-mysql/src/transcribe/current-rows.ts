/** Rows of a system-versioned table (MariaDB), which are logged with their history: what becomes of its current rows. */
import type { ColumnValue } from '@mysync/core';
import type { RowValues } from '@mysync/wire';
import type { RowsEvent } from '../binlog/rows-event.ts';

export interface RowPeriod {
  /** The column that tells until when the row was current. */
  readonly end: number;
  /** Columns from here on are hidden. */
  readonly published: number;
}

export interface LoggedChange {
  readonly operation: RowsEvent['operation'];
  readonly before: RowValues | null;
  readonly after: RowValues | null;
}

/**
 * What the server writes as the end of a current row: the highest TIMESTAMP(6) before and since MariaDB 11.5, and the highest number of a transaction.
 */
const ENDLESS: ReadonlySet<ColumnValue> = new Set([
  '2038-01-19 03:14:07.999999',
  '2106-02-07 06:28:15.999999',
  18_446_744_073_709_551_615n,
]);

/**
 * null: only history changed. `after` holds the end of the row, or takes it over from `before`. An image before without it (MINIMAL) is of a table
 * whose key holds the start instead: a name that no two rows have, current or not, so that a deletion of history names nothing that is there.
 */
export function currentChange({ end, published }: RowPeriod, change: LoggedChange): LoggedChange | null {
  const before = isCurrent(change.before, end, true) ? change.before.slice(0, published) : null;
  const after = isCurrent(change.after, end, false) ? change.after.slice(0, published) : null;
  if (after === null) return before === null ? null : { operation: 'delete', before, after };
  return { operation: before === null ? 'insert' : 'update', before, after };
}

function isCurrent(image: RowValues | null, end: number, unlessTold: boolean): image is RowValues {
  const value = image?.[end];
  return image !== null && (value === undefined ? unlessTold : ENDLESS.has(value));
}
