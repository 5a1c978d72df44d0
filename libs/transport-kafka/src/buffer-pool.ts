/** Reuses the buffers of batches. Buffers that may still be sent by somebody must not be given back. */

const SMALLEST = 16 * 1024;

export class BufferPool {
  readonly #free = new Map<number, Buffer[]>();
  readonly #maxFreeBytes: number;
  #freeBytes = 0;

  constructor(maxFreeBytes: number) {
    this.#maxFreeBytes = maxFreeBytes;
  }

  take(bytes: number): Buffer {
    let size = SMALLEST;
    while (size < bytes) size *= 2;
    const buffer = this.#free.get(size)?.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size);
    this.#freeBytes -= size;
    return buffer;
  }

  give(buffer: Buffer): void {
    const size = buffer.length;
    if (this.#freeBytes + size > this.#maxFreeBytes) return;
    this.#freeBytes += size;
    const free = this.#free.get(size);
    if (free === undefined) this.#free.set(size, [buffer]);
    else free.push(buffer);
  }
}
