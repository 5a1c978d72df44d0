import type { Change, Log, Surroundings } from './model-log.ts';
import { type GuardState, initialGuardState, SequenceGuard } from './sequence-guard.ts';

interface Commit {
  readonly next: readonly number[];
  readonly states: readonly GuardState[];
  readonly absent: readonly number[];
}

/** A sink and its guards. */
export class Consumer {
  readonly guards: SequenceGuard[];
  readonly next: number[];
  readonly rows = new Map<string, number>();
  readonly #versions = new Map<string, number>();
  readonly #highest = new Map<string, number>();
  readonly #world: Surroundings;
  /** Per partition: offsets passed since the last accepted record at which there was none. */
  readonly #absent: number[];
  wentBack = false;
  sawHole = false;
  #commit: Commit;

  constructor(world: Surroundings) {
    this.#world = world;
    this.guards = world.logs.map((log) => new SequenceGuard(initialGuardState(log.start)));
    this.next = world.logs.map((log) => log.start);
    this.#absent = world.logs.map(() => 0);
    this.#commit = this.#now();
  }

  committed(partition: number): number {
    return this.#commit.next[partition] ?? 0;
  }

  commit(): void {
    this.#commit = this.#now();
  }

  crash(): void {
    for (const [partition, state] of this.#commit.states.entries()) {
      this.guards[partition]?.restore(state);
      this.next[partition] = this.committed(partition);
      this.#absent[partition] = this.#commit.absent[partition] ?? 0;
    }
  }

  consume(partition: number, atMost: number): void {
    const log = this.#world.logs[partition] as Log;
    const guard = this.guards[partition] as SequenceGuard;
    let left = atMost;
    let absent = this.#absent[partition] as number;
    let offset = this.next[partition] as number;
    for (; offset < log.end && left > 0; offset++) {
      const record = log.at(offset);
      if (record === null) {
        absent++;
        continue;
      }
      left--;
      const explained = guard.counts.compactedSequences;
      if (this.#world.offer(guard, offset, record) !== 'accept') continue;
      if (guard.counts.compactedSequences - explained > absent) this.sawHole = true;
      absent = 0;
      if (record.item !== null && !record.item.heartbeat) this.#apply(record.item);
    }
    this.#absent[partition] = absent;
    this.next[partition] = offset;
  }

  #now(): Commit {
    const states = this.guards.map((guard) => guard.state());
    return { next: [...this.next], states, absent: [...this.#absent] };
  }

  #apply(change: Change): void {
    if (change.version < (this.#versions.get(change.key) ?? 0) && !this.#world.has('noversion')) return;
    this.#versions.set(change.key, change.version);
    if (change.value === null) this.rows.delete(change.key);
    else this.rows.set(change.key, change.value);
    if (change.version < (this.#highest.get(change.key) ?? 0)) this.wentBack = true;
    else this.#highest.set(change.key, change.version);
  }
}
