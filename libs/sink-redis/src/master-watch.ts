import { systemClock } from '@mysync/core';

export interface MasterWatchOptions {
  /** Names of the masters, as a node tells that is none of `silent`; null: there is nobody to ask. */
  readonly look: (silent: ReadonlySet<string>) => Promise<ReadonlySet<string> | null>;
  /** Called for one that owes an answer and is no master any more. */
  readonly leave: (name: string) => void;
}

interface Wait {
  readonly name: string;
  readonly since: number;
}

/** An answer that takes as long makes us ask the others. Slow scripts cost a question now and then. */
const SILENT_MS = 1_000;
const LOOK_MS = 500;

/**
 * Asks the others about masters that owe an answer: one whose replica has taken over is left at once, not when the time for the answer is
 * over, which is longer than the cluster takes to replace it.
 */
export class MasterWatch {
  readonly #options: MasterWatchOptions;
  readonly #waits = new Set<Wait>();
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;

  constructor(options: MasterWatchOptions) {
    this.#options = options;
  }

  /** Watches the server while its answer is awaited. */
  async during<T>(name: string, answer: Promise<T>): Promise<T> {
    const wait = { name, since: systemClock.monotonic() };
    this.#waits.add(wait);
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS);
    try {
      return await answer;
    } finally {
      this.#waits.delete(wait);
      if (this.#waits.size === 0) this.#stop();
    }
  }

  /** Servers that owe an answer for too long. */
  get silent(): ReadonlySet<string> {
    const since = systemClock.monotonic() - SILENT_MS;
    return new Set([...this.#waits].filter((wait) => wait.since <= since).map(({ name }) => name));
  }

  async #look(): Promise<void> {
    const { silent } = this;
    if (silent.size === 0 || this.#isLooking) return;
    this.#isLooking = true;
    try {
      const masters = await this.#options.look(silent);
      if (masters === null) return;
      for (const name of silent) if (!masters.has(name)) this.#options.leave(name);
    } catch {
      // whoever was asked did not answer either: the next look asks somebody else
    } finally {
      this.#isLooking = false;
    }
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
