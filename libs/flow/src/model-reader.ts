import type { ChangeId } from '@mysync/core';
import { type AckOutcome, AckWindow, type Batch } from './ack-window.ts';
import { CheckpointTracker, type PartitionMark, type TransactionEnd } from './checkpoint-tracker.ts';
import {
  type Change,
  changeOf,
  endAt,
  type Item,
  type LogRecord,
  published,
  type SavedCheckpoint,
  type Surroundings,
  WINDOW_ITEMS,
} from './model-log.ts';
import { NaiveWindow, type WindowLike } from './naive-window.ts';

interface Flying {
  readonly partition: number;
  readonly batch: Batch<Item>;
  readonly records: readonly LogRecord[];
  state: 'sent' | 'answered' | 'failed';
  offset: number;
}

/** One life of a reader. */
export class Reader {
  readonly #world: Surroundings;
  readonly #epoch: number;
  readonly #frontier: readonly PartitionMark[];
  readonly #windows: readonly WindowLike<Item>[];
  readonly #tracker: CheckpointTracker;
  readonly #lastChange: (ChangeId & { ordinal: number })[];
  readonly #sentItems = new Map<string, Item>();
  readonly #lastAcked: PartitionMark[];
  #flying: Flying[] = [];
  #next: number;
  #end: TransactionEnd;
  #heartbeats: number;
  #arrivals = 0;

