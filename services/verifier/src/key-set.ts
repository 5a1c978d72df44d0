import { createHash } from 'node:crypto';

const FIRST_SLOTS = 1 << 12;
const MAX_LOAD = 0.7;

/**
 * Which targets were seen, as 64 bits of a hash each: about 12 to 24 bytes a row, whatever the length of the keys. Of ten million targets one
 * that was not seen is taken for one that was with a probability of 1 in 10^12.
 */
export class KeySet {
  /** Two halves per slot; both zero: free. */
  #slots = new Uint32Array(2 * FIRST_SLOTS);
  #count = 0;

  get size(): number {
    return this.#count;
  }

  add(target: string): void {
    const [high, low] = hash64(target);
    if (this.#count + 1 > (this.#slots.length / 2) * MAX_LOAD) this.#grow();
    if (put(this.#slots, high, low)) this.#count++;
  }

  has(target: string): boolean {
    const [high, low] = hash64(target);
    const at = find(this.#slots, high, low);
    return this.#slots[at] !== 0 || this.#slots[at + 1] !== 0;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let at = 0; at < old.length; at += 2) {
      const [high, low] = [old[at] as number, old[at + 1] as number];
      if (high !== 0 || low !== 0) put(this.#slots, high, low);
    }
  }
}

/** Never (0, 0). */
function hash64(target: string): readonly [high: number, low: number] {
  const digest = createHash('sha1').update(target).digest();
  const low = digest.readUInt32LE(4);
  return [digest.readUInt32LE(0), low === 0 ? 1 : low];
}

/** Where the hash is, or the free slot where it belongs. */
function find(slots: Uint32Array, high: number, low: number): number {
  const mask = slots.length / 2 - 1;
  let slot = high & mask;
  for (;;) {
    const at = slot * 2;
    if (slots[at] === high && slots[at + 1] === low) return at;
    if (slots[at] === 0 && slots[at + 1] === 0) return at;
    slot = (slot + 1) & mask;
  }
}

function put(slots: Uint32Array, high: number, low: number): boolean {
  const at = find(slots, high, low);
  if (slots[at] === high && slots[at + 1] === low) return false;
  slots[at] = high;
  slots[at + 1] = low;
  return true;
}
