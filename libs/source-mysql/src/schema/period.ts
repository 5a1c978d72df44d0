/**
 * Which columns of a system-versioned table (MariaDB) bound the time of a row: they tell its current rows from its history. Only current
 * rows are published, under the key that the table's owner gave: the server itself adds the end of the period to each key.
 * What the server logs: docs/spec/source.md, "System-versioned tables".
 */
import { TYPE } from '../binlog/column-types.ts';
import type { TableMapColumn } from '../binlog/table-map.ts';
import type { RowPeriod } from '../transcribe/current-rows.ts';

export interface Period {
  readonly start: string;
  readonly end: string;
  /** Columns that the server adds behind all others, and shows nowhere but in the log. */
  readonly isHidden: boolean;
}

/** That of a table whose definition names none. */
export const HIDDEN_PERIOD: Period = { start: 'row_start', end: 'row_end', isHidden: true };
export const HIDDEN_COLUMNS = 2;
const DIGITS = 6;

/** A key without the column that the server added to it. */
export function withoutEnd(key: readonly string[], period: Period | null): readonly string[] {
  return period === null ? key : key.filter((name) => name !== period.end);
}

/** undefined where the table map does not have the period's columns. */
export function rowPeriodOf(columns: readonly string[], period: Period): RowPeriod | undefined {
  const start = columns.indexOf(period.start);
  const end = columns.indexOf(period.end);
  const published = period.isHidden ? columns.length - HIDDEN_COLUMNS : columns.length;
  if (start < 0 || end < 0) return undefined;
  if (period.isHidden && (start !== published || end !== published + 1)) return undefined;
  return { end, published };
}

/** What the catalogue tells of now. */
interface TableNow {
  readonly period: Period | null;
  readonly columnNames: ReadonlySet<string>;
}

/**
 * The period of rows whose map names their columns, but not what they are for: the catalogue of now tells, where it still can. `unclear`: the
 * table may have been versioned then and is not any more, or its period has other names now; its rows cannot be told from its history.
 */
export function periodInLog(
  columns: readonly TableMapColumn[],
  key: readonly string[],
  now: TableNow | undefined,
): { readonly period: Period; readonly rows: RowPeriod } | 'unclear' | null {
  const names = columns.map((column) => column.name);
  const bounds = new Set(columns.filter(isBound).map((column) => column.name));
  // every key of a versioned table has one of the bounds in it
  const mayBe = (candidates: ReadonlySet<string>): boolean =>
    candidates.size >= 2 && (key.length === 0 || key.some((name) => candidates.has(name)));
  // of a table that is gone nothing stays wrong: its DROP or RENAME follows
  const period = now === undefined ? HIDDEN_PERIOD : now.period;
  if (period !== null) {
    const isTheirs = ({ name }: TableMapColumn): boolean => name === period.start || name === period.end;
    const bound = columns.filter((column) => isTheirs(column) && (isBound(column) || isTransactionBound(column)));
    const rows = rowPeriodOf(names, period);
    if (rows !== undefined && mayBe(new Set(bound.map(({ name }) => name)))) return { period, rows };
  }
  // columns that are there and bound nothing never did: a period ends with its columns
  const own = (name: string): boolean =>
    now?.columnNames.has(name) === true && name !== period?.start && name !== period?.end;
  return mayBe(new Set([...bounds].filter((name) => !own(name)))) ? 'unclear' : null;
}

function isBound({ type, size, nullable }: TableMapColumn): boolean {
  return type === TYPE.TIMESTAMP2 && size === DIGITS && !nullable;
}

/** Of a table that is versioned by transaction: the server logs statements that change it as text, and hardly ever its rows. */
function isTransactionBound({ type, unsigned, nullable }: TableMapColumn): boolean {
  return type === TYPE.LONGLONG && unsigned && !nullable;
}
