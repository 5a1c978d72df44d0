/** Pieces of a file that is read back row by row: memory that is read into again once every row in it was given back. */
import { EncodedRow, type RowLender } from '@mysync/wire';

/** For each item four 32-bit numbers (ordinal, partition hash, key length, payload length), then payload and key. */
export const HEAD_BYTES = 16;
/** In the key length: the row deletes. */
export const DELETES = 0x8000_0000;

const PIECE_BYTES = 1 << 20;
/** More are left to the collector when they come back. */
const KEPT_PIECES = 24;

export class SpoolPieces {
  readonly #free: Buffer[] = [];

  /** Begins with `rest`; with room for `bytes` at least. */
  take(rest: Uint8Array, bytes: number): SpoolPiece {
    const buffer = bytes > PIECE_BYTES ? undefined : this.#free.pop();
    const piece = new SpoolPiece(buffer ?? Buffer.allocUnsafeSlow(Math.max(bytes, PIECE_BYTES)), this.#free);
    piece.slab.set(rest);
    piece.end = rest.length;
    return piece;
  }
}

export class SpoolPiece implements RowLender {
  readonly slab: Buffer;
  /** Of what was read. */
  end = 0;
  /** The first item that was not taken out. */
  #at = 0;
  /** Rows that were not given back, and one for whoever reads. */
  #held = 1;
  readonly #free: Buffer[];

  constructor(slab: Buffer, free: Buffer[]) {
    this.slab = slab;
    this.#free = free;
  }

  get rest(): Buffer {
    return this.slab.subarray(this.#at, this.end);
  }

  /** Bytes of the next item, as far as it can be seen: its head when that has not come whole. */
  get nextBytes(): number {
    const at = this.#at;
    if (this.end - at < HEAD_BYTES) return HEAD_BYTES;
    return HEAD_BYTES + (this.slab.readUInt32LE(at + 8) & ~DELETES) + this.slab.readUInt32LE(at + 12);
  }

  /** undefined when the next item has not come whole. */
  row(): EncodedRow | undefined {
    const at = this.#at;
    if (this.nextBytes > this.end - at || this.end - at < HEAD_BYTES) return undefined;
    const { slab } = this;
    const keyField = slab.readUInt32LE(at + 8);
    const start = at + HEAD_BYTES;
    const keyStart = start + slab.readUInt32LE(at + 12);
    const end = keyStart + (keyField & ~DELETES);
    this.#at = end;
    this.#held += 1;
    const ordinal = slab.readUInt32LE(at);
    const hash = slab.readUInt32LE(at + 4);
    return new EncodedRow(slab, start, keyStart, end, keyField >= DELETES, hash, ordinal, this);
  }

  takeBack(): void {
    this.#held -= 1;
    if (this.#held === 0 && this.slab.length === PIECE_BYTES && this.#free.length < KEPT_PIECES)
      this.#free.push(this.slab);
  }
}
