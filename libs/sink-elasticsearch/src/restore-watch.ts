import { setTimeout as sleep } from 'node:timers/promises';

export interface RestoreWatchOptions {
  /** Identity of each index, by name, of those that are there. */
  readonly identities: () => Promise<ReadonlyMap<string, string>>;
  readonly everyMs: number;
  /** Indices whose identity is another one than it was. */
  readonly onRestored: (names: readonly string[]) => void;
}

/**
 * Looks from time to time whether an index was restored: whoever has nothing to write meets no error that tells so.
 *
 * 1. An index that is away for a while keeps the identity that it had: deleted and restored, it is another one.
 * 2. Looks that fail say nothing: what is wrong with the server is met, and told, by those that write.
 */
export class RestoreWatch {
  readonly #options: RestoreWatchOptions;
  readonly #known = new Map<string, string>();
  readonly #end = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: RestoreWatchOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#look().catch(() => undefined);
      await sleep(this.#options.everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const changed: string[] = [];
    for (const [name, identity] of await this.#options.identities()) {
      const known = this.#known.get(name);
      if (known !== undefined && known !== identity) changed.push(name);
      this.#known.set(name, identity);
    }
    if (changed.length > 0 && !this.#end.signal.aborted) this.#options.onRestored(changed);
  }
}
