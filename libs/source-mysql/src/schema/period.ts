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
/** Digits of the seconds of a bound. */
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

/**
 * Whether a table map, which names its columns but not what they are for, may be that of a table with a period: two TIMESTAMP(6) NOT NULL,
 * of which each of its keys has one. Tables that are versioned by transaction numbers have no rows in the log.
 */
export function mayHavePeriod(columns: readonly TableMapColumn[], key: readonly string[]): boolean {
  const bounds = columns.filter(isBound).map((column) => column.name);
  return bounds.length >= 2 && (key.length === 0 || key.some((name) => bounds.includes(name)));
}

/** Whether an ALTER TABLE whose words these are, in lower case, leaves alone which columns bound a table's rows, if it is followed or not. */
export function leavesPeriod(words: ReadonlySet<string>, period: Period | null): boolean {
  if (PERIOD_WORDS.some((word) => words.has(word))) return false;
  return period === null || !(words.has(period.start.toLowerCase()) || words.has(period.end.toLowerCase()));
}

const PERIOD_WORDS = ['versioning', 'system_time', 'row', 'period'] as const;

function isBound({ type, size, nullable }: TableMapColumn): boolean {
  return type === TYPE.TIMESTAMP2 && size === DIGITS && !nullable;
}
