import type { CheckpointTracker } from '@mysync/flow';
import type { RoutedTransaction, WindowEntry } from './change-router.ts';
import type { PublishPump } from './publish-pump.ts';

/** The change put into a partition last. */
export interface LastChange {
  readonly transaction: Pick<RoutedTransaction, 'id' | 'counter'>;
  readonly ordinal: number;
}

export interface WindowFeedOptions {
  readonly pump: PublishPump;
  readonly tracker: CheckpointTracker;
  /** By partition; of the life before at first. */
  readonly lastChanges: readonly LastChange[];
}

/** The one way into the ack windows: what enters one is known to the checkpoint's tracker, and by heartbeats. */
export class WindowFeed {
  readonly #pump: PublishPump;
  readonly #tracker: CheckpointTracker;
  readonly #lastChanges: LastChange[];

  constructor(options: WindowFeedOptions) {
    this.#pump = options.pump;
    this.#tracker = options.tracker;
    this.#lastChanges = [...options.lastChanges];
  }

  get lastChanges(): readonly LastChange[] {
    return this.#lastChanges;
  }

  hasRoom(partition: number): boolean {
    return this.#pump.hasRoom(partition);
  }

  /** Takes the entry at once (null), or gives a promise that resolves once there was room for it. */
  put(partition: number, entry: WindowEntry): Promise<void> | null {
    const sequence = this.#pump.tryPut(partition, entry);
    if (sequence === false) return this.#putWhenRoom(partition, entry);
    this.#tracker.put(partition, sequence, entry.transaction.id, entry.ordinal);
    this.#lastChanges[partition] = entry;
    return null;
  }

  /** One entry for each partition; null where there is none. */
  async putAll(entries: readonly (WindowEntry | null)[]): Promise<void> {
    for (const [partition, entry] of entries.entries()) {
      if (entry !== null) await this.put(partition, entry);
    }
  }

  /** Sends what is there. */
  flush(): void {
    this.#pump.flush();
  }

  async #putWhenRoom(partition: number, entry: WindowEntry): Promise<void> {
    do await this.#pump.room();
    while (!this.#pump.hasRoom(partition));
    await this.put(partition, entry);
  }
}
