import type { Clock } from '@mysync/core';
import { Backoff, isRetriableError } from '@mysync/flow';

export interface AgainOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** For how long a call may fail, one time after the other, before its error is thrown. */
  readonly patienceMs: number;
  /** Before each pause: a word to whoever waits. */
  onRetry(error: unknown, delayMs: number): void;
}

const PAUSE = { minMs: 100, maxMs: 5_000 };

/**
 * What fails in passing (by the error's code) is done again, with growing pauses; a question that takes hours must not be lost to one connection
 * that dropped. Only for what may be done twice.
 */
export class Again {
  readonly #options: AgainOptions;

  constructor(options: AgainOptions) {
    this.#options = options;
  }

  async call<T>(ask: () => Promise<T>): Promise<T> {
    const passing = new Passing(this.#options);
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        await passing.failed(error);
      }
    }
  }

  /** Begins anew where it fails, at most so many times; items that came before may come again. */
  async *iterate<T>(begin: () => AsyncIterable<T>, most = Number.POSITIVE_INFINITY): AsyncGenerator<T> {
    const passing = new Passing(this.#options);
    for (let failures = 0; ; ) {
      try {
        for await (const item of begin()) {
          passing.succeeded();
          yield item;
        }
        return;
      } catch (error) {
        failures += 1;
        if (failures > most) throw error;
        await passing.failed(error);
      }
    }
  }
}

/** Failures with no success between them. */
class Passing {
  readonly #options: AgainOptions;
  readonly #backoff = new Backoff(PAUSE);
  #since: number | null = null;

  constructor(options: AgainOptions) {
    this.#options = options;
  }

  succeeded(): void {
    this.#since = null;
    this.#backoff.reset();
  }

  /** Waits before the next time; throws the error when there is to be none. */
  async failed(error: unknown): Promise<void> {
    const { clock, signal, patienceMs, onRetry } = this.#options;
    signal.throwIfAborted();
    this.#since ??= clock.monotonic();
    if (!isRetriableError(error) || clock.monotonic() - this.#since >= patienceMs) throw error;
    const delayMs = this.#backoff.next();
    onRetry(error, delayMs);
    await clock.sleep(delayMs, signal);
  }
}
