/** Bytes of a plan while it is made. Everything begins at a multiple of four; numbers are little-endian, as the module reads them. */

export class PlanBytes {
  #bytes = Buffer.alloc(4096);
  #length = 0;

  constructor(head: number) {
    this.reserve(head);
  }

  get length(): number {
    return this.#length;
  }

  /** Room for so many bytes, which are 0; returns where it begins. */
  reserve(bytes: number): number {
    const at = this.#length;
    this.#length = (at + bytes + 3) & ~3;
    if (this.#length > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#length)]);
    }
    return at;
  }

  append(bytes: Uint8Array): number {
    const at = this.reserve(bytes.length);
    this.#bytes.set(bytes, at);
    return at;
  }

  setByte(at: number, value: number): void {
    this.#bytes[at] = value;
  }

  setNumber(at: number, value: number): void {
    this.#bytes.writeUInt32LE(value >>> 0, at);
  }

  whole(): Uint8Array {
    return Uint8Array.from(this.#bytes.subarray(0, this.#length));
  }
}
