/**
 * The queue that all writes of a store pass.
 *
 * 1. Actions are committed in groups, in the order of their calls; those that are called in one turn are in one group.
 * 2. Each call settles, whatever fails: with its action's result or error when its group was committed, else with why it was not.
 */
interface Pending {
  readonly action: () => unknown;
  readonly bytes: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  result: unknown;
  error: unknown;
}

export type Group = readonly Pending[];

export interface WriteQueueOptions {
  /** Commits a group, in which it sets `result` or `error` of each; throws when nothing of it was stored. */
  readonly commit: (group: Group) => Promise<void>;
  /** What it means that `commit` threw; does not throw. */
  readonly explain: (error: unknown, bytes: number) => Promise<unknown>;
  /** Runs when those of a committed group were answered. */
  readonly committed: () => void;
  /** Told each time a commit has waited for so long again. */
  readonly stalled: (waitedMs: number) => void;
}

const MAX_GROUP_BYTES = 16 * 2 ** 20;
const STALL_MS = 10_000;

export class WriteQueue {
  readonly #options: WriteQueueOptions;
  readonly #queue: Pending[] = [];
  #running: Promise<void> | undefined;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
  }

  /** @param bytes what the action stores, about: groups are bounded by it */
  write<T>(action: () => T, bytes: number): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ action, bytes, resolve, reject, result: undefined, error: undefined });
      this.#running ??= this.#drain();
    });
  }

  /** Resolves when nothing waits or is being committed. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #drain(): Promise<void> {
    // Lets the callers of this turn join the first group.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      let bytes = 0;
      let count = 0;
      while (count < this.#queue.length && (count === 0 || bytes < MAX_GROUP_BYTES)) {
        bytes += this.#queue[count++]?.bytes ?? 0;
      }
      await this.#settle(this.#queue.splice(0, count), bytes);
    }
    this.#running = undefined;
  }

  async #settle(group: Group, bytes: number): Promise<void> {
    const { commit, explain, committed, stalled } = this.#options;
    const watch = setInterval(() => stalled(STALL_MS), STALL_MS).unref();
    const refused = await commit(group).then(
      () => undefined,
      (error: unknown) => explain(error, bytes),
    );
    clearInterval(watch);
    for (const pending of group) {
      const error = refused ?? pending.error;
      if (error !== undefined) pending.reject(error);
      else pending.resolve(pending.result as never);
    }
    if (refused === undefined) committed();
  }
}
