/** At `atMs` the log ended at `offset`: what lies from there on was stored later. */
interface Mark {
  readonly offset: number;
  readonly atMs: number;
}

const MOST_MARKS = 8;

/**
 * Knows since when everything that a sink has not yet read was stored.
 *
 * A deletion stays in a compacted log for `deleteRetentionMs`. Where offsets are missing and what lies there may have been stored longer
 * ago than that, a deletion may be among them, and its row would stay in the sink for ever (docs/adr/0100).
 *
 * 1. `unreadSince` is never later than the truth: a mark counts only for those who have read up to its offset.
 * 2. A few marks are enough: the first ones stay until they are reached, the last one moves with the log's end.
 */
export class DeletionWatch {
  readonly #marks: Mark[];

  /** `sinceMs`: when everything from `nextOffset` on was stored, at the earliest. */
  constructor(nextOffset: number, sinceMs: number) {
    this.#marks = [{ offset: nextOffset, atMs: sinceMs }];
  }

  /** The log ended at `offset` at that time. */
  endSeen(offset: number, atMs: number): void {
    const last = this.#marks.at(-1);
    if (last !== undefined && (offset < last.offset || atMs <= last.atMs)) return;
    const moves = this.#marks.length > 1 && (this.#marks.length === MOST_MARKS || last?.offset === offset);
    if (moves) this.#marks.pop();
    this.#marks.push({ offset, atMs });
  }

  /** The time, in milliseconds since 1970, after which everything from `nextOffset` on was stored. */
  unreadSince(nextOffset: number): number {
    return (this.#marks.findLast((mark) => mark.offset <= nextOffset) ?? this.#marks[0])?.atMs ?? 0;
  }

  /** Nothing before `nextOffset` will be asked for any more. */
  forget(nextOffset: number): void {
    while ((this.#marks[1]?.offset ?? Number.POSITIVE_INFINITY) <= nextOffset) this.#marks.shift();
  }
}
