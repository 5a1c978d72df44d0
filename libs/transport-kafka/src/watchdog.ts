/**
 * Notices a client that should move and does not. Every wait in this room has a time limit of its own; this is the net
 * below them, for the fault that nobody thought of: the connections are made anew and the work goes on.
 */
import { type Clock, systemClock } from '@mysync/core';

export interface WatchdogOptions {
  readonly stallMs: number;
  /** Whether there is something to be done at this moment. */
  readonly waiting: () => boolean;
  readonly replace: () => void;
  readonly clock?: Clock;
}

export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  #movedAt: number;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#movedAt = this.#clock.monotonic();
    this.#timer = setInterval(() => this.look(), Math.max(10, options.stallMs / 4));
    this.#timer.unref();
  }

  /** Something was done. */
  moved(): void {
    this.#movedAt = this.#clock.monotonic();
  }

  look(): void {
    if (!this.#options.waiting()) this.moved();
    if (this.#clock.monotonic() - this.#movedAt < this.#options.stallMs) return;
    this.moved();
    this.#options.replace();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
