import type { Clock, Logger } from '@mysync/core';
import type { GuardCounts, SequenceGuard } from '@mysync/flow';
import type { Metrics } from '@mysync/telemetry';

export interface GuardWatchOptions {
  readonly labels: { readonly sink: string; readonly source: string; readonly partition: string };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const VERDICTS = ['accept', 'duplicate', 'stale', 'early'] as const;
type Counted = Record<(typeof VERDICTS)[number], number>;

/** What the guard of a partition says, for metrics: its verdicts, and how long a gap has been open. */
export class GuardWatch {
  readonly #options: GuardWatchOptions;
  /** Already in the metrics: a labelled counter costs more than the guard itself, so it is asked once per batch. */
  #counted: Counted = { accept: 0, duplicate: 0, stale: 0, early: 0 };
  #gapSince: number | null = null;

  constructor(options: GuardWatchOptions) {
    this.#options = options;
  }

  /** Another guard counts from zero. */
  begin(): void {
    this.#counted = { accept: 0, duplicate: 0, stale: 0, early: 0 };
  }

  /** A batch has passed. */
  look(guard: SequenceGuard): void {
    this.count(guard.counts);
    const offset = guard.openGapSince;
    if (offset === null) {
      this.#gapSince = null;
    } else if (this.#gapSince === null) {
      this.#gapSince = this.#options.clock.monotonic();
      this.#options.logger.warn({ offset }, 'a gap in the sequence: waiting for the next generation');
    }
  }

  count(counts: Readonly<GuardCounts>): void {
    const { metrics, labels } = this.#options;
    for (const verdict of VERDICTS) {
      const more = counts[verdict] - this.#counted[verdict];
      if (more === 0) continue;
      this.#counted[verdict] += more;
      metrics.writer.verdicts.inc({ ...labels, verdict }, more);
    }
  }

  /** How long a gap has been open; 0 when none is. */
  gapSeconds(): number {
    return this.#gapSince === null ? 0 : (this.#options.clock.monotonic() - this.#gapSince) / 1000;
  }
}
