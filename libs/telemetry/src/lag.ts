import type { Clock } from '@mysync/core';

/**
 * Lag of one stage: now − source commit time of the oldest change not yet committed there.
 *
 * 1. Zero when nothing is outstanding: an idle source does not look late.
 * 2. Never negative: clocks of source and host may differ.
 * 3. Grows by itself while something is stuck: it is computed when asked for, not when something moves.
 * 4. A rolling maximum over the last `windowMs`, so that a scrape misses no spike.
 */
export class LagTracker {
  readonly #clock: Clock;
  readonly #windowMs: number;
  #oldestMicros: number | null = null;
  #peakSeconds = 0;
  #peakAt = 0;

  constructor(options: { clock: Clock; windowMs?: number }) {
    this.#clock = options.clock;
    this.#windowMs = options.windowMs ?? 15_000;
  }

  /** `commitTimeMicros` of the oldest change that is still outstanding, or null when none is. */
  outstanding(commitTimeMicros: number | null): void {
    if (this.#oldestMicros !== null && this.#oldestMicros !== commitTimeMicros) this.#note(this.current());
    this.#oldestMicros = commitTimeMicros;
  }

  /** A change that is outstanding too; nothing older comes after it. */
  waits(commitTimeMicros: number): void {
    if (this.#oldestMicros === null) this.outstanding(commitTimeMicros);
  }

  get isOutstanding(): boolean {
    return this.#oldestMicros !== null;
  }

  /** Seconds now. */
  current(): number {
    if (this.#oldestMicros === null) return 0;
    return Math.max(0, this.#clock.now() / 1000 - this.#oldestMicros / 1e6);
  }

  /** Seconds: the highest of now and the last `windowMs`. */
  peak(): number {
    const current = this.current();
    this.#note(current);
    return Math.max(current, this.#peakSeconds);
  }

  #note(seconds: number): void {
    const now = this.#clock.monotonic();
    if (seconds >= this.#peakSeconds || now - this.#peakAt > this.#windowMs) {
      this.#peakSeconds = seconds;
      this.#peakAt = now;
    }
  }
}
