/**
 * A member of a consumer group of the log. `membership.ts` has the rules; this is the loop that follows them.
 *
 * 1. A partition is handled here only between taking it in a transaction and giving it up in one.
 * 2. It is given up when its handler ended, or `handoverMs` after it was asked back, whichever comes first; from then on
 *    its commits are refused. Where that write fails, the next turn does it again.
 * 3. While a handler of an earlier ownership still runs, the same partition is not taken again.
 * 4. A member that finds itself put out (it was frozen) asks all its handlers to end and joins again under a new name. One that was
 *    put out between its look and its beat has joined again without noticing: what is not held under its token any more is lost.
 */
import { Contact, causeText, isMysyncError, type Outage, systemClock } from '@mysync/core';
import {
  type AssignedPartition,
  type Consumer,
  type ConsumerOptions,
  type RecordBatch,
  transportErrors,
} from '@mysync/transport';
import { type Acquired, commitOffset, type GroupPlace, giveUp, groupKey, leave, step, view } from './membership.ts';
import { follow } from './partition-reader.ts';
import { randomId } from './process-identity.ts';
import { closedError } from './store.ts';
import { describe, topicMissing } from './topics.ts';

export interface LogConsumerOptions extends ConsumerOptions {
  readonly place: GroupPlace;
  readonly leaseMs: number;
  readonly onClose: (consumer: LogConsumer) => void;
}

interface Held {
  readonly partition: number;
  readonly token: string;
  readonly revoked: AbortController;
  readonly ended: Promise<void>;
  handover: NodeJS.Timeout | undefined;
  /** `handoverMs` have passed since it was asked back. */
  isOverdue: boolean;
}

type Handle = (partition: AssignedPartition) => Promise<void>;

/** How often a member looks whether another one died: that is found by looking, everything else rings. */
const LOOK_MS = 250;

export class LogConsumer implements Consumer {
  readonly #options: LogConsumerOptions;
  readonly #held = new Map<number, Held>();
  readonly #stop = new AbortController();
  #memberId = randomId();
  #running: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #hasFailed: (() => void) | undefined;
  /** With the log, which takes no writes for now. */
  readonly #contact = new Contact();

  constructor(options: LogConsumerOptions) {
    this.#options = options;
  }

  get outage(): Outage | null {
    return this.#contact.outage;
  }

