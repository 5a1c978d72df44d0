import { type Clock, MysyncError } from '@mysync/core';

export interface BackoffOptions {
  /** Before the first retry; default 50. */
  readonly minMs?: number;
  /** Never more; default 30,000. */
  readonly maxMs?: number;
  /** Default 2. */
  readonly factor?: number;
  /** In [0, 1); default Math.random. */
  readonly random?: () => number;
}

/**
 * Growing pauses: each up to `factor` times the last, never above `maxMs`, and drawn from its upper half at random, so that many who
 * fail together do not come back together.
 */
export class Backoff {
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #factor: number;
  readonly #random: () => number;
  #nextMs: number;

  constructor(options: BackoffOptions = {}) {
    this.#minMs = options.minMs ?? 50;
    this.#maxMs = options.maxMs ?? 30_000;
    this.#factor = options.factor ?? 2;
    this.#random = options.random ?? Math.random;
    this.#nextMs = Math.min(this.#minMs, this.#maxMs);
  }

  /** The next pause in milliseconds; `mostMs` holds for this one only. */
  next(mostMs = this.#maxMs): number {
    const ceiling = Math.min(this.#nextMs, mostMs);
    this.#nextMs = Math.min(this.#nextMs * this.#factor, this.#maxMs);
    return ceiling / 2 + (this.#random() * ceiling) / 2;
  }

  /** After a success: the next pause is the shortest again. */
  reset(): void {
    this.#nextMs = Math.min(this.#minMs, this.#maxMs);
  }
}

export interface Retry {
  /** From 1: how many calls have failed. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: unknown;
}

export interface RetryOptions extends BackoffOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Default: catalogue errors that say so. Everything else is thrown. */
  readonly isRetriable?: (error: unknown) => boolean;
  /** The most for the pause behind this error; default `maxMs`. */
  readonly mostMs?: (error: unknown) => number;
  /** Before each pause: for logs and metrics. */
  readonly onRetry?: (retry: Retry) => void;
}

/** The code decides, never the text. */
export function isRetriableError(error: unknown): boolean {
  return error instanceof MysyncError && error.retriable;
}

/**
 * Calls until it succeeds, with growing pauses, for ever. Throws what is not retriable at once, and the signal's reason as soon as it
 * aborts between calls.
 */
export async function retryForever<T>(call: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const isRetriable = options.isRetriable ?? isRetriableError;
  const backoff = new Backoff(options);
  for (let attempt = 1; ; attempt++) {
    options.signal.throwIfAborted();
    try {
      return await call(attempt);
    } catch (error) {
      if (!isRetriable(error)) throw error;
      options.signal.throwIfAborted();
      const delayMs = backoff.next(options.mostMs?.(error));
      options.onRetry?.({ attempt, delayMs, error });
      await options.clock.sleep(delayMs, options.signal);
    }
  }
}
