import type { TableRef } from '@mysync/core';

/** `unsettled`: the row changed whenever it was looked at, and the sink's record did not. */
export type DifferenceKind = 'different' | 'missing' | 'extra' | 'unsettled';

export interface Difference {
  readonly kind: DifferenceKind;
  /** The record's name in the sink; table and key where the sink can store the row nowhere. */
  readonly target: string;
  /** What differs: names as the sink has them, with a word behind them where the name alone does not say it. Empty but for `different` and `unsettled`. */
  readonly fields: readonly string[];
  /** Of the stored record, decimal digits; null where there is none. */
  readonly version: string | null;
  readonly repaired: boolean;
  /** What keeps it from being right, where that can be told. */
  readonly hindrance: Hindrance | null;
}

export type Hindrance =
  /** The sink cannot take the row, or let it go, as things are. */
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string }
  /** The row's changes are set aside, and wait there; a repair leaves it alone. Place of the entry, and why it was made. */
  | {
      readonly kind: 'parked';
      readonly partition: number;
      readonly offset: number;
      readonly code: string;
      readonly reason: string;
    };

export interface TableReport {
  readonly table: TableRef;
  /** Of the source, compared. */
  readonly rows: number;
  readonly equal: number;
  readonly different: number;
  readonly missing: number;
  readonly extra: number;
  /** Not there any more by the rule's time to live: as it should be. */
  readonly expired: number;
  /** Changed whenever they were looked at, in the sink too: hot rows, of which nothing more can be said. */
  readonly changing: number;
  readonly unsettled: number;
  readonly repaired: number;
  /** Extra or unsettled, and not mended: rows among them may be gone from the source. */
  readonly unremoved: number;
  readonly seconds: number;
  /** The first ones, at most `MAX_EXAMPLES`. */
  readonly differences: readonly Difference[];
}

export const MAX_EXAMPLES = 1000;

/** Nothing is wrong (any more). */
export function isClean(report: TableReport): boolean {
  return report.different + report.missing + report.extra + report.unsettled === report.repaired;
}
