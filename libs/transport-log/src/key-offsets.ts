/**
 * A map from record keys to offsets, in a third of the memory of a `Map` of strings: the keys lie one behind the other in blocks, and a
 * table of their hashes finds them. Keys are compared byte by byte: a hash alone never decides. The hash begins with a random
 * number, so that nobody can choose keys that fall together.
 */
import { randomInt } from 'node:crypto';

const BLOCK_BITS = 20;
const BLOCK_BYTES = 2 ** BLOCK_BITS;
const PAGE_BITS = 14;
const PAGE = 2 ** PAGE_BITS;
const LENGTH_BYTES = 4;
/** Of one key: its hash, its place, its offset. */
const ENTRY_BYTES = 16;

interface Page {
  readonly hashes: Uint32Array;
  /** Block and place within it. */
  readonly places: Uint32Array;
  readonly offsets: Float64Array;
}

export class KeyOffsets {
  readonly #seed = randomInt(2 ** 32);
  readonly #pages: Page[] = [];
  readonly #blocks: Buffer[] = [];
  /** Number of an entry + 1; 0: free. At most two thirds are taken. */
  #slots = new Uint32Array(64);
  #count = 0;
  #keyBytes = 0;
  #filled = BLOCK_BYTES;

  get size(): number {
    return this.#count;
  }

  /** What the keys so far take, without the rest of the last block. */
  get bytes(): number {
    return this.#keyBytes + this.#count * ENTRY_BYTES + this.#slots.byteLength;
  }

  /** The offset of the key that lies in `source`; -1: none. */
  get(source: Buffer, start: number, length: number): number {
    const entry = this.#slots[this.#find(source, start, length, this.#hash(source, start, length))] ?? 0;
    if (entry === 0) return -1;
    return this.#pages[(entry - 1) >>> PAGE_BITS]?.offsets[(entry - 1) & (PAGE - 1)] ?? -1;
  }

  set(source: Buffer, start: number, length: number, offset: number): void {
    const hash = this.#hash(source, start, length);
    const slot = this.#find(source, start, length, hash);
    let entry = this.#slots[slot] ?? 0;
    if (entry === 0) {
      entry = this.#add(hash, this.#keep(source, start, length));
      this.#slots[slot] = entry;
      if (this.#count * 3 > this.#slots.length * 2) this.#grow();
    }
    const page = this.#pages[(entry - 1) >>> PAGE_BITS];
    if (page !== undefined) page.offsets[(entry - 1) & (PAGE - 1)] = offset;
  }

  #hash(source: Buffer, start: number, length: number): number {
    let hash = this.#seed;
    for (let at = start; at < start + length; at++) hash = Math.imul(hash ^ (source[at] ?? 0), 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  /** The slot of the key, or the free one where it belongs. */
  #find(source: Buffer, start: number, length: number, hash: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = slots[slot] ?? 0;
      if (entry === 0) return slot;
      const page = this.#pages[(entry - 1) >>> PAGE_BITS];
      const index = (entry - 1) & (PAGE - 1);
      if (page?.hashes[index] === hash && this.#isKey(page.places[index] ?? 0, source, start, length)) return slot;
    }
  }

  #isKey(place: number, source: Buffer, start: number, length: number): boolean {
    const block = this.#blocks[place >>> BLOCK_BITS];
    const from = place & (BLOCK_BYTES - 1);
    if (block === undefined || block.readUInt32LE(from) !== length) return false;
    const first = from + LENGTH_BYTES;
    // The ends of keys differ sooner than their beginnings.
    for (let at = length - 1; at >= 0; at--) if (block[first + at] !== source[start + at]) return false;
    return true;
  }

  #keep(source: Buffer, start: number, length: number): number {
    const bytes = LENGTH_BYTES + length;
    if (this.#filled + bytes > BLOCK_BYTES) {
      this.#blocks.push(Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes)));
      this.#filled = 0;
    }
    const at = this.#filled;
    const block = this.#blocks.at(-1);
    block?.writeUInt32LE(length, at);
    if (block !== undefined) source.copy(block, at + LENGTH_BYTES, start, start + length);
    this.#filled += bytes;
    this.#keyBytes += bytes;
    return ((this.#blocks.length - 1) * BLOCK_BYTES + at) >>> 0;
  }

  #add(hash: number, place: number): number {
    const index = this.#count & (PAGE - 1);
    if (index === 0) {
      const [hashes, places] = [new Uint32Array(PAGE), new Uint32Array(PAGE)];
      this.#pages.push({ hashes, places, offsets: new Float64Array(PAGE) });
    }
    const page = this.#pages.at(-1);
    if (page !== undefined) {
      page.hashes[index] = hash;
      page.places[index] = place;
    }
    return ++this.#count;
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 1; entry <= this.#count; entry++) {
      let slot = (this.#pages[(entry - 1) >>> PAGE_BITS]?.hashes[(entry - 1) & (PAGE - 1)] ?? 0) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry;
    }
    this.#slots = slots;
  }
}
