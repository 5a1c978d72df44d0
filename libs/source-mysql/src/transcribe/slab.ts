/**
 * Where records are copied to: slabs that many share and that are never written twice. A slab is freed when the last record in it is, so it
 * is small; a record that is larger has one of its own.
 */

const SLAB_BYTES = 64 * 1024;

export class Slabs {
  /** Where `copy` copies to. */
  slab = Buffer.alloc(0);
  /** The first byte of it that is free. */
  at = 0;

  /** Begins another one, with room for so many bytes at least. */
  renew(bytes: number): void {
    this.slab = Buffer.allocUnsafeSlow(Math.max(bytes, SLAB_BYTES));
    this.at = 0;
  }

  get room(): number {
    return this.slab.length - this.at;
  }

  copy(bytes: Uint8Array): void {
    this.slab.set(bytes, this.at);
    this.at += bytes.length;
  }
}
