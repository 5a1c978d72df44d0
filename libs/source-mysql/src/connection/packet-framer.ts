/**
 * The server's bytes to packets, however they are split: `push` what was received, `next` for each packet.
 *
 * 1. A packet that lies whole in what was received is a piece of it: no copy, and nothing is made for it before it is asked for. Only one
 *    that is split is put together, while it comes.
 * 2. Packets of 2^24 − 1 bytes go on in the next; they are handed over as one.
 * 3. Bounded: memory is taken for one packet at a time (16 MiB), and never more than `maxBytes` for packets that go on.
 * 4. What was lent is given back once `next` has moved beyond the last packet of it, and not before.
 *
 * Header: three bytes of length, one byte of number (MySQL, "Client/Server Protocol", packets).
 */
const HEADER_BYTES = 4;
const GOES_ON = 0xff_ffff;
const NO_BYTES = Buffer.alloc(0);

/** Waits in `buffer[start, end)`. */
interface Piece {
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
  /** Packets with their headers, all in order; otherwise the body of one. */
  readonly isRun: boolean;
  readonly inOrder: boolean;
  /** `buffer` was lent, and no later piece lies in it. */
  isLast: boolean;
}

export interface PacketFramerOptions {
  readonly maxBytes: number;
  /** Nobody reads it any more. */
  giveBack(buffer: Buffer): void;
}

export class PacketFramer {
  /** The packet that `next` moved to is `buffer[start, end)`. */
  buffer: Buffer = NO_BYTES;
  start = 0;
  end = 0;
  /** False when its number does not follow on the last one's. */
  inOrder = true;
  readonly #options: PacketFramerOptions;
  readonly #pieces: Piece[] = [];
  #bytes = 0;
  /** The run under way goes on at `end` and ends here. */
  #runEnd = 0;
  /** `buffer` is to be given back. */
  #isLast = false;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #nextNumber = 0;
  /** Of the packet that is coming. */
  #comesInOrder = true;
  /** The packet that has come in part. */
  #body: Buffer | undefined;
  #filled = 0;
  /** Those that it continues. */
  #parts: Buffer[] = [];
  #partsBytes = 0;

  constructor(options: PacketFramerOptions) {
    this.#options = options;
  }

