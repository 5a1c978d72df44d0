/** Chance that is a function of the seed alone: sfc32 (Chris Doty-Humphrey's), seeded by a counter hash. */
export class Random {
  #a = 0;
  #b = 0;
  #c = 0;
  #count = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
    this.#c = Math.imul(seed + 0x7f4a7c15, 0xc2b2ae35);
    for (let i = 0; i < 16; i += 1) this.bits();
  }

  /** 32 bits, unsigned. */
  bits(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }

  below(count: number): number {
    return Math.floor((this.bits() / 2 ** 32) * count);
  }

  /** Both ends included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(share: number): boolean {
    return this.bits() / 2 ** 32 < share;
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('nothing to pick from');
    return list[this.below(list.length)] as T;
  }

  /** Some of the list, in its order; none or all included. */
  some<T>(list: readonly T[], share = 0.5): T[] {
    return list.filter(() => this.chance(share));
  }

  shuffle<T>(list: readonly T[]): T[] {
    const all = [...list];
    for (let i = all.length - 1; i > 0; i -= 1) {
      const j = this.below(i + 1);
      [all[i], all[j]] = [all[j] as T, all[i] as T];
    }
    return all;
  }

  /** By weight. */
  weighted<T extends { readonly weight: number }>(list: readonly T[]): T {
    let at = (this.bits() / 2 ** 32) * list.reduce((sum, each) => sum + each.weight, 0);
    for (const each of list) {
      at -= each.weight;
      if (at < 0) return each;
    }
    return this.pick(list);
  }

  digits(count: number): string {
    return Array.from({ length: count }, () => this.below(10)).join('');
  }

  hex(bytes: number): string {
    return Array.from({ length: bytes }, () => this.below(256).toString(16).padStart(2, '0')).join('');
  }

  bigBelow(limit: bigint): bigint {
    const bits = BigInt(`0x${this.hex(limit.toString(16).length / 2 + 2)}`);
    return bits % limit;
  }
}
