import type { Looks } from './blind-spots.ts';

/** Failures within this time count as one: while a server is away a look fails at once, and the next one follows. */
const SAME_FAILURE_MS = 1000;

/** Counts looks, those that failed only so often as they say something. Pure. */
export class LookCount implements Looks {
  done = 0;
  trouble = '';
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;

  get tried(): number {
    return this.done + this.#failures;
  }

  succeeded(): void {
    this.done += 1;
  }

  /** `nowMs`: on any clock that does not go back. */
  failed(trouble: string, nowMs: number): void {
    this.trouble = trouble;
    if (nowMs - this.#failedMs < SAME_FAILURE_MS) return;
    this.#failedMs = nowMs;
    this.#failures += 1;
  }
}