  /** Of packets that wait, but for the run under way. */
  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0 && this.end === this.#runEnd;
  }

  /** The next packet answers a new command: numbers begin anew. */
  expect(number: number): void {
    this.#nextNumber = number;
  }

  /** Moves to the next packet; false when none has come whole. */
  next(): boolean {
    if (this.end < this.#runEnd) {
      this.#step(this.end);
      return true;
    }
    if (this.#isLast) this.#options.giveBack(this.buffer);
    this.#isLast = false;
    const piece = this.#pieces.shift();
    if (piece === undefined) {
      this.clear();
      return false;
    }
    this.#bytes -= piece.end - piece.start;
    this.buffer = piece.buffer;
    this.inOrder = piece.inOrder;
    this.#runEnd = piece.end;
    this.#isLast = piece.isLast;
    if (piece.isRun) this.#step(piece.start);
    else {
      this.start = piece.start;
      this.end = piece.end;
    }
    return true;
  }

  /** Drops everything that waits: what was lent of it is kept. */
  clear(): void {
    this.#isLast = false;
    this.#pieces.length = 0;
    this.#bytes = 0;
    this.buffer = NO_BYTES;
    this.start = 0;
    this.end = 0;
    this.#runEnd = 0;
  }

  /** Takes `chunk[0, length)`. Throws a RangeError when a packet is too long. */
  push(chunk: Buffer, length: number, isLent: boolean): void {
    const before = this.#pieces.length;
    this.#split(chunk, length);
    if (!isLent) return;
    const last = this.#pieces.findLast(({ buffer }, i) => i >= before && buffer === chunk);
    if (last === undefined) this.#options.giveBack(chunk);
    else last.isLast = true;
  }

  #split(chunk: Buffer, chunkEnd: number): void {
    let at = 0;
    let runStart = 0;
    while (at < chunkEnd) {
      if (this.#body !== undefined) {
        at = this.#fill(this.#body, chunk, at, chunkEnd);
        runStart = at;
        continue;
      }
      const packetAt = at;
      let header = chunk;
      let headerAt = at;
      const isSplit = this.#headerBytes > 0 || chunkEnd - at < HEADER_BYTES;
      if (isSplit) {
        this.#wait(chunk, runStart, packetAt, true, true);
        at = this.#readHeader(chunk, at, chunkEnd);
        runStart = at;
        if (this.#headerBytes < HEADER_BYTES) return;
        this.#headerBytes = 0;
        header = this.#header;
        headerAt = 0;
      } else at += HEADER_BYTES;
      const length = lengthAt(header, headerAt);
      const number = header[headerAt + 3] as number;
      const inOrder = number === this.#nextNumber;
      if (!inOrder) this.#comesInOrder = false;
      this.#nextNumber = (number + 1) & 0xff;
      const isWhole = length <= chunkEnd - at && length !== GOES_ON && this.#parts.length === 0;
      if (isWhole && inOrder && !isSplit) {
        at += length;
        continue;
      }
      if (!isSplit) this.#wait(chunk, runStart, packetAt, true, true);
      if (isWhole) {
        this.#complete(chunk, at, at + length);
        at += length;
      } else this.#begin(length);
      runStart = at;
    }
    this.#wait(chunk, runStart, at, true, true);
  }

  #step(at: number): void {
    this.start = at + HEADER_BYTES;
    this.end = this.start + lengthAt(this.buffer, at);
  }

  #wait(buffer: Buffer, start: number, end: number, isRun: boolean, inOrder: boolean): void {
    if (isRun && start === end) return;
    this.#pieces.push({ buffer, start, end, isRun, inOrder, isLast: false });
    this.#bytes += end - start;
  }

  #readHeader(chunk: Buffer, from: number, chunkEnd: number): number {
    let at = from;
    while (this.#headerBytes < HEADER_BYTES && at < chunkEnd) {
      this.#header[this.#headerBytes] = chunk[at] as number;
      this.#headerBytes += 1;
      at += 1;
    }
    return at;
  }

  #begin(length: number): void {
    const { maxBytes } = this.#options;
    if (this.#partsBytes + length > maxBytes) {
      throw new RangeError(`a packet has more than ${maxBytes} bytes`);
    }
    // of its own, so that a small rest in the pool of small buffers is not kept alive by a large one
    this.#body = Buffer.allocUnsafeSlow(length);
    this.#filled = 0;
    if (length === 0) this.#close(this.#body);
  }

  #fill(body: Buffer, chunk: Buffer, from: number, chunkEnd: number): number {
    const end = Math.min(chunkEnd, from + body.length - this.#filled);
    chunk.copy(body, this.#filled, from, end);
    this.#filled += end - from;
    if (this.#filled === body.length) this.#close(body);
    return end;
  }

  #close(body: Buffer): void {
    this.#body = undefined;
    if (body.length === GOES_ON) {
      this.#parts.push(body);
      this.#partsBytes += body.length;
      return;
    }
    if (this.#parts.length === 0) {
      this.#complete(body, 0, body.length);
      return;
    }
    const whole = Buffer.concat([...this.#parts, body]);
    this.#parts = [];
    this.#partsBytes = 0;
    this.#complete(whole, 0, whole.length);
  }

  #complete(buffer: Buffer, start: number, end: number): void {
    this.#wait(buffer, start, end, false, this.#comesInOrder);
    this.#comesInOrder = true;
  }
}

function lengthAt(header: Buffer, at: number): number {
  return (header[at] as number) | ((header[at + 1] as number) << 8) | ((header[at + 2] as number) << 16);
}
