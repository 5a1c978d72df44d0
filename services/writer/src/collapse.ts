import type { ColumnValue } from '@mysync/core';
import type { RowStateChange } from './row-change.ts';

/** What one apply is made of. */
export interface CollapsedChanges {
  readonly changes: readonly RowStateChange[];
  /** Of each change, its record's key bytes as a latin1 string. */
  readonly keys: readonly string[];
  /** Of a change that was merged out of several: the offset of the first of them, by key. */
  readonly mergedFrom: ReadonlyMap<string, number>;
}

const NOTHING_MERGED: ReadonlyMap<string, number> = new Map();

/**
 * Collects a batch's changes, at most one per row key: the newest wins, since sinks store state.
 *
 * 1. A change takes the place of the last change of its key, so the batch stays in log order.
 * 2. A partial row (columns absent from its image) is merged over an earlier put of the same schema, never put in its
 *    place; over a delete, a withheld row, or a row of another schema it cannot be merged: `add` refuses it until the batch was taken.
 */
export class CollapsingBatch {
  #changes = new Map<string, RowStateChange>();
  #mergedFrom: Map<string, number> | null = null;

  get size(): number {
    return this.#changes.size;
  }

  /**
   * `key`: the record's key bytes as a latin1 string. False: not added, take and apply what is here first.
   */
  add(key: string, change: RowStateChange): boolean {
    const earlier = this.#changes.get(key);
    if (earlier === undefined) {
      this.#changes.set(key, change);
      return true;
    }
    let next = change;
    if (change.kind === 'put' && change.row.includes(undefined)) {
      if (earlier.kind !== 'put' || earlier.schema !== change.schema) return false;
      next = { ...change, row: mergeRows(earlier.row, change.row) };
      this.#mergedFrom ??= new Map();
      if (!this.#mergedFrom.has(key)) this.#mergedFrom.set(key, earlier.offset);
    } else {
      this.#mergedFrom?.delete(key);
    }
    this.#changes.delete(key);
    this.#changes.set(key, next);
    return true;
  }

  /** The changes in order; the batch is empty afterwards. */
  take(): CollapsedChanges {
    const changes = [...this.#changes.values()];
    const keys = [...this.#changes.keys()];
    const mergedFrom = this.#mergedFrom ?? NOTHING_MERGED;
    this.#changes = new Map();
    this.#mergedFrom = null;
    return { changes, keys, mergedFrom };
  }
}

function mergeRows(earlier: readonly ColumnValue[], later: readonly ColumnValue[]): ColumnValue[] {
  return later.map((value, index) => (value === undefined ? earlier[index] : value));
}
