import type { Clock, TableRef } from '@mysync/core';
import type { SinkInspector } from '@mysync/sink';

interface Seen {
  newest: bigint;
  /** It was not there when it was looked at last. */
  isGone: boolean;
}

/**
 * Looks at the records of a sink again and again: the version of a record must never go back, also beyond a deletion, behind which it must be
 * greater than before.
 */
export class StaleWatch {
  readonly #seen = new Map<string, Seen>();
  #looks = 0;
  readonly #stale: string[] = [];

  /** Records that were seen with an older version than before, or back with the version that was deleted, each time they were. */
  get stale(): readonly string[] {
    return this.#stale;
  }

  get looks(): number {
    return this.#looks;
  }

  /** `version`: null where there is no such record. */
  see(target: string, version: bigint | null): void {
    const seen = this.#seen.get(target);
    if (seen === undefined) {
      if (version !== null) this.#seen.set(target, { newest: version, isGone: false });
      return;
    }
    if (version === null) {
      seen.isGone = true;
      return;
    }
    if (version < seen.newest || (seen.isGone && version === seen.newest)) this.#stale.push(target);
    else seen.newest = version;
    seen.isGone = false;
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
        const found = await inspector.find(table, targets, signal);
        for (const [at, target] of targets.entries()) this.see(target, found[at]?.version ?? null);
        this.#looks++;
      } catch {
        // it is broken on purpose, every now and then
      }
      await clock.sleep(PAUSE_MS, signal).catch(() => undefined);
    }
  }
}

const PAUSE_MS = 50;
