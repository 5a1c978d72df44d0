/**
 * Where records are copied to: slabs that many share and that are never written twice. A slab is freed when the last record in it is, so it
 * is small, and what fills most of one has its own.
 */

const SLAB_BYTES = 64 * 1024;
const OWN_BYTES = SLAB_BYTES / 4;

export class Slabs {
  /** Of the bytes that were taken in last. */
  slab = Buffer.alloc(0);
  #shared = this.slab;
  #used = 0;

  /** Copies the bytes and returns where they begin in `slab`. */
  keep(bytes: Uint8Array): number {
    const { length } = bytes;
    if (length > OWN_BYTES) {
      this.slab = Buffer.allocUnsafeSlow(length);
      this.slab.set(bytes);
      return 0;
    }
    if (length > this.#shared.length - this.#used) {
      this.#shared = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#used = 0;
    }
    const at = this.#used;
    this.slab = this.#shared;
    this.slab.set(bytes, at);
    this.#used = at + length;
    return at;
  }
}
