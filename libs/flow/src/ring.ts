/**
 * A queue in one array that grows by doubling and is never shrunk: pushing, shifting and indexing allocate nothing
 * once it has reached its working size.
 */
export class Ring<T> {
  #slots: (T | undefined)[];
  #mask: number;
  #head = 0;
  #length = 0;

  constructor(capacity = 16) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(capacity, 2)));
    this.#slots = new Array(size).fill(undefined);
    this.#mask = size - 1;
  }

  get length(): number {
    return this.#length;
  }

  push(item: T): void {
    if (this.#length > this.#mask) this.#grow();
    this.#slots[(this.#head + this.#length) & this.#mask] = item;
    this.#length++;
  }

  /** The item at a place counted from the head. The caller knows that 0 ≤ index < length. */
  at(index: number): T {
    return this.#slots[(this.#head + index) & this.#mask] as T;
  }

  /** Takes the head away. The caller knows that there is one. */
  shift(): T {
    const item = this.#slots[this.#head] as T;
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#length--;
    return item;
  }

  clear(): void {
    while (this.#length > 0) this.shift();
    this.#head = 0;
  }

  #grow(): void {
    const size = (this.#mask + 1) * 2;
    const slots: (T | undefined)[] = new Array(size).fill(undefined);
    for (let i = 0; i < this.#length; i++) slots[i] = this.at(i);
    this.#slots = slots;
    this.#mask = size - 1;
    this.#head = 0;
  }
}
