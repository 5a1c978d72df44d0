import type { Clock, Outage } from '@mysync/core';
import type { CheckpointKeeper } from './checkpoint-keeper.ts';
import type { PublishPump } from './publish-pump.ts';
import type { SourceContact } from './source-contact.ts';

export interface CutOffOptions {
  readonly contact: Pick<SourceContact, 'outage' | 'rowsOutage'>;
  readonly pump: Pick<PublishPump, 'trouble' | 'waitingSinceMs'>;
  readonly keeper: Pick<CheckpointKeeper, 'outage'>;
  /** Each partition gets a message at least this often. */
  readonly heartbeatMs: number;
  readonly clock: Clock;
}

/** A connection that is replaced, or a broker whose partitions move, is no outage. */
const GRACE_MS = 15_000;
/** A server may take long to find the first rows. */
const ROWS_GRACE_MS = 60_000;
/** While nothing comes from the source, heartbeats show whether the transport takes anything: so many may be missing. */
const MISSED_HEARTBEATS = 3;

/**
 * Whom a started reader cannot reach, though it tries for ever (docs/adr/0205): its source, its transport, its store of checkpoints.
 *
 * 1. Told only of what lasts longer than a grace.
 * 2. Without its source or its transport the reader does nothing, and is not ready. Without its store it publishes on: that is told, and no more.
 */
export class CutOff {
  readonly #options: CutOffOptions;

  constructor(options: CutOffOptions) {
    this.#options = options;
  }

  /** Why neither log nor tables are read; empty when they are. */
  get source(): string {
    const { outage, rowsOutage } = this.#options.contact;
    return this.#told('the source', outage, GRACE_MS) || this.#told('the source', rowsOutage, ROWS_GRACE_MS);
  }

  /** Why nothing is published; empty when it is, or there is nothing. */
  get transport(): string {
    const { pump, heartbeatMs } = this.#options;
    const sinceMs = pump.waitingSinceMs;
    const outage = sinceMs === null ? null : { sinceMs, cause: pump.trouble || 'it stores nothing' };
    return this.#told('the transport', outage, Math.max(GRACE_MS, heartbeatMs * MISSED_HEARTBEATS));
  }

  get checkpoints(): string {
    return this.#told('the store of checkpoints', this.#options.keeper.outage, GRACE_MS);
  }

  get isReady(): boolean {
    return this.source === '' && this.transport === '';
  }

  /** All of it, the worst first; also what has only begun, where the transport says it. */
  get detail(): string {
    const told = [this.source, this.transport || this.#options.pump.trouble, this.checkpoints];
    return told.filter((text) => text !== '').join('; ');
  }

  #told(whom: string, outage: Outage | null, graceMs: number): string {
    if (outage === null) return '';
    const forMs = this.#options.clock.monotonic() - outage.sinceMs;
    return forMs <= graceMs ? '' : `cut off from ${whom} for ${Math.floor(forMs / 1000)} s: ${outage.cause}`;
  }
}
