import { coreErrors } from '@mysync/core';
import { Ring } from './ring.ts';

export interface AckWindowOptions<T> {
  /** Sequence of the first item put: the frontier + 1. */
  readonly firstSequence: number;
  /** Most items held, sent or not. */
  readonly maxItems: number;
  /** No item is put once this many bytes are held: overrun by at most one item. */
  readonly maxBytes: number;
  /** Most batches sent and not yet answered. */
  readonly maxOpen: number;
  /** Of the first batches; default 0. */
  readonly generation?: number;
  /** Offset of the last record known in the partition (the fence); default -1. */
  readonly lastOffset?: number;
  /** Called with each item that leaves the window: nobody sends it again. */
  readonly onPassed?: (item: T) => void;
}

/** A contiguous run of items to be stamped with (generation, base, firstSequence + i) and sent as one batch. */
export interface Batch<T> {
  /** Never used twice in the life of a window. */
  readonly id: number;
  readonly generation: number;
  /** First sequence of this generation. */
  readonly base: number;
  readonly firstSequence: number;
  readonly items: readonly T[];
  readonly bytes: number;
}

/** A batch that the base moved over: its items are stored for good, in order, from `baseOffset` on. */
export interface PassedBatch {
  readonly generation: number;
  readonly firstSequence: number;
  readonly count: number;
  readonly baseOffset: number;
}

/**
 * Why everything from the base has to go again:
 * `failed` a send failed for good · `order` stored in another order than sent · `log-shrank` stored below what was passed before:
 * the log lost acked records, so sending again is not enough; stop and start anew from the checkpoint, which will tell.
 */
export type RewindReason = 'failed' | 'order' | 'log-shrank';

export type AckOutcome =
  /** The base moved: `sequence` is the last passed, `offset` its place in the log, `items` how many left the window. */
  | {
      readonly kind: 'advanced';
      readonly sequence: number;
      readonly offset: number;
      readonly items: number;
      /** In order; `count`s add up to `items`. */
      readonly passed: readonly PassedBatch[];
    }
  /** Noted; something sent earlier, or before this ack, is still open. */
  | { readonly kind: 'held' }
  /** An answer for a batch that is passed or dead. */
  | { readonly kind: 'ignored' }
  /** The window is halted until `rewind` is called. */
  | { readonly kind: 'rewind'; readonly reason: RewindReason };

/** Of a batch id: `gone` is passed by the base, or dead by a halt or rewind. */
export type BatchState = 'unsent' | 'open' | 'acked' | 'gone';
export type BatchEvent = 'acked' | 'failed';
export type BatchAction = 'settle' | 'halt' | 'ignore' | 'misuse';

/** The whole table; the type forbids gaps. `settle` still halts when the offset shows another order (docs/spec/ack-window.md). */
export const BATCH_TRANSITIONS: Readonly<Record<BatchState, Readonly<Record<BatchEvent, BatchAction>>>> = {
  unsent: { acked: 'misuse', failed: 'misuse' },
  open: { acked: 'settle', failed: 'halt' },
  acked: { acked: 'ignore', failed: 'halt' },
  gone: { acked: 'ignore', failed: 'ignore' },
};

interface SentBatch {
  readonly generation: number;
  readonly firstSequence: number;
  readonly count: number;
  readonly bytes: number;
  readonly sentAt: number;
  /** -1 while open. */
  baseOffset: number;
  /** Id of the next batch to be sent when this one's ack came: what is older than that was sent before the ack. */
  ackedBefore: number;
}

const HELD: AckOutcome = { kind: 'held' };
const IGNORED: AckOutcome = { kind: 'ignored' };
const nothing = (): void => {};

/**
 * The retransmit buffer of one partition: items are put, sent in batches, and leave when their batch is surely stored in order.
 *
 *     dropped │ acked, held │ open │ open │ not yet sent │ free
 *             base                        cursor         put
 *
 * A pure state machine: no I/O, no timers. Spec and transition tables: docs/spec/ack-window.md.
 *
 * 1. Sequences are contiguous: each item put gets the last one's + 1, and keeps it however often it is sent.
 * 2. The order as stored (the base offsets in the acks) is the truth, never the order in which acks arrive: as soon as two
 *    acked batches lie otherwise than they were sent, the window halts.
 * 3. The base moves over a batch only when it is acked, everything before it was passed, and no batch that was sent before its ack is
 *    still open: such a batch may have been stored in front of it.
 * 4. After a rewind everything from the base is sent again under the next generation, whose `base` is the window's base at that
 *    moment; ids of older batches are dead, so their late acks change nothing.
 * 5. At most `maxItems` items, `maxBytes` bytes plus one item, and `maxOpen` open batches.
 * 6. A halted window sends nothing until `rewind`: the caller first makes sure that nothing sent before can still be stored
 *    (the producer epoch is raised), then rewinds the windows of all partitions together.
 *
 * Why 3: with acks 2 before 1 both stored 2, 1: a base that had moved on the first ack would have dropped what must go again.
 */
