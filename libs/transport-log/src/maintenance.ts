/**
 * Compaction and retention in the background.
 *
 * 1. In one process at a time: the one that holds the maintenance lease, which is checked again inside every transaction that removes
 *    something. The lease passes on when its holder is gone or silent; it is held longer by every write, and by reading.
 * 2. What goes wrong in one partition is told, and the others are looked after as before.
 * 3. Looks that end without a pass take a twentieth of the time at most.
 */
import { Campaign } from './campaign.ts';
import { compactPartition } from './compaction.ts';
import { metaKey, type PartitionState, type TopicEntry } from './layout.ts';
import { machineMs } from './membership.ts';
import { isGone, type ProcessIdentity, randomId, thisProcess } from './process-identity.ts';
import { removeOlder } from './retention.ts';
import type { Store } from './store.ts';

export interface MaintenanceOptions {
  /** Pause between two rounds. */
  readonly intervalMs: number;
  /** A partition is compacted when at least this share of its bytes is dirty. */
  readonly minDirtyRatio: number;
  /** … and at least this many bytes. */
  readonly minDirtyBytes: number;
  readonly memoryBytes: number;
  readonly leaseMs: number;
  /** Lets others run between two steps. Default: a turn of the event loop. */
  readonly pause?: () => Promise<void>;
}

/** What is remembered of a compacted partition between two looks. */
interface Looked {
  readonly campaign: Campaign;
  /** By the log's clock, and by the machine's. */
  notBeforeMs: number;
  restUntilMs: number;
}

interface Lease {
  readonly token: string;
  readonly process: ProcessIdentity;
  readonly beatMs: number;
}

/** A look at a dirty stretch costs reading it: once in a twentieth of the lag, in which it grows by little, and of the time. */
const LOOK_AGAIN_SHARE = 1 / 20;

class LeaseLost extends Error {}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class Maintenance {
  readonly #store: Store;
  readonly #options: MaintenanceOptions;
  readonly #token = randomId();
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  readonly #looked = new Map<string, Looked>();
  /** When the lease was written last, by the machine's clock. */
  #beatMs = 0;

  constructor(store: Store, options: MaintenanceOptions) {
    this.#store = store;
    this.#options = options;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.round();
      } catch (error) {
        if (!this.#stop.signal.aborted && !(error instanceof LeaseLost)) this.#store.options.onProblem(error);
      }
      await this.#sleep();
    }
    await this.#store
      .write(() => {
        if (this.#store.read<Lease>(metaKey.maintenance)?.token === this.#token) {
          this.#store.remove(metaKey.maintenance);
        }
      })
      .catch(() => {
        // The lease runs out by itself.
      });
  }

  /** Looks at every partition once, if this process may. */
  async round(): Promise<void> {
    const store = this.#store;
    store.refresh();
    const topics = this.#topics();
    if (topics.length === 0 || !(await this.#takeLease())) return;
    store.clearDeadReaders();
    for (const { name, entry } of topics) {
      for (let partition = 0; partition < entry.partitions; partition++) {
        await this.#pause();
        store.refresh();
        const state = store.partition(entry.id, partition);
        if (state === undefined) break;
        try {
          await this.#maintain(name, entry, partition, state);
        } catch (error) {
          if (error instanceof LeaseLost) throw error;
          store.options.onProblem(error);
        }
      }
    }
  }

  async #maintain(topic: string, entry: TopicEntry, partition: number, state: PartitionState): Promise<void> {
    const nowMs = this.#store.options.clock.now();
    const checkLease = (): void => this.#checkLease();
    if (!entry.compacted) {
      if (entry.retentionMs >= 0)
        await removeOlder(this.#store, entry, partition, nowMs - entry.retentionMs, checkLease);
      return;
    }
    // What may be dirty, young records included; how much of it is old enough is known only after a look.
    const mayBeDirty = state.bytes - state.cleanBytes >= this.#options.minDirtyBytes;
    const isDue = state.horizonMs > 0 && nowMs >= state.horizonMs;
    const looked = this.#lookedAt(entry, partition);
    const isResting = nowMs < looked.notBeforeMs || machineMs() < looked.restUntilMs;
    if (!isDue && (!mayBeDirty || isResting)) return;
    const { memoryBytes, minDirtyBytes, minDirtyRatio } = this.#options;
    const { campaign } = looked;
    const limits = { memoryBytes, minDirtyBytes, minDirtyRatio, campaign };
    const pause = (): Promise<void> => this.#pause();
    const beganMs = machineMs();
    let isDone = false;
    try {
      const which = { store: this.#store, topic, entry, partition, nowMs };
      isDone = await compactPartition({ ...which, ...limits, checkLease, pause });
    } finally {
      looked.notBeforeMs = isDone ? 0 : nowMs + entry.minCompactionLagMs * LOOK_AGAIN_SHARE;
      looked.restUntilMs = isDone ? 0 : machineMs() + (machineMs() - beganMs) / LOOK_AGAIN_SHARE;
    }
  }

  #lookedAt(entry: TopicEntry, partition: number): Looked {
    const key = `${entry.id}/${partition}`;
    const looked = this.#looked.get(key) ?? { campaign: new Campaign(), notBeforeMs: 0, restUntilMs: 0 };
    this.#looked.set(key, looked);
    return looked;
  }

  #topics(): { readonly name: string; readonly entry: TopicEntry }[] {
    const prefix = metaKey.topic('');
    const keys = [...this.#store.meta.getKeys({ start: prefix, end: `${prefix}\uffff` })];
    return keys.flatMap((key) => {
      const entry = this.#store.read<TopicEntry>(key);
      return entry === undefined ? [] : [{ name: key.slice(prefix.length), entry }];
    });
  }

  async #takeLease(): Promise<boolean> {
    const held = this.#store.read<Lease>(metaKey.maintenance);
    if (held !== undefined && held.token !== this.#token && !this.#isOver(held)) return false;
    return await this.#store.write(() => {
      const now = this.#store.read<Lease>(metaKey.maintenance);
      if (now !== undefined && now.token !== this.#token && !this.#isOver(now)) return false;
      this.#beat();
      return true;
    });
  }

  #isOver(lease: Lease): boolean {
    const age = machineMs() - lease.beatMs;
    return age < 0 || age > this.#options.leaseMs || isGone(lease.process);
  }

  #beat(): void {
    this.#beatMs = machineMs();
    const lease: Lease = { token: this.#token, process: thisProcess(), beatMs: this.#beatMs };
    this.#store.put(metaKey.maintenance, lease);
  }

  /** Inside a write: holds the lease, and holds it longer. */
  #checkLease(): void {
    if (this.#store.read<Lease>(metaKey.maintenance)?.token !== this.#token) throw new LeaseLost();
    this.#beat();
  }

  async #pause(): Promise<void> {
    const { pause = turn, leaseMs } = this.#options;
    await pause();
    if (this.#stop.signal.aborted) throw new LeaseLost();
    // Reading writes nothing, and may take longer than the lease.
    if (machineMs() - this.#beatMs > leaseMs / 3) await this.#store.write(() => this.#checkLease());
  }

  #sleep(): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#stop;
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      // Maintenance alone keeps no process alive.
      const timer = setTimeout(wake, this.#options.intervalMs).unref();
      signal.addEventListener('abort', wake, { once: true });
      if (signal.aborted) wake();
    });
  }
}
