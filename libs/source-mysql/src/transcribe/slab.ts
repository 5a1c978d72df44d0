/**
 * Where records are copied to: slabs that many share. A slab is freed when the last record in it is, so it is small; a record that is larger has
 * one of its own. It is written again only if it is given back.
 */

const SLAB_BYTES = 64 * 1024;
/** More are left to the collector when they come back. */
const KEPT_SLABS = 32;

export class Slabs {
  readonly #own = new WeakSet<Uint8Array>();
  readonly #free: Buffer[] = [];
  /** Where `copy` copies to. */
  slab: Buffer = Buffer.alloc(0);
  /** The first byte of it that is free. */
  at = 0;

  /** Begins another one, with room for so many bytes at least. */
  renew(bytes: number): void {
    this.slab = bytes > SLAB_BYTES ? Buffer.allocUnsafeSlow(bytes) : (this.#free.pop() ?? this.#make());
    this.at = 0;
  }

  /** Nobody has a record any more in what is one of them, and full. */
  giveBack(slab: Uint8Array): void {
    if (slab === this.slab || !this.#own.has(slab) || this.#free.length === KEPT_SLABS) return;
    this.#free.push(slab as Buffer);
  }

  #make(): Buffer {
    const slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    this.#own.add(slab);
    return slab;
  }

  get room(): number {
    return this.slab.length - this.at;
  }

  copy(bytes: Uint8Array): void {
    this.slab.set(bytes, this.at);
    this.at += bytes.length;
  }
}
