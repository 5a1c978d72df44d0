import type { ChangeId } from '@mysync/core';
import type { GuardState } from '@mysync/flow';

/** Where the applied marker stood at a time. */
export interface EarlierPlace {
  readonly nextOffset: number;
  readonly guard: GuardState;
  readonly version: string;
  readonly change: ChangeId;
  readonly unreadSinceMs: number;
  /** What was applied after this time (ms since 1970) lies at `nextOffset` or beyond it. */
  readonly atMs: number;
}

/**
 * Where the marker stood a span ago: from there a writer applies again when other servers hold the sink's data than before.
 *
 * 1. The oldest place is at least a span old, as soon as the stream has run for one; it is two spans old at most.
 * 2. Going back to a place keeps it: going back again, soon after, ends there again and not further back.
 * 3. A clock that was set makes places look older or newer than they are: that moves the span, it never empties the list.
 */
export class EarlierPlaces {
  readonly #spanMs: number;
  #places: readonly EarlierPlace[];

  constructor(spanMs: number, places: readonly EarlierPlace[] = []) {
    this.#spanMs = spanMs;
    this.#places = places;
  }

  /** The marker stands at `place` now; noted once in a span. */
  note(place: Omit<EarlierPlace, 'atMs'>, nowMs: number): void {
    const last = this.#places.at(-1);
    if (last !== undefined && Math.abs(nowMs - last.atMs) < this.#spanMs) return;
    const kept = this.#places.slice(Math.max(0, this.#old(nowMs)));
    this.#places = [...kept, { ...place, atMs: nowMs }];
  }

  /** The newest place that was a span old at that time, else the oldest; none before `earliest`, which is where the log begins. */
  goBack(nowMs: number, earliest: number): EarlierPlace | null {
    const from = Math.max(0, this.#old(nowMs));
    const at = this.#places.findIndex(({ nextOffset }, index) => index >= from && nextOffset >= earliest);
    const place = this.#places[at];
    if (place === undefined) return null;
    this.#places = this.#places.slice(0, at + 1);
    return place;
  }

  entries(): readonly EarlierPlace[] {
    return this.#places;
  }

  /** Place in the list of the newest that is a span old; -1: none is. */
  #old(nowMs: number): number {
    return this.#places.findLastIndex(({ atMs }) => atMs <= nowMs - this.#spanMs);
  }
}
