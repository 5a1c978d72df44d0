/**
 * Which messages of one partition are surely in no log, so that others may take their place.
 *
 * 1. A message that was never given to the transport is in no log.
 * 2. Batches of a partition are stored in the order of their calls, so of those given since the last rewind none from the first refused one
 *    on was stored. That counts from the rewind on: only what goes again, or for the first time, may be changed.
 * 3. What was given and not refused is perhaps stored, also where the transport told to send it again: until a later giving of it is refused.
 *
 * 3 leaves one way: stored when it was given first, and refused for its size when it was given again, as the limit was lowered between. Then
 * the smaller one follows under the same version: consumers name the row as withheld, though they hold it.
 */
export class Unstored {
  /** Highest sequence ever given. */
  #everGiven = -1;
  /** The run of messages that were given and are surely not stored; empty when `#to` is less. */
  #from = 0;
  #to = -1;
  /** Highest since the last rewind. */
  #given = -1;
  #refusedFrom = Number.POSITIVE_INFINITY;

  /** A batch is about to be given to the transport; `last`: the sequence of its last message. */
  gives(last: number): void {
    this.#given = Math.max(this.#given, last);
    this.#everGiven = Math.max(this.#everGiven, last);
  }

  /** The transport refused a batch that begins with the sequence `first`, and stored nothing of it. */
  refused(first: number): void {
    this.#refusedFrom = Math.min(this.#refusedFrom, first);
  }

  /** Everything that is not acked goes again, and nothing given before can be stored any more. */
  rewind(): void {
    const [refusedFrom, given] = [this.#refusedFrom, this.#given];
    if (refusedFrom <= given) {
      this.#to = this.#from <= given + 1 ? Math.max(this.#to, given) : given;
      this.#from = refusedFrom;
    } else {
      this.#from = Math.max(this.#from, given + 1);
    }
    this.#given = -1;
    this.#refusedFrom = Number.POSITIVE_INFINITY;
  }

  has(sequence: number): boolean {
    if (sequence <= this.#given) return false;
    return sequence > this.#everGiven || (sequence >= this.#from && sequence <= this.#to);
  }
}
