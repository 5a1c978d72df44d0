/**
 * The open batches of one partition: a pure state machine, no I/O.
 *
 * 1. Batches have consecutive sequences and are sent in order, at most MAX_OPEN of them without an answer: the broker
 *    remembers the numbers of five.
 * 2. After any failure the attempt ends: everything from the first open batch goes again, in order, the same bytes. What
 *    the older attempt's requests still answer counts only when it says "stored".
 * 3. A batch settles only when all before it have settled: the caller sees acks in the order of the log.
 * 4. An attempt begins with one batch alone; only when that is stored do others follow before its answer. A leader that
 *    knows nothing of our producer takes whatever sequence comes first: with several on their way, the first of them refused
 *    for the moment (not leader yet) and the second taken, the log would be out of order.
 * 5. The offsets that the broker answers must rise by our own counts. More in between is foreign; less is impossible
 *    unless the log was cut.
 */

export const MAX_OPEN = 5;

/**
 * A proof older than this has to be given again: a broker forgets a producer that was idle (after a day, by default), and
 * then takes any sequence as its first.
 */
export const PROOF_MS = 60_000;

/** Kafka counts sequences from 0 to 2^31 - 1 and then from 0 again. */
const SEQUENCES = 2 ** 31;

export interface QueuedBatch {
  readonly firstSequence: number;
  readonly count: number;
  /** null until the broker said that it is stored. */
  baseOffset: number | null;
  /** How often it was sent. */
  attempts: number;
}

export type StoredOutcome<T> =
  | { readonly kind: 'settled'; readonly batches: readonly T[]; readonly foreign: number }
  | { readonly kind: 'waits' }
  | { readonly kind: 'log-cut'; readonly expected: number };

export class PartitionQueue<T extends QueuedBatch> {
  #open: T[] = [];
  /** How many of the open ones were sent in this attempt. */
  #sent = 0;
  #attempt = 0;
  #nextSequence = 0;
  /** Offset behind our last batch that settled; null when not known. */
  #expectedOffset: number | null = null;
  /** When the leader last showed that it knows our numbers; null in a new attempt. */
  #provenAt: number | null = null;

  /** Rises whenever everything goes again; an answer belongs to the attempt in which its request was sent. */
  get attempt(): number {
    return this.#attempt;
  }

  get openCount(): number {
    return this.#open.length;
  }

  get sentCount(): number {
    return this.#sent;
  }

  /** The sequence that a new batch of `count` records gets. */
  takeSequence(count: number): number {
    const first = this.#nextSequence;
    this.#nextSequence = (first + count) % SEQUENCES;
    return first;
  }

  add(batch: T): void {
    this.#open.push(batch);
  }

  isFirst(batch: T): boolean {
    return this.#open[0] === batch;
  }

  /** The next batch to send, or null. What is known to be stored does not go again. */
  next(nowMs: number): T | null {
    const proven = this.#provenAt !== null && (this.#sent > 0 || nowMs - this.#provenAt < PROOF_MS);
    if (!proven) this.#provenAt = null;
    const window = proven ? MAX_OPEN : 1;
    while (this.#sent < Math.min(this.#open.length, window)) {
      const batch = this.#open[this.#sent] as T;
      this.#sent++;
      if (batch.baseOffset !== null) continue;
      batch.attempts++;
      return batch;
    }
    return null;
  }

  /** The broker says that the batch is stored there. */
  stored(batch: T, baseOffset: number, attempt: number, nowMs: number): StoredOutcome<T> {
    batch.baseOffset = baseOffset;
    if (attempt === this.#attempt) this.#provenAt = nowMs;
    const batches: T[] = [];
    let foreign = 0;
    for (let first = this.#open[0]; first !== undefined && first.baseOffset !== null; first = this.#open[0]) {
      const expected = this.#expectedOffset;
      if (expected !== null && first.baseOffset < expected) return { kind: 'log-cut', expected };
      if (expected !== null) foreign += first.baseOffset - expected;
      this.#expectedOffset = first.baseOffset + first.count;
      this.#open.shift();
      this.#sent = Math.max(0, this.#sent - 1);
      batches.push(first);
    }
    return batches.length === 0 ? { kind: 'waits' } : { kind: 'settled', batches, foreign };
  }

  /** Everything from the first open batch is to be sent again. Returns how many had been sent. */
  restart(): number {
    const sent = this.#sent;
    this.#sent = 0;
    this.#attempt++;
    this.#provenAt = null;
    return sent;
  }

  /** New numbers while nothing is open: sequences begin at 0, and the next offset is still known. */
  startOver(): void {
    this.#nextSequence = 0;
    this.#provenAt = null;
  }

  /** New numbers: sequences begin at 0 and nothing is open. Returns what was open. */
  renumber(): T[] {
    const open = this.#open;
    this.#open = [];
    this.#sent = 0;
    this.#attempt++;
    this.#nextSequence = 0;
    this.#provenAt = null;
    // A batch under the old numbers may still be stored before the first new one: the next offset is not known.
    this.#expectedOffset = null;
    return open;
  }
}
