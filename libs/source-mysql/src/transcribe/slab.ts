/** Where records stay. */
import type { RowLender } from '@mysync/wire';
import { SLAB_BYTES, SLAB_COUNT, SLAB_ROOM, SLABS } from './layout.ts';

/** Where records go, as places in the module's memory. */
export interface Room {
  /** Places of records are counted from here. */
  readonly begin: number;
  /** The first byte that is free. */
  readonly first: number;
  /** No record begins here or further on. */
  readonly enough: number;
  /** No record ends further on. */
  readonly limit: number;
}

/** Of the module's memory. */
type View = (from: number, to: number) => Buffer;

/** Part of the module's memory: records are written where they stay, and others over them when all were given back. */
export class LentSlab implements RowLender, Room {
  readonly slab: Buffer;
  readonly begin: number;
  readonly limit: number;
  /** Bytes that are taken. */
  at = 0;
  /** Records that were not given back, and one for whoever writes. */
  #held = 0;
  readonly #free: LentSlab[];

  constructor(view: View, number: number, free: LentSlab[]) {
    this.begin = SLABS + number * SLAB_BYTES;
    this.limit = this.begin + SLAB_ROOM;
    this.slab = view(this.begin, this.begin + SLAB_BYTES);
    this.#free = free;
  }

  get first(): number {
    return this.begin + this.at;
  }

  get enough(): number {
    return this.limit;
  }

  hold(records: number): void {
    this.#held += records;
  }

  takeBack(): void {
    this.#held -= 1;
    if (this.#held === 0) this.#free.push(this);
  }
}

/** The one that was given back last is written first: it may still be in the processor's cache. */
export class LentSlabs {
  readonly #view: View;
  readonly #free: LentSlab[] = [];
  #made = 0;
  #slab: LentSlab | undefined;

  constructor(view: View) {
    this.#view = view;
  }

  /** With room for so many bytes; undefined when somebody has records in each of them. */
  withRoom(bytes: number): LentSlab | undefined {
    if (this.#slab !== undefined && this.#slab.at + bytes <= SLAB_ROOM) return this.#slab;
    this.#slab?.takeBack();
    this.#slab = this.#free.pop() ?? this.#make();
    if (this.#slab === undefined) return undefined;
    this.#slab.at = 0;
    this.#slab.hold(1);
    return this.#slab;
  }

  #make(): LentSlab | undefined {
    if (this.#made === SLAB_COUNT) return undefined;
    this.#made += 1;
    return new LentSlab(this.#view, this.#made - 1, this.#free);
  }
}

/** Of the collector's memory, shared by many records: freed when the last of them is, so it is small. A record that is larger has one of its own. */
export class OwnSlabs {
  /** Where `copy` copies to. */
  slab: Buffer = Buffer.alloc(0);
  /** The first byte of it that is free. */
  at = 0;

  /** Begins another one, with room for so many bytes at least. */
  renew(bytes: number): void {
    this.slab = Buffer.allocUnsafeSlow(Math.max(bytes, SLAB_BYTES));
    this.at = 0;
  }

  get room(): number {
    return this.slab.length - this.at;
  }

  copy(bytes: Uint8Array): void {
    this.slab.set(bytes, this.at);
    this.at += bytes.length;
  }
}
