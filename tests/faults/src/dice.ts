/** Random numbers from a seed (splitmix32): the same seed gives the same schedule on every machine. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b9) ^ 0x5bd1e995;
    for (let warm = 0; warm < 4; warm += 1) this.next();
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let z = this.#state ^ (this.#state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  }

  /** Both ends included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error('nothing to choose from');
    return item;
  }

  /** One of the items, each as likely as its weight says. */
  weighted<T extends { readonly weight: number }>(items: readonly T[]): T {
    let rest = this.next() * items.reduce((sum, { weight }) => sum + weight, 0);
    for (const item of items) {
      rest -= item.weight;
      if (rest < 0) return item;
    }
    return this.pick(items);
  }
}
