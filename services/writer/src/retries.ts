import {
  type Clock,
  Contact,
  causeText,
  errorForLog,
  isMysyncError,
  type Logger,
  longest,
  type Outage,
} from '@mysync/core';
import { retryForever } from '@mysync/flow';
import type { Metrics } from '@mysync/telemetry';

export interface RetriesOptions {
  readonly signal: AbortSignal;
  readonly labels: { readonly sink: string; readonly source: string; readonly partition: string };
  readonly onRetry: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** A failure that goes on is told at first, and then as often. */
const TELL_MS = 60_000;
/** One that cannot be reached is looked for as often: being refused costs it nothing, and it is back without notice. Others, as one that is overloaded, are left alone for longer and longer. */
const UNREACHABLE_MS = 1_000;
/** An apply of a large unit takes long as well: only beyond this is it told that no answer comes. */
const SLOW_MS = 30_000;

/** Calls to the sink, each tried until it succeeds or fails for good; and since when it has not answered. */
export class Retries {
  readonly #options: RetriesOptions;
  readonly #contact = new Contact();
  /** Monotonic time at which the attempt under way began. */
  #askedMs: number | null = null;

  constructor(options: RetriesOptions) {
    this.#options = options;
  }

  /** Since when attempts have failed, or one has gone without an answer for long. */
  get outage(): Outage | null {
    const { outage } = this.#contact;
    const asked = this.#askedMs;
    if (asked === null || this.#options.clock.monotonic() - asked <= SLOW_MS) return outage;
    return longest([outage, { sinceMs: asked, cause: 'the sink does not answer' }]);
  }

  async call<T>(call: () => Promise<T>): Promise<T> {
    const { signal, labels, onRetry, clock, logger, metrics } = this.#options;
    const attempt = async (): Promise<T> => {
      this.#askedMs = clock.monotonic();
      try {
        return await call();
      } finally {
        this.#askedMs = null;
      }
    };
    let toldMs = Number.NEGATIVE_INFINITY;
    const result = await retryForever(attempt, {
      signal,
      clock,
      mostMs: (error) => (isMysyncError(error, 'SINK_UNREACHABLE') ? UNREACHABLE_MS : Number.POSITIVE_INFINITY),
      onRetry: ({ error, attempt, delayMs }) => {
        const code = isMysyncError(error) ? error.code : 'INTERNAL';
        metrics.writer.retries.inc({ ...labels, code });
        this.#contact.lost(causeText(error), clock.monotonic());
        onRetry();
        if (clock.monotonic() - toldMs >= TELL_MS) {
          toldMs = clock.monotonic();
          // Mostly somebody has to act, though it may pass (ADR 0211).
          const level = code === 'SINK_DENIED' ? 'error' : 'warn';
          logger[level](
            { attempt, delayMs: Math.round(delayMs), error: errorForLog(error) },
            'the sink failed, trying again',
          );
        }
      },
    });
    if (this.#contact.made()) logger.info({}, 'the sink takes changes again');
    return result;
  }
}
