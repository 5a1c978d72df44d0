/**
 * Where in the log we are. Events tell the low 32 bits of the offset behind them only, and inside a MariaDB transaction
 * often nothing: the offset is counted along by their lengths and corrected whenever an event tells.
 */
const TWO_32 = 4294967296;

export class LogCursor {
  #file: string;
  #offset: number;

  constructor(file: string, offset: number) {
    this.#file = file;
    this.#offset = offset;
  }

  get file(): string {
    return this.#file;
  }

  /** Behind the last event. */
  get offset(): number {
    return this.#offset;
  }

  /** A rotate event: the place is told whole. */
  moveTo(file: string, offset: number): void {
    this.#file = file;
    this.#offset = offset;
  }

  /**
   * Goes over an event that stands in the log; returns where it begins. Events that the server keeps to itself are gone over with it. Throws a
   * RangeError when the event says that it ends before it can have begun.
   */
  pass(length: number, nextOffset: number): number {
    const counted = this.#offset + length;
    const next = nextOffset === 0 ? counted : nearest(counted, nextOffset);
    if (next < counted) throw new RangeError(`an event of ${length} bytes behind ${this.#offset} that ends at ${next}`);
    this.#offset = next;
    return this.#offset - length;
  }
}

/** The number with these low 32 bits that is nearest to `expected`. */
function nearest(expected: number, low: number): number {
  const base = Math.floor(expected / TWO_32) * TWO_32 + low;
  if (expected - base > TWO_32 / 2) return base + TWO_32;
  if (base - expected > TWO_32 / 2 && base >= TWO_32) return base - TWO_32;
  return base;
}
