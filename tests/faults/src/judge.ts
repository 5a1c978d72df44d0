/** What a copy showed of a key when it was last looked at. */
interface Seen {
  n: number;
  gone: boolean;
}

/** Looks at what a sink shows of each key over time, and says when that went backwards. Pure. */
export class Judge {
  readonly #seen = new Map<string, Seen>();
  readonly #never: ReadonlySet<number>;
  readonly backward: string[] = [];
  readonly wrong: string[] = [];

  /** `never`: numbers of changes that were rolled back. */
  constructor(never: ReadonlySet<number>) {
    this.#never = never;
  }

  /** The sink was put back to an older state on purpose: what was seen before says nothing any more. */
  forget(): void {
    this.#seen.clear();
  }

  /** `n`: what stands there now; null: the key is not there. */
  look(key: string, n: number | null): void {
    const seen = this.#seen.get(key);
    if (seen === undefined) {
      this.#seen.set(key, { n: n ?? 0, gone: n === null });
    } else if (n === null) {
      seen.gone = true;
    } else {
      if (n < seen.n) this.backward.push(`${key} went from ${seen.n} to ${n}`);
      else if (seen.gone && n === seen.n) this.backward.push(`${key} came back with ${n} after it was deleted`);
      seen.n = Math.max(n, seen.n);
      seen.gone = false;
    }
    if (n !== null && this.#never.has(n)) this.wrong.push(`${key} shows ${n}, which was rolled back`);
  }
}
