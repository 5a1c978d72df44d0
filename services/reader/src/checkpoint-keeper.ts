import type { Checkpoint, CheckpointStore } from '@mysync/checkpoint';
import { type Clock, Contact, causeText, errorForLog, type Logger, type Outage, Turns } from '@mysync/core';

/**
 * The one place that writes this reader's checkpoint: saves are serialised, each replaces the one before.
 *
 * The epoch that a save replaces is the one this keeper loaded or wrote last, so a predecessor that wakes up is refused.
 */
export class CheckpointKeeper {
  readonly #store: CheckpointStore;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #current: Checkpoint | null;
  #stored: number | null;
  readonly #saves = new Turns();
  #savedAtMs: number;
  readonly #contact = new Contact();

  constructor(options: { store: CheckpointStore; loaded: Checkpoint | null; clock: Clock; logger: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#current = options.loaded;
    this.#stored = options.loaded?.epoch ?? null;
    this.#savedAtMs = options.clock.monotonic();
  }

  /** The newest checkpoint handed to `save`. */
  get current(): Checkpoint | null {
    return this.#current;
  }

  ageSeconds(): number {
    return (this.#clock.monotonic() - this.#savedAtMs) / 1000;
  }

  /** Since when what was to be saved could not be, or has not been answered. */
  get outage(): Outage | null {
    return this.#contact.outage;
  }

  /** Changes some fields and stores the whole durably. Rejects when it could not be stored. */
  async save(change: Partial<Checkpoint> & ({ source: string } | object)): Promise<void> {
    const next = { ...this.#current, ...change, savedAt: new Date(this.#clock.now()).toISOString() } as Checkpoint;
    this.#current = next;
    try {
      await this.#saves.take(async () => {
        // a store that does not answer fails late, or never
        if (this.#contact.outage === null) this.#contact.lost('no answer', this.#clock.monotonic());
        await this.#store.save(next, this.#stored);
        this.#contact.made();
        this.#stored = next.epoch;
        this.#savedAtMs = this.#clock.monotonic();
      });
    } catch (error) {
      this.#contact.lost(causeText(error), this.#clock.monotonic());
      this.#logger.warn({ error: errorForLog(error) }, 'the checkpoint could not be saved');
      throw error;
    }
  }
}