  run(handle: Handle, signal: AbortSignal): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.reject(closedError());
    this.#running ??= this.#run(handle, signal);
    return this.#running;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running?.catch(() => {
      // Whoever called `run` has this failure.
    });
    this.#options.onClose(this);
  }

  async #run(handle: Handle, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const end = (): void => over.abort();
    this.#hasFailed = end;
    const stop = AbortSignal.any([signal, this.#stop.signal, over.signal]);
    try {
      while (!stop.aborted) {
        await this.#turn(handle);
        await this.#sleep(stop);
      }
    } catch (error) {
      this.#failure ??= { error };
    }
    for (const held of this.#held.values()) this.#revoke(held);
    while (this.#held.size > 0) await Promise.all([...this.#held.values()].map(({ ended }) => ended));
    await this.#write(() => leave(this.#options.place, this.#memberId));
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Looks at the group and does what this member has to do. */
  async #turn(handle: Handle): Promise<void> {
    const { place, leaseMs } = this.#options;
    const { store } = place;
    store.refresh();
    if (store.partition(place.topicId, 0) === undefined) throw topicMissing(this.#options.topic);
    let busy: ReadonlySet<number> = new Set(this.#held.keys());
    let seen = view(place, this.#memberId, busy);
    if (!seen.isMember && busy.size > 0) {
      for (const held of this.#held.values()) this.#revoke(held);
      this.#memberId = randomId();
    }
    if (!seen.isMember || seen.isStale || seen.sinceBeatMs > leaseMs / 3) {
      const acquired = await this.#write(() => step(place, this.#memberId, leaseMs, busy));
      for (const each of acquired ?? []) this.#begin(each, handle);
      store.refresh();
      busy = new Set(this.#held.keys());
      seen = view(place, this.#memberId, busy);
    }
    for (const held of this.#held.values()) {
      const isHeld = seen.tokens[held.partition] === held.token;
      if (!isHeld || seen.target[held.partition] !== this.#memberId) this.#revoke(held);
      if (isHeld && held.isOverdue) void this.#release(held.partition, held.token);
    }
  }

  /** A write that may wait for better times: the next turn tries again. */
  async #write<T>(action: () => T): Promise<T | undefined> {
    try {
      const done = await this.#options.place.store.write(action);
      this.#contact.made();
      return done;
    } catch (error) {
      if (!isMysyncError(error) || !error.retriable) throw error;
      this.#contact.lost(causeText(error), systemClock.monotonic());
      return undefined;
    }
  }

  async #sleep(stop: AbortSignal): Promise<void> {
    const turn = new AbortController();
    const wake = (): void => turn.abort();
    const timer = setTimeout(wake, LOOK_MS);
    stop.addEventListener('abort', wake, { once: true });
    if (!stop.aborted) await this.#options.place.store.wakeups.wait(groupKey(this.#options.place), turn.signal);
    clearTimeout(timer);
    stop.removeEventListener('abort', wake);
  }

  #begin(acquired: Acquired, handle: Handle): void {
    const revoked = new AbortController();
    const assigned = this.#assigned(acquired, revoked.signal);
    const { partition, token } = acquired;
    const work = async (): Promise<void> => {
      try {
        await handle(assigned);
        // A handler that ended by itself keeps its partition until that is asked back.
        await aborted(revoked.signal);
      } catch (error) {
        const lost = revoked.signal.aborted && isMysyncError(error, 'TRANSPORT_NOT_OWNER');
        if (!lost) this.#failure ??= { error };
      } finally {
        clearTimeout(held.handover);
        await this.#release(partition, token);
        this.#held.delete(partition);
        if (this.#failure !== undefined) this.#hasFailed?.();
        this.#options.place.store.wakeups.wake(groupKey(this.#options.place));
      }
    };
    let start = (): void => {};
    const started = new Promise<void>((resolve) => {
      start = resolve;
    });
    const held: Held = { partition, token, revoked, ended: started.then(work), handover: undefined, isOverdue: false };
    this.#held.set(partition, held);
    start();
  }

  async #release(partition: number, token: string): Promise<void> {
    try {
      await this.#write(() => giveUp(this.#options.place, partition, token));
    } catch (error) {
      this.#failure ??= { error };
      this.#hasFailed?.();
    }
  }

  #revoke(held: Held): void {
    if (held.revoked.signal.aborted) return;
    held.revoked.abort();
    held.handover = setTimeout(() => {
      held.isOverdue = true;
      void this.#release(held.partition, held.token);
    }, this.#options.handoverMs);
  }

  #assigned({ partition, token, committed, range }: Acquired, revoked: AbortSignal): AssignedPartition {
    const { place, topic, maxBatchBytes } = this.#options;
    const { store, topicId, entry } = place;
    const at = { store, topic, topicId, partition, until: undefined, maxBytes: maxBatchBytes };
    return {
      topic: describe(topic, entry),
      partition,
      committed,
      range,
      revoked,
      // what it reads lies in its own memory
      outage: null,
      batches: (from: number, signal?: AbortSignal): AsyncIterable<RecordBatch> =>
        follow({ ...at, from }, signal === undefined ? revoked : AbortSignal.any([revoked, signal])),
      commit: async (nextOffset: number): Promise<void> => {
        const done = await store.write(() => commitOffset(place, partition, token, nextOffset));
        if (!done) {
          throw transportErrors.TRANSPORT_NOT_OWNER({
            message: 'the partition belongs to another member now; the commit had no effect',
            where: { topic, partition, group: place.group },
          });
        }
      },
    };
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
