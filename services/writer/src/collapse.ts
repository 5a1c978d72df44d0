import type { ColumnValue } from '@mysync/core';
import type { DeleteChange, PutChange } from '@mysync/sink';

/**
 * Collects a batch's changes, at most one per row key: the newest wins, since sinks store state.
 *
 * 1. A change takes the place of the last change of its key, so the batch stays in log order.
 * 2. A partial row (columns absent from its image) is merged over an earlier put of the same schema, never put in its
 *    place; over a delete or a row of another schema it cannot be merged: `add` refuses it until the batch was taken.
 */
export class CollapsingBatch {
  #changes = new Map<string, PutChange | DeleteChange>();

  get size(): number {
    return this.#changes.size;
  }

  /**
   * `key`: the record's key bytes as a latin1 string. False: not added, take and apply what is here first.
   */
  add(key: string, change: PutChange | DeleteChange): boolean {
    const earlier = this.#changes.get(key);
    if (earlier === undefined) {
      this.#changes.set(key, change);
      return true;
    }
    let next = change;
    if (change.kind === 'put' && change.row.includes(undefined)) {
      if (earlier.kind !== 'put' || earlier.schema !== change.schema) return false;
      next = { ...change, row: mergeRows(earlier.row, change.row) };
    }
    this.#changes.delete(key);
    this.#changes.set(key, next);
    return true;
  }

  /** The changes in order; the batch is empty afterwards. */
  take(): (PutChange | DeleteChange)[] {
    const changes = [...this.#changes.values()];
    this.#changes = new Map();
    return changes;
  }
}

function mergeRows(earlier: readonly ColumnValue[], later: readonly ColumnValue[]): ColumnValue[] {
  return later.map((value, index) => (value === undefined ? earlier[index] : value));
}
