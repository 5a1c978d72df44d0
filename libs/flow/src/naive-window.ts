/** The ack window written down as plainly as possible, slow and with nothing shared: what the tests hold `AckWindow` against. */
import type { AckOutcome, AckWindow, Batch, BatchState, PassedBatch, RewindReason } from './ack-window.ts';

export interface NaiveOptions {
  readonly firstSequence: number;
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly maxOpen: number;
  readonly lastOffset?: number;
  /** A mutation: the base moves over a batch although one that was sent before its ack is open. */
  readonly earlyAck?: boolean;
}

interface NaiveItem<T> {
  readonly item: T;
  readonly bytes: number;
  readonly sequence: number;
}

interface NaiveBatch<T> {
  readonly id: number;
  readonly generation: number;
  readonly contents: readonly NaiveItem<T>[];
  readonly sentAt: number;
  offset: number | null;
  ackedAt: number | null;
}

export type WindowLike<T> = Pick<
  AckWindow<T>,
  'put' | 'canPut' | 'take' | 'acked' | 'failed' | 'rewind' | 'length' | 'base' | 'batchState'
>;

export class NaiveWindow<T> implements WindowLike<T> {
  readonly #options: NaiveOptions;
  #held: NaiveItem<T>[] = [];
  #sent: NaiveBatch<T>[] = [];
  #nextSequence: number;
  #ids = 0;
  #time = 0;
  #halted = false;
  #generationBase: number;
  #lastOffset: number;
  generation = 0;

  constructor(options: NaiveOptions) {
    this.#options = options;
    this.#nextSequence = options.firstSequence;
    this.#generationBase = options.firstSequence;
    this.#lastOffset = options.lastOffset ?? -1;
  }

  get length(): number {
    return this.#held.length;
  }

  get bytes(): number {
    return this.#held.reduce((sum, held) => sum + held.bytes, 0);
  }

  get base(): number {
    return this.#held[0]?.sequence ?? this.#nextSequence;
  }

  canPut(): boolean {
    return this.#held.length < this.#options.maxItems && this.bytes < this.#options.maxBytes;
  }

  put(item: T, bytes: number): number {
    this.#held.push({ item, bytes, sequence: this.#nextSequence });
    return this.#nextSequence++;
  }

  take(maxItems: number, maxBytes: number): Batch<T> | null {
    const open = this.#sent.filter((batch) => batch.ackedAt === null).length;
    const sentItems = this.#sent.flatMap((batch) => batch.contents);
    const unsent = this.#held.filter((held) => !sentItems.includes(held));
    if (this.#halted || unsent.length === 0 || open >= this.#options.maxOpen) return null;
    const contents: NaiveItem<T>[] = [];
    let bytes = 0;
    for (const held of unsent) {
      if (contents.length > 0 && (contents.length >= maxItems || bytes + held.bytes > maxBytes)) break;
      contents.push(held);
      bytes += held.bytes;
    }
    const id = this.#ids++;
    const { generation } = this;
    this.#sent.push({ id, generation, contents, sentAt: this.#time++, offset: null, ackedAt: null });
    const firstSequence = contents[0]?.sequence ?? 0;
    const base = this.#generationBase;
    return { id, generation, base, firstSequence, items: contents.map((held) => held.item), bytes };
  }

  acked(id: number, baseOffset: number): AckOutcome {
    if (this.batchState(id) !== 'open') return { kind: 'ignored' };
    if (!this.#options.earlyAck && baseOffset <= this.#lastOffset) return this.#halt('log-shrank');
    const acked = this.#sent.find((batch) => batch.id === id) as NaiveBatch<T>;
    acked.offset = baseOffset;
    acked.ackedAt = this.#time++;
    let end = -1;
    for (const batch of this.#sent) {
      if (batch.offset === null) continue;
      if (batch.offset < end) return this.#halt('order');
      end = batch.offset + batch.contents.length;
    }
    const passed: PassedBatch[] = [];
    while (this.#sent[0] !== undefined && this.#mayPass(this.#sent[0])) {
      const head = this.#sent.shift() as NaiveBatch<T>;
      this.#held.splice(0, head.contents.length);
      const first = head.contents[0]?.sequence ?? 0;
      const offset = head.offset ?? 0;
      const { generation } = head;
      passed.push({ generation, firstSequence: first, count: head.contents.length, baseOffset: offset });
      this.#lastOffset = offset + head.contents.length - 1;
    }
    if (passed.length === 0) return { kind: 'held' };
    const items = passed.reduce((sum, batch) => sum + batch.count, 0);
    return { kind: 'advanced', sequence: this.base - 1, offset: this.#lastOffset, items, passed };
  }

  failed(id: number): AckOutcome {
    return ['open', 'acked'].includes(this.batchState(id)) ? this.#halt('failed') : { kind: 'ignored' };
  }

  rewind(): void {
    this.#sent = [];
    this.#halted = false;
    this.generation++;
    this.#generationBase = this.base;
  }

  batchState(id: number): BatchState {
    if (id >= this.#ids) return 'unsent';
    const batch = this.#sent.find((sent) => sent.id === id);
    if (batch === undefined) return 'gone';
    return batch.ackedAt === null ? 'open' : 'acked';
  }

  #mayPass(head: NaiveBatch<T>): boolean {
    const { ackedAt } = head;
    if (ackedAt === null) return false;
    return this.#options.earlyAck || !this.#sent.some((batch) => batch.ackedAt === null && batch.sentAt < ackedAt);
  }

  #halt(reason: RewindReason): AckOutcome {
    this.#sent = [];
    this.#halted = true;
    return { kind: 'rewind', reason };
  }
}
