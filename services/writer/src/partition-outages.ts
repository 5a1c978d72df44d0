import { type Clock, Contact, causeText, longest, type Outage } from '@mysync/core';
import type { AssignedPartition } from '@mysync/transport';
import type { Retries } from './retries.ts';

export interface PartitionOutagesOptions {
  readonly assigned: Pick<AssignedPartition, 'outage'>;
  readonly retries: Pick<Retries, 'outage'>;
  readonly clock: Clock;
}

/** Where nothing comes to be applied, following the log for so long without a failure says as much. */
const QUIET_MS = 30_000;

/** What a partition is cut off from, the sink or the log, while it tries again by itself (docs/adr/0205). */
export class PartitionOutages {
  readonly #options: PartitionOutagesOptions;
  /** With the log, as far as its failures end a turn. */
  readonly #turns = new Contact();
  #followsSinceMs: number | null = null;

  constructor(options: PartitionOutagesOptions) {
    this.#options = options;
  }

  /** The log is followed from now on. */
  follows(): void {
    this.#followsSinceMs = this.#options.clock.monotonic();
  }

  /** Following the log ended with an error that passes. */
  turnFailed(error: unknown): void {
    this.#turns.lost(causeText(error), this.#options.clock.monotonic());
    this.#followsSinceMs = null;
  }

  /** Something was read and applied. */
  applied(): void {
    this.#turns.made();
  }

  get current(): Outage | null {
    return longest([this.#options.retries.outage, this.#unread()]);
  }

  /** Age of the outage; 0 when there is none. */
  seconds(outage: Outage | null = this.current): number {
    return outage === null ? 0 : Math.max(0, this.#options.clock.monotonic() - outage.sinceMs) / 1000;
  }

  /** What was committed since the log could be read last is not known, so the lag is at least this. */
  unreadSeconds(): number {
    return this.seconds(this.#unread());
  }

  #unread(): Outage | null {
    const { assigned, clock } = this.#options;
    const since = this.#followsSinceMs;
    if (since !== null && clock.monotonic() - since > QUIET_MS) this.#turns.made();
    return longest([this.#turns.outage, assigned.outage]);
  }
}
