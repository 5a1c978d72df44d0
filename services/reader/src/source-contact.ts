import { type Clock, Contact, causeText, type MysyncError, type Outage } from '@mysync/core';
import type { StreamObserver } from '@mysync/source-mysql';
import type { Metrics } from '@mysync/telemetry';

const NO_ROWS = 'it sends no rows of the table that is read';

export interface SourceContactOptions {
  readonly source: string;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'reader'>;
}

/**
 * Whether the source answers: its log, and the rows of tables that are read.
 *
 * 1. From when the log is asked for until the server has sent something of it, it is not: also at the first connection.
 * 2. An outage lasts from when the server was last heard. What was committed since then is not known, so the lag is not zero but the age of the outage.
 */
export class SourceContact implements StreamObserver {
  readonly #options: SourceContactOptions;
  readonly #contact = new Contact();
  readonly #rows = new Contact();
  #hasRead = false;

  constructor(options: SourceContactOptions) {
    this.#options = options;
  }

  /** The log is asked for. */
  asks(): void {
    this.#contact.lost('connecting', this.#options.clock.monotonic());
  }

  brokeOff(error: MysyncError, heardMs: number | undefined): void {
    this.#contact.lost(causeText(error), heardMs ?? this.#options.clock.monotonic());
  }

  reads(): void {
    const { metrics, source } = this.#options;
    if (this.#contact.made() && this.#hasRead) metrics.reader.reconnects.inc({ source });
    this.#hasRead = true;
  }

  get outage(): Outage | null {
    return this.#contact.outage;
  }

  /** While rows are read: since when the next ones have been waited for. A server may take its time with them, and says nothing meanwhile. */
  get rowsOutage(): Outage | null {
    return this.#rows.outage;
  }

  /** The same, each time the next rows are waited for. */
  async *waitingForRows<T>(rows: AsyncIterable<T>): AsyncGenerator<T> {
    const { clock } = this.#options;
    try {
      this.#rows.lost(NO_ROWS, clock.monotonic());
      for await (const batch of rows) {
        this.#rows.made();
        yield batch;
        this.#rows.lost(NO_ROWS, clock.monotonic());
      }
    } finally {
      this.#rows.made();
    }
  }

  /** Wall time since which nothing is known of the source, in microseconds since 1970; null while it is read. */
  unknownSinceMicros(): number | null {
    const { outage } = this;
    if (outage === null) return null;
    const { clock } = this.#options;
    return (clock.now() - (clock.monotonic() - outage.sinceMs)) * 1000;
  }
}
