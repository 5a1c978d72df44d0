/**
 * The server's bytes to packets, however they are split.
 *
 * 1. A packet that lies whole in what was received is handed over as a piece of it: no copy. Only one that is split is put together.
 * 2. Packets of 2^24 − 1 bytes go on in the next; they are handed over as one.
 * 3. Bounded: memory is taken for one packet at a time (16 MiB), and never more than `maxBytes` for packets that go on.
 *
 * Header: three bytes of length, one byte of number (MySQL, "Client/Server Protocol", packets).
 */
const HEADER_BYTES = 4;
const GOES_ON = 0xff_ffff;

export interface PacketFramerOptions {
  readonly maxBytes: number;
  /** The packet is `buffer[start, end)`. `inOrder` is false when its number does not follow on the last one's. */
  onPacket(buffer: Buffer, start: number, end: number, inOrder: boolean): void;
}

export class PacketFramer {
  readonly #options: PacketFramerOptions;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #next = 0;
  #inOrder = true;
  /** The packet that has come in part. */
  #body: Buffer | undefined;
  #filled = 0;
  /** Those that it continues. */
  #parts: Buffer[] = [];
  #partsBytes = 0;

  constructor(options: PacketFramerOptions) {
    this.#options = options;
  }

  /** The next packet answers a new command: numbers begin anew. */
  expect(number: number): void {
    this.#next = number;
  }

  /** Throws a RangeError when a packet is too long, and what `onPacket` throws. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#body !== undefined) {
        at = this.#fill(this.#body, chunk, at);
        continue;
      }
      let header = chunk;
      let headerAt = at;
      if (this.#headerBytes === 0 && chunk.length - at >= HEADER_BYTES) at += HEADER_BYTES;
      else {
        at = this.#readHeader(chunk, at);
        if (this.#headerBytes < HEADER_BYTES) return;
        this.#headerBytes = 0;
        header = this.#header;
        headerAt = 0;
      }
      const length =
        (header[headerAt] as number) |
        ((header[headerAt + 1] as number) << 8) |
        ((header[headerAt + 2] as number) << 16);
      const number = header[headerAt + 3] as number;
      if (number !== this.#next) this.#inOrder = false;
      this.#next = (number + 1) & 0xff;
      if (length <= chunk.length - at && length !== GOES_ON && this.#parts.length === 0) {
        this.#hand(chunk, at, at + length);
        at += length;
        continue;
      }
      if (this.#partsBytes + length > this.#options.maxBytes) {
        throw new RangeError(`a packet has more than ${this.#options.maxBytes} bytes`);
      }
      // of its own, so that a small rest in the pool of small buffers is not kept alive by a large one
      this.#body = Buffer.allocUnsafeSlow(length);
      this.#filled = 0;
      if (length === 0) this.#complete(this.#body);
    }
  }

  #readHeader(chunk: Buffer, from: number): number {
    let at = from;
    while (this.#headerBytes < HEADER_BYTES && at < chunk.length) {
      this.#header[this.#headerBytes] = chunk[at] as number;
      this.#headerBytes += 1;
      at += 1;
    }
    return at;
  }

  #fill(body: Buffer, chunk: Buffer, from: number): number {
    const end = Math.min(chunk.length, from + body.length - this.#filled);
    chunk.copy(body, this.#filled, from, end);
    this.#filled += end - from;
    if (this.#filled === body.length) this.#complete(body);
    return end;
  }

  #complete(body: Buffer): void {
    this.#body = undefined;
    if (body.length === GOES_ON) {
      this.#parts.push(body);
      this.#partsBytes += body.length;
      return;
    }
    if (this.#parts.length === 0) {
      this.#hand(body, 0, body.length);
      return;
    }
    const whole = Buffer.concat([...this.#parts, body]);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#hand(whole, 0, whole.length);
  }

  #hand(buffer: Buffer, start: number, end: number): void {
    const inOrder = this.#inOrder;
    this.#inOrder = true;
    this.#options.onPacket(buffer, start, end, inOrder);
  }
}
