/** Reads the integers and strings of the log from a piece of a buffer; throws a RangeError past its end. */
const TWO_32 = 4294967296;

export class ByteReader {
  buffer: Buffer;
  end: number;
  at: number;

  constructor(buffer: Buffer, start: number, end: number) {
    this.buffer = buffer;
    this.at = start;
    this.end = end;
  }

  /** Reads elsewhere from now on. */
  open(buffer: Buffer, start: number, end: number): void {
    this.buffer = buffer;
    this.at = start;
    this.end = end;
  }

  get left(): number {
    return this.end - this.at;
  }

  #take(bytes: number): number {
    const at = this.at;
    if (bytes < 0 || at + bytes > this.end)
      throw new RangeError(`${bytes} bytes wanted at ${at}, the event ends at ${this.end}`);
    this.at = at + bytes;
    return at;
  }

  uint(bytes: 1 | 2 | 3 | 4 | 5 | 6): number {
    return this.buffer.readUIntLE(this.#take(bytes), bytes);
  }

  /** Throws when the number is not a safe integer. */
  uint64(): number {
    const low = this.uint(4);
    const value = low + this.uint(4) * TWO_32;
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is 2^53 or more`);
    return value;
  }

  /** MySQL's length-encoded integer. */
  packed(): number {
    const first = this.uint(1);
    if (first < 251) return first;
    if (first === 252) return this.uint(2);
    if (first === 253) return this.uint(3);
    if (first === 254) return this.uint64();
    throw new RangeError(`byte ${first} is not the start of a length`);
  }

  bytes(length: number): Buffer {
    const at = this.#take(length);
    return this.buffer.subarray(at, at + length);
  }

  text(length: number): string {
    const at = this.#take(length);
    return this.buffer.toString('utf8', at, at + length);
  }

  skip(length: number): void {
    this.#take(length);
  }
}
