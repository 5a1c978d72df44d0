/**
 * One record on its way from an encoder to a log: the message and behind it the key, in a slab that many share.
 *
 * Views of the bytes are made when they are asked for: a row that waits is one object, and most of what a reader does to it (counting,
 * stamping, adding up sizes) needs none. Delivery numbers are zero and it is not marked as its transaction's last until somebody says so.
 */
import type { Operation } from '@mysync/core';
import type { ByteWriter } from './byte-writer.ts';
import { type DeliveryStamp, readOperation, setLastInTransaction, stampDelivery } from './delivery.ts';

export class EncodedRow {
  /** Its owner alone writes to its part of it. */
  readonly slab: Uint8Array;
  /** Where the message begins. */
  readonly start: number;
  /** Where the message ends and the key begins. */
  readonly keyStart: number;
  readonly end: number;
  /** The record's value is to be null, with the message in a header. */
  readonly deletes: boolean;
  /** From 1 within the transaction, over captured rows in log order; 0 for rows of a snapshot. */
  readonly ordinal: number;
  /** Signed, so that it is a small integer to the engine. */
  readonly #hash: number;
  readonly #lender: RowLender | undefined;

  /** `lender`: whose memory it is; without, the collector's. */
  constructor(
    slab: Uint8Array,
    start: number,
    keyStart: number,
    end: number,
    deletes: boolean,
    partitionHash: number,
    ordinal: number,
    lender?: RowLender,
  ) {
    this.slab = slab;
    this.start = start;
    this.keyStart = keyStart;
    this.end = end;
    this.deletes = deletes;
    this.ordinal = ordinal;
    this.#hash = partitionHash | 0;
    this.#lender = lender;
  }

  get kind(): 'row' {
    return 'row';
  }

  /** Unsigned, 32 bits. */
  get partitionHash(): number {
    return this.#hash >>> 0;
  }

  /** A view. */
  get payload(): Uint8Array {
    return new Uint8Array(this.slab.buffer, this.slab.byteOffset + this.start, this.keyStart - this.start);
  }

  /** A view. */
  get key(): Uint8Array {
    return new Uint8Array(this.slab.buffer, this.slab.byteOffset + this.keyStart, this.end - this.keyStart);
  }

  /** Of message and key. */
  get bytes(): number {
    return this.end - this.start;
  }

  get operation(): Operation {
    return readOperation(this.slab, this.start);
  }

  stamp(stamp: DeliveryStamp): void {
    stampDelivery(this.slab, stamp, this.start);
  }

  markLast(): void {
    setLastInTransaction(this.slab, true, this.keyStart);
  }

  /** To be called once when nobody needs its bytes any more: they may be written over then. Or never: then the collector finds out. */
  giveBack(): void {
    this.#lender?.takeBack();
  }
}

/** Of memory that is used again once all rows in it were given back. */
export interface RowLender {
  /** One of the rows in it. */
  takeBack(): void;
}

/** What stands in the writer, as its receiver's own: a message of `length` bytes and its key. */
export function takeRow(
  writer: ByteWriter,
  length: number,
  deletes: boolean,
  partitionHash: number,
  ordinal: number,
): EncodedRow {
  const { buffer, start, position } = writer;
  writer.start = position;
  return new EncodedRow(buffer, start, start + length, position, deletes, partitionHash, ordinal);
}