  constructor(
    world: Surroundings,
    epoch: number,
    checkpoint: SavedCheckpoint,
    frontier: readonly PartitionMark[],
    fences: readonly number[],
  ) {
    this.#world = world;
    this.#epoch = epoch;
    this.#frontier = frontier;
    this.#windows = frontier.map((mark, partition) => {
      const limits = { maxItems: WINDOW_ITEMS, maxBytes: 100, maxOpen: 4 };
      const options = { ...limits, firstSequence: mark.sequence + 1, lastOffset: fences[partition] ?? -1 };
      return world.has('earlyack')
        ? new NaiveWindow<Item>({ ...options, earlyAck: true })
        : new AckWindow<Item>(options);
    });
    const { end, marks } = checkpoint;
    this.#end = end;
    this.#tracker = new CheckpointTracker({ epoch, start: end, covered: marks, frontier, maxGroups: 4 });
    this.#lastChange = frontier.map((mark) => mark.change);
    this.#lastAcked = [...frontier];
    const next = world.source.findIndex((change) => change.transaction.offset >= end.position.offset);
    this.#next = next < 0 ? world.source.length : next;
    this.#heartbeats = world.random.integer(0, 3);
  }

  finished(): boolean {
    return this.#next === this.#world.source.length && this.#windows.every((window) => window.length === 0);
  }

  progress(): { readonly end: TransactionEnd; readonly marks: readonly PartitionMark[] } {
    const { end, partitions } = this.#tracker.current();
    const marks = this.#world.has('ackedmarks') ? [...this.#lastAcked] : partitions;
    return { end: this.#world.has('eagercheckpoint') ? this.#end : end, marks };
  }

  /** Reads a little of the source into the windows, then sends one batch. */
  send(): void {
    const { random } = this.#world;
    for (let n = random.integer(1, 4); n > 0 && this.#next < this.#world.source.length; n--) {
      if (!this.#windows.every((window) => window.canPut())) break;
      this.#read(this.#world.source[this.#next++] as Change);
    }
    const partition = random.integer(0, this.#windows.length - 1);
    if (this.#heartbeats > 0 && random.chance(0.1)) this.#heartbeat(partition);
    const batch = this.#windows[partition]?.take(random.integer(1, 3), 100) ?? null;
    if (batch === null) return;
    const generation = this.#world.has('nogen') ? 0 : batch.generation;
    const numbers = { epoch: this.#epoch, generation, base: batch.base };
    const records = batch.items.map((item, i) => {
      this.#sentItems.set(`${partition}:${batch.firstSequence + i}`, item);
      return { key: item.key, value: item.value, ...numbers, sequence: batch.firstSequence + i, item };
    });
    this.#flying.push({ partition, batch, records, state: 'sent', offset: -1 });
  }

  /** The broker stores a batch, or loses it; the answer may be lost. */
  store(): void {
    const { random } = this.#world;
    if (this.#flying.length === 0) return;
    const flying = random.pick(this.#flying);
    if (flying.state !== 'sent') return;
    if (random.chance(0.8)) {
      flying.offset = this.#world.logs[flying.partition]?.append(flying.records) ?? -1;
      flying.state = random.chance(0.9) ? 'answered' : 'failed';
    } else {
      flying.state = 'failed';
    }
  }

  /** An answer arrives. True when a base moved. */
  answer(): boolean {
    const { random } = this.#world;
    if (this.#flying.length === 0) return false;
    const flying = random.pick(this.#flying);
    if (flying.state === 'sent') return false;
    const window = this.#windows[flying.partition] as WindowLike<Item>;
    this.#flying.splice(this.#flying.indexOf(flying), 1);
    const offset = this.#world.has('arrival') ? this.#arrivals++ + 1000 * (flying.batch.id + 1) : flying.offset;
    const { id } = flying.batch;
    const outcome = flying.state === 'failed' ? window.failed(id) : window.acked(id, offset);
    if (outcome.kind === 'advanced') {
      this.#noteAcked(flying, outcome);
      for (const run of outcome.passed) this.#tracker.acked(flying.partition, run);
      return true;
    }
    if (outcome.kind === 'rewind') {
      if (outcome.reason === 'log-shrank') throw new Error('a batch was stored below what was passed');
      this.#world.seen.rewinds++;
      if (this.#world.has('late')) this.#world.zombies.push(...this.#flying.filter(({ state }) => state === 'sent'));
      this.#flying = [];
      for (const each of this.#windows) each.rewind();
    }
    return false;
  }

  /** What was on its way lands now, or never; unfenced, later. */
  die(): void {
    const { random } = this.#world;
    for (const flying of random.shuffle(this.#flying)) {
      if (flying.state !== 'sent') continue;
      if (random.chance(0.5)) this.#world.logs[flying.partition]?.append(flying.records);
      else if (this.#world.has('zombie')) this.#world.zombies.push(flying);
    }
  }

  #noteAcked({ partition }: Flying, outcome: AckOutcome & { kind: 'advanced' }): void {
    const { sequence, offset, passed } = outcome;
    const item = this.#sentItems.get(`${partition}:${sequence}`);
    if (item === undefined) return;
    const generation = passed.at(-1)?.generation ?? 0;
    this.#lastAcked[partition] = { epoch: this.#epoch, generation, sequence, offset, change: changeOf(item) };
  }

  #read(change: Change): void {
    const partition = this.#world.partitionOf(change.key);
    const { transaction, ordinal } = change;
    if (!published(change, (this.#frontier[partition] as PartitionMark).change)) {
      const sequence = this.#windows[partition]?.put({ ...change, heartbeat: false }, 1) ?? 0;
      this.#tracker.put(partition, sequence, transaction, ordinal);
      this.#lastChange[partition] = changeOf(change);
    }
    const following = this.#world.source[this.#next];
    if (following === undefined || following.transaction.offset !== transaction.offset) {
      this.#end = endAt(transaction.offset + 50);
      this.#tracker.commit(this.#end);
    }
  }

  #heartbeat(partition: number): void {
    const window = this.#windows[partition];
    if (!window?.canPut()) return;
    this.#heartbeats--;
    const transaction = this.#lastChange[partition] as ChangeId;
    const { ordinal } = transaction;
    const item = { key: 'heartbeat', value: this.#heartbeats, transaction, ordinal, version: 0, heartbeat: true };
    this.#tracker.put(partition, window.put(item, 1), transaction, ordinal);
    if (this.#atBoundary()) this.#tracker.keepalive(this.#end);
  }

  #atBoundary(): boolean {
    const last = this.#world.source[this.#next - 1];
    return last === undefined || last.transaction.offset < this.#end.position.offset;
  }
}
