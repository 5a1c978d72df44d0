/** Pieces that are asked for as one: joined only when all of it is there. */
export class ByteQueue {
  #parts: Buffer[] = [];
  #bytes = 0;
  /** For the owner: with fewer bytes there is nothing to be done. */
  wanted = 0;

  get bytes(): number {
    return this.#bytes;
  }

  push(part: Buffer): void {
    if (part.length === 0) return;
    this.#parts.push(part);
    this.#bytes += part.length;
  }

  /** Everything, as one piece. */
  all(): Buffer {
    const [first] = this.#parts;
    if (this.#parts.length === 1 && first !== undefined) return first;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [whole];
    return whole;
  }

  /** Forgets the first `count` bytes. */
  drop(count: number): void {
    const rest = this.all().subarray(count);
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#bytes = rest.length;
  }
}
