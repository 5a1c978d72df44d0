/**
 * The primitive types of the Kafka protocol, written and read by hand. "Compact" forms are those of flexible versions
 * (KIP-482): lengths as unsigned varints of length + 1, and tagged fields after each structure.
 */

/** Appends to a buffer that grows. For requests that are not on the hot path. */
export class WireWriter {
  #buffer = Buffer.allocUnsafe(512);
  #length = 0;

  #room(bytes: number): number {
    const at = this.#length;
    this.#length += bytes;
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#buffer.length * 2));
      this.#buffer.copy(larger, 0, 0, at);
      this.#buffer = larger;
    }
    return at;
  }

  int8(value: number): this {
    const at = this.#room(1);
    this.#buffer.writeInt8(value, at);
    return this;
  }

  int16(value: number): this {
    const at = this.#room(2);
    this.#buffer.writeInt16BE(value, at);
    return this;
  }

  int32(value: number): this {
    const at = this.#room(4);
    this.#buffer.writeInt32BE(value, at);
    return this;
  }

  int64(value: bigint | number): this {
    const at = this.#room(8);
    this.#buffer.writeBigInt64BE(BigInt(value), at);
    return this;
  }

  bool(value: boolean): this {
    return this.int8(value ? 1 : 0);
  }

  unsignedVarint(value: number): this {
    let rest = value;
    while (rest > 0x7f) {
      const at = this.#room(1);
      this.#buffer[at] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    const at = this.#room(1);
    this.#buffer[at] = rest;
    return this;
  }

  bytes(value: Uint8Array): this {
    const at = this.#room(value.length);
    this.#buffer.set(value, at);
    return this;
  }

  string(value: string | null): this {
    if (value === null) return this.int16(-1);
    const text = Buffer.from(value, 'utf8');
    return this.int16(text.length).bytes(text);
  }

  compactString(value: string | null): this {
    if (value === null) return this.unsignedVarint(0);
    const text = Buffer.from(value, 'utf8');
    return this.unsignedVarint(text.length + 1).bytes(text);
  }

  /** No tagged fields. */
  noTags(): this {
    return this.unsignedVarint(0);
  }

  take(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Reads from one answer. Throws RangeError where the bytes end too early. */
export class WireReader {
  readonly buffer: Buffer;
  position: number;

  constructor(buffer: Buffer, position = 0) {
    this.buffer = buffer;
    this.position = position;
  }

  int8(): number {
    const value = this.buffer.readInt8(this.position);
    this.position += 1;
    return value;
  }

  int16(): number {
    const value = this.buffer.readInt16BE(this.position);
    this.position += 2;
    return value;
  }

  int32(): number {
    const value = this.buffer.readInt32BE(this.position);
    this.position += 4;
    return value;
  }

  int64(): bigint {
    const value = this.buffer.readBigInt64BE(this.position);
    this.position += 8;
    return value;
  }

  /** An offset: below 2^53. */
  offset(): number {
    return Number(this.int64());
  }

  unsignedVarint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.buffer.readUInt8(this.position++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw new RangeError('a varint of more than five bytes');
  }

  slice(length: number): Buffer {
    const end = this.position + length;
    if (length < 0 || end > this.buffer.length) throw new RangeError('the answer ends too early');
    const bytes = this.buffer.subarray(this.position, end);
    this.position = end;
    return bytes;
  }

  string(): string | null {
    const length = this.int16();
    return length < 0 ? null : this.slice(length).toString('utf8');
  }

  compactString(): string | null {
    const length = this.unsignedVarint() - 1;
    return length < 0 ? null : this.slice(length).toString('utf8');
  }

  /** Sixteen bytes as 32 hex digits. */
  uuid(): string {
    return this.slice(16).toString('hex');
  }

  array<T>(read: () => T): T[] {
    return this.#times(this.int32(), read);
  }

  compactArray<T>(read: () => T): T[] {
    return this.#times(this.unsignedVarint() - 1, read);
  }

  #times<T>(count: number, read: () => T): T[] {
    const items: T[] = [];
    for (let index = 0; index < count; index++) items.push(read());
    return items;
  }

  skipTags(): void {
    const count = this.unsignedVarint();
    for (let index = 0; index < count; index++) {
      this.unsignedVarint();
      this.slice(this.unsignedVarint());
    }
  }
}
