import { coreErrors } from '@mysync/core';
import { flowErrors } from './errors.ts';
import { Ring } from './ring.ts';

export interface BoundedQueueOptions {
  readonly maxItems: number;
  /** Overrun by at most one item, so that one of any size passes. */
  readonly maxBytes: number;
  /** Its abort ends both sides at once with the signal's reason; what is queued is discarded. */
  readonly signal?: AbortSignal;
}

type Closing =
  | { readonly kind: 'ended' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The consumer left, or the signal aborted: nothing is delivered any more. */
  | { readonly kind: 'stopped'; readonly error: unknown };

/** A put that waits for room. */
interface WaitingPut<T> {
  readonly item: T;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Hands items from producers to one consumer, bounded in items and bytes: a full queue makes the producer wait.
 *
 * 1. Items come out in the order of the puts that took them over.
 * 2. A producer's failure reaches the consumer, after the items put before it; an end likewise.
 * 3. A consumer that leaves (break, throw) or an abort ends the producers' waiting: no put is left hanging.
 */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #maxItems: number;
  readonly #maxBytes: number;
  readonly #signal: AbortSignal | undefined;
  readonly #items = new Ring<T>();
  readonly #sizes = new Ring<number>();
  #bytes = 0;
  #closing: Closing | null = null;
  #consumed = false;
  #wakeConsumer: (() => void) | null = null;
  readonly #waiting = new Ring<WaitingPut<T>>();
  readonly #onAbort = (): void => this.#stop(this.#signal?.reason);

  constructor(options: BoundedQueueOptions) {
    this.#maxItems = options.maxItems;
    this.#maxBytes = options.maxBytes;
    this.#signal = options.signal;
    if (options.signal?.aborted) this.#onAbort();
    else options.signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get length(): number {
    return this.#items.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False when full or closed. Puts that wait are let in as soon as there is room, so nobody overtakes them. */
  canPut(): boolean {
    return this.#closing === null && this.#hasRoom();
  }

  /** Takes the item over if there is room. */
  tryPut(item: T, bytes: number): boolean {
    if (!this.canPut()) return false;
    this.#add(item, bytes);
    return true;
  }

  /**
   * Waits for room and takes the item over. Rejects with the signal's reason, or FLOW_QUEUE_CLOSED when the consumer left
   * or the queue was ended.
   */
  async put(item: T, bytes: number): Promise<void> {
    if (this.tryPut(item, bytes)) return;
    if (this.#closing !== null) throw refusal(this.#closing);
    await new Promise<void>((resolve, reject) => this.#waiting.push({ item, bytes, resolve, reject }));
  }

  /** No more items: the consumer ends after those that are queued. */
  end(): void {
    if (this.#closing === null) this.#close({ kind: 'ended' });
  }

  /** The producer failed: the consumer throws `error` after the items that are queued. */
  fail(error: unknown): void {
    if (this.#closing === null) this.#close({ kind: 'failed', error });
  }

  /** One consumer only. Leaving the loop closes the queue. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    if (this.#consumed) throw coreErrors.INTERNAL({ message: 'a queue has two consumers' });
    this.#consumed = true;
    try {
      for (;;) {
        if (this.#closing?.kind === 'stopped') throw this.#closing.error;
        if (this.#items.length > 0) {
          yield this.#remove();
          continue;
        }
        if (this.#closing?.kind === 'failed') throw this.#closing.error;
        if (this.#closing?.kind === 'ended') return;
        await new Promise<void>((resolve) => {
          this.#wakeConsumer = resolve;
        });
      }
    } finally {
      this.#signal?.removeEventListener('abort', this.#onAbort);
      this.#stop(flowErrors.FLOW_QUEUE_CLOSED({ message: 'the consumer of the queue has left' }));
    }
  }

  #hasRoom(): boolean {
    return this.#items.length < this.#maxItems && this.#bytes < this.#maxBytes;
  }

  #add(item: T, bytes: number): void {
    this.#items.push(item);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
    this.#wake();
  }

  #remove(): T {
    this.#bytes -= this.#sizes.shift();
    const item = this.#items.shift();
    while (this.#waiting.length > 0 && this.#hasRoom()) {
      const put = this.#waiting.shift();
      this.#add(put.item, put.bytes);
      put.resolve();
    }
    return item;
  }

  #close(closing: Closing): void {
    this.#closing = closing;
    while (this.#waiting.length > 0) this.#waiting.shift().reject(refusal(closing));
    this.#wake();
  }

  /** Also after an end or a failure: what is still queued is discarded. */
  #stop(error: unknown): void {
    if (this.#closing?.kind !== 'stopped') this.#close({ kind: 'stopped', error });
    this.#items.clear();
    this.#sizes.clear();
    this.#bytes = 0;
  }

  #wake(): void {
    const wake = this.#wakeConsumer;
    this.#wakeConsumer = null;
    wake?.();
  }
}

function refusal(closing: Closing): unknown {
  if (closing.kind === 'stopped') return closing.error;
  return flowErrors.FLOW_QUEUE_CLOSED({ message: `an item was put into a queue that has ${closing.kind}` });
}
