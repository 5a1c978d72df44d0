/**
 * The other half of the sink port: what stands in the store, for `mysync verify`. Reads change nothing; `rewrite` and `remove` go
 * through the same version guard as any apply, and never touch a marker, so they disturb no writer.
 */
import type { ColumnValue, RowKey, TableRef, TableSchema } from '@mysync/core';
import type { Refusal, StreamRef } from './port.ts';

/** A row as the source has it now. Its schema was prepared. */
export interface InspectedRow {
  readonly schema: TableSchema;
  readonly key: RowKey;
  /** In the order of `schema.columns`; whole. */
  readonly row: readonly ColumnValue[];
}

export interface RowVerdict {
  /** `expired`: not there, and the rule gives its rows a time to live. */
  readonly state: 'equal' | 'different' | 'missing' | 'expired';
  /** Of the stored record; null when there is none, or when nobody looked at it (equal). */
  readonly version: bigint | null;
  /** What differs: names as the store has them, with a word behind them where the name alone does not say it. Never empty where the state is `different`. */
  readonly fields: readonly string[];
}

export interface StoredRecord {
  /** Names the record in the store, within the table: a key, a document's id. */
  readonly target: string;
  readonly version: bigint;
}

export interface SinkInspector {
  /** Where the row is stored. Throws a catalogue error when it can be stored nowhere. */
  targetOf(row: InspectedRow): string;

  /** In order. Checksums first, where the store can make them; the rows themselves only where those differ. */
  compare(rows: readonly InspectedRow[], signal: AbortSignal): Promise<readonly RowVerdict[]>;

  /** All records of a table that came by these streams, in pages, in no order; a record may come twice. */
  records(table: TableRef, streams: readonly StreamRef[], signal: AbortSignal): AsyncIterable<readonly StoredRecord[]>;

  /** In order; null where nothing (more) is stored. */
  find(table: TableRef, targets: readonly string[], signal: AbortSignal): Promise<readonly (StoredRecord | null)[]>;

  /**
   * Writes rows under this version, also over a record that has it already: a newer record stays as it is. Gives those that the store can never take as they are, by their place
   * in `rows`; all others are there.
   */
  rewrite(
    stream: StreamRef,
    rows: readonly InspectedRow[],
    version: bigint,
    signal: AbortSignal,
  ): Promise<readonly Refusal[]>;

  /** Deletes records under this version, also one that has it already: a newer record stays as it is. Gives those that could not go, by their place in `targets`. */
  remove(
    table: TableRef,
    targets: readonly string[],
    version: bigint,
    signal: AbortSignal,
  ): Promise<readonly Refusal[]>;
}
