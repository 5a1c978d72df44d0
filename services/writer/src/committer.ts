import { type Clock, isMysyncError } from '@mysync/core';
import type { AssignedPartition } from '@mysync/transport';

/**
 * Commits offsets behind the applies, at most every `intervalMs`, one call at a time.
 *
 * A commit is only a hint of where to resume (the applied marker is the truth), so a transient failure is simply met by the next
 * one. Losing the partition (`TRANSPORT_NOT_OWNER`) is reported by `lost`.
 */
export class Committer {
  readonly #assigned: AssignedPartition;
  readonly #intervalMs: number;
  readonly #clock: Clock;
  #applied: number | null = null;
  #committed: number | null;
  #lastAt: number;
  #running: Promise<void> | null = null;
  #lost = false;

  constructor(options: { assigned: AssignedPartition; intervalMs: number; clock: Clock }) {
    this.#assigned = options.assigned;
    this.#intervalMs = options.intervalMs;
    this.#clock = options.clock;
    this.#committed = options.assigned.committed;
    this.#lastAt = options.clock.monotonic();
  }

  /** True once the group gave the partition to another member. */
  get lost(): boolean {
    return this.#lost;
  }

  /** True once the group has a committed offset for this partition. */
  get hasCommitted(): boolean {
    return this.#committed !== null;
  }

  /** Commits what stands once more, so that a loop that has lost its partition learns it. Never throws. */
  async confirm(): Promise<void> {
    await this.#running;
    const offset = this.#applied ?? this.#committed;
    if (offset !== null && !this.#lost) await this.#commit(offset);
  }

  /** Everything before `nextOffset` is applied. Starts a commit when one is due. */
  applied(nextOffset: number): void {
    this.#applied = nextOffset;
    if (this.#running === null && this.#clock.monotonic() - this.#lastAt >= this.#intervalMs) void this.#start();
  }

  /** Commits what is applied and waits for it. Never throws: a lost commit costs nothing but a re-read. */
  async finish(): Promise<void> {
    await this.#running;
    if (!this.#lost && this.#applied !== null && this.#applied !== this.#committed) await this.#start();
  }

  #start(): Promise<void> {
    const offset = this.#applied;
    if (offset === null || offset === this.#committed) return Promise.resolve();
    return this.#commit(offset);
  }

  #commit(offset: number): Promise<void> {
    this.#lastAt = this.#clock.monotonic();
    this.#running = this.#assigned
      .commit(offset)
      .then(() => {
        this.#committed = offset;
      })
      .catch((error: unknown) => {
        if (isMysyncError(error, 'TRANSPORT_NOT_OWNER')) this.#lost = true;
      })
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }
}