export class AckWindow<T> {
  readonly #maxItems: number;
  readonly #maxBytes: number;
  readonly #maxOpen: number;
  readonly #onPassed: (item: T) => void;
  readonly #items: Ring<T>;
  readonly #sizes: Ring<number>;
  /** Batches between base and cursor, oldest first; the id of the first is `#headId`. */
  readonly #sent = new Ring<SentBatch>();
  #headId = 0;
  #nextId = 0;
  /** Smallest id that is still open; `#nextId` when none is. */
  #firstOpenId = 0;
  #openCount = 0;
  /** Sequence of the oldest item held (or of the next one put). */
  #base: number;
  /** Items from the base that were sent. */
  #cursor = 0;
  #bytes = 0;
  #generation: number;
  #generationBase: number;
  #lastOffset: number;
  #halted = false;

  constructor(options: AckWindowOptions<T>) {
    this.#maxItems = options.maxItems;
    this.#maxBytes = options.maxBytes;
    this.#maxOpen = options.maxOpen;
    this.#onPassed = options.onPassed ?? nothing;
    this.#items = new Ring(Math.min(options.maxItems, 256));
    this.#sizes = new Ring(Math.min(options.maxItems, 256));
    this.#base = options.firstSequence;
    this.#generation = options.generation ?? 0;
    this.#generationBase = options.firstSequence;
    this.#lastOffset = options.lastOffset ?? -1;
  }

  /** Items held. */
  get length(): number {
    return this.#items.length;
  }

  /** Bytes held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Items put and not yet sent under the present generation. */
  get unsent(): number {
    return this.#items.length - this.#cursor;
  }

  /** Batches sent and not answered. */
  get openBatches(): number {
    return this.#openCount;
  }

  /** Sequence of the oldest item held, or of the next one put when the window is empty: all before it is acked. */
  get base(): number {
    return this.#base;
  }

  /** Sequence that the next item will get. */
  get nextSequence(): number {
    return this.#base + this.#items.length;
  }

  get generation(): number {
    return this.#generation;
  }

  /** True from a `rewind` outcome until `rewind` is called. */
  get halted(): boolean {
    return this.#halted;
  }

  /** The oldest item held, or undefined: for the lag. */
  oldest(): T | undefined {
    return this.#items.length === 0 ? undefined : this.#items.at(0);
  }

  /** The `atMs` given to `take` for the oldest batch that is still open, or null: for the deadline of a stuck head. */
  oldestOpenSince(): number | null {
    return this.#openCount === 0 ? null : this.#sent.at(this.#firstOpenId - this.#headId).sentAt;
  }

  canPut(): boolean {
    return this.#items.length < this.#maxItems && this.#bytes < this.#maxBytes;
  }

