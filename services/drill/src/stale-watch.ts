import type { Clock, TableRef } from '@mysync/core';
import type { SinkInspector } from '@mysync/sink';

/**
 * Looks at the records of a sink again and again: the version of a record must never go back, also beyond a deletion.
 */
export class StaleWatch {
  readonly #newest = new Map<string, bigint>();
  #looks = 0;
  readonly #stale: string[] = [];

  /** Records that were seen with an older version than before, each time they were. */
  get stale(): readonly string[] {
    return this.#stale;
  }

  get looks(): number {
    return this.#looks;
  }

  see(target: string, version: bigint): void {
    const newest = this.#newest.get(target);
    if (newest !== undefined && version < newest) this.#stale.push(target);
    else this.#newest.set(target, version);
  }

  /** Until the signal aborts. A sink that does not answer is looked at again later. */
  async watch(watched: {
    readonly inspector: SinkInspector;
    readonly table: TableRef;
    readonly targets: readonly string[];
    readonly clock: Clock;
    readonly signal: AbortSignal;
  }): Promise<void> {
    const { inspector, table, targets, clock, signal } = watched;
    while (!signal.aborted) {
      try {
        for (const record of await inspector.find(table, targets, signal)) {
          if (record !== null) this.see(record.target, record.version);
        }
        this.#looks++;
      } catch {
        // it is broken on purpose, every now and then
      }
      await clock.sleep(PAUSE_MS, signal).catch(() => undefined);
    }
  }
}

const PAUSE_MS = 50;