  /** Takes an item over and gives its sequence. Only while `canPut`. */
  put(item: T, bytes: number): number {
    if (!this.canPut()) {
      throw coreErrors.INTERNAL({
        message: 'an item was put into a full ack window',
        where: { items: this.#items.length, bytes: this.#bytes },
      });
    }
    this.#items.push(item);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    return this.#base + this.#items.length - 1;
  }

  /**
   * The next batch to send: at most `maxItems` items and `maxBytes` bytes, but always one item. null when there is nothing
   * to send, `maxOpen` batches are open or the window is halted. The caller stamps the items and sends the batches in the
   * order taken.
   */
  take(maxItems: number, maxBytes: number, atMs = 0): Batch<T> | null {
    const available = this.#items.length - this.#cursor;
    if (this.#halted || available === 0 || this.#openCount >= this.#maxOpen) return null;
    const limit = Math.min(available, Math.max(maxItems, 1));
    const from = this.#cursor;
    let bytes = this.#sizes.at(from);
    let count = 1;
    while (count < limit) {
      const next = bytes + this.#sizes.at(from + count);
      if (next > maxBytes) break;
      bytes = next;
      count++;
    }
    const items: T[] = new Array(count);
    for (let i = 0; i < count; i++) items[i] = this.#items.at(from + i);
    const id = this.#nextId++;
    const generation = this.#generation;
    const firstSequence = this.#base + from;
    this.#sent.push({ generation, firstSequence, count, bytes, sentAt: atMs, baseOffset: -1, ackedBefore: 0 });
    this.#openCount++;
    this.#cursor += count;
    return { id, generation, base: this.#generationBase, firstSequence, items, bytes };
  }

  /** The batch is stored durably, its first item at `baseOffset`. */
  acked(id: number, baseOffset: number): AckOutcome {
    const action = BATCH_TRANSITIONS[this.batchState(id)].acked;
    if (action === 'ignore') return IGNORED;
    if (action !== 'settle') return this.#misuse(id, 'acked');
    const index = id - this.#headId;
    const batch = this.#sent.at(index);
    if (baseOffset <= this.#lastOffset) return this.#halt('log-shrank');
    batch.baseOffset = baseOffset;
    batch.ackedBefore = this.#nextId;
    this.#openCount--;
    if (!this.#inOrder(index, batch)) return this.#halt('order');
    while (this.#firstOpenId < this.#nextId && this.#sent.at(this.#firstOpenId - this.#headId).baseOffset >= 0) {
      this.#firstOpenId++;
    }
    return this.#movableHead() ? this.#advance() : HELD;
  }

  /** The batch was not stored and never will be, or nobody can tell: everything from the base has to go again. */
  failed(id: number): AckOutcome {
    const action = BATCH_TRANSITIONS[this.batchState(id)].failed;
    if (action === 'ignore') return IGNORED;
    if (action !== 'halt') return this.#misuse(id, 'failed');
    return this.#halt('failed');
  }

  /**
   * Everything from the base goes again under the next generation. Allowed at any time; call it on the windows of all partitions
   * after the producer epoch was raised.
   */
  rewind(): void {
    this.#dropBatches();
    this.#generation++;
    this.#generationBase = this.#base;
    this.#halted = false;
  }

  batchState(id: number): BatchState {
    if (id >= this.#nextId) return 'unsent';
    if (id < this.#headId) return 'gone';
    return this.#sent.at(id - this.#headId).baseOffset < 0 ? 'open' : 'acked';
  }

  /** Invariant 2. The nearest acked neighbours are enough: between them lie open batches only, at most `maxOpen`. */
  #inOrder(index: number, batch: SentBatch): boolean {
    for (let i = index - 1; i >= 0; i--) {
      const earlier = this.#sent.at(i);
      if (earlier.baseOffset < 0) continue;
      if (earlier.baseOffset + earlier.count > batch.baseOffset) return false;
      break;
    }
    for (let i = index + 1; i < this.#sent.length; i++) {
      const later = this.#sent.at(i);
      if (later.baseOffset < 0) continue;
      return batch.baseOffset + batch.count <= later.baseOffset;
    }
    return true;
  }

  /** Invariant 3. */
  #movableHead(): boolean {
    return this.#headId < this.#firstOpenId && this.#sent.at(0).ackedBefore <= this.#firstOpenId;
  }

  #advance(): AckOutcome {
    const passed: PassedBatch[] = [];
    let items = 0;
    while (this.#movableHead()) {
      const batch = this.#sent.shift();
      this.#headId++;
      for (let i = 0; i < batch.count; i++) {
        this.#onPassed(this.#items.shift());
        this.#sizes.shift();
      }
      this.#bytes -= batch.bytes;
      this.#base += batch.count;
      this.#cursor -= batch.count;
      this.#lastOffset = batch.baseOffset + batch.count - 1;
      items += batch.count;
      passed.push(batch);
    }
    return { kind: 'advanced', sequence: this.#base - 1, offset: this.#lastOffset, items, passed };
  }

  #halt(reason: RewindReason): AckOutcome {
    this.#dropBatches();
    this.#halted = true;
    return { kind: 'rewind', reason };
  }

  #dropBatches(): void {
    this.#sent.clear();
    this.#headId = this.#nextId;
    this.#firstOpenId = this.#nextId;
    this.#openCount = 0;
    this.#cursor = 0;
  }

  #misuse(id: number, event: BatchEvent): never {
    throw coreErrors.INTERNAL({ message: `batch ${id} ${event} before it was sent`, where: { batch: id } });
  }
}
