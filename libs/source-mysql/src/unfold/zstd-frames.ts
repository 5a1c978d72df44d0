/**
 * Looks over zstd data before it is unfolded: the library takes as much memory for its window as a frame's header says, which may be 2 GiB in
 * six bytes, and unfolds all that it is given at once, which may be 2 GiB in 64 KiB.
 * Layout: RFC 8878, 3.1.1 (frames) and 3.1.1.2 (blocks).
 */
import { ByteReader } from '../binlog/byte-reader.ts';

const MAGIC = 0xfd2fb528;
const SKIPPABLE = 0x184d2a5;
const BLOCK = { RAW: 0, RLE: 1, COMPRESSED: 2 } as const;
/** The most that the server's library uses (level 22). */
const MOST_WINDOW_BYTES = 1 << 27;
/** A block unfolds to at most 128 KiB. */
const BLOCKS_A_STEP = 32;

/**
 * Where to cut the data so that a piece unfolds to no more than 4 MiB: the ends of the pieces. Throws a RangeError when a frame wants a window
 * that no content of `contentBytes` needs, or ends too early.
 */
export function zstdSteps(data: Buffer, contentBytes: number): readonly number[] {
  const steps: number[] = [];
  // a window is at most the next power of two, and an eighth more by its mantissa
  const limit = Math.min(MOST_WINDOW_BYTES, contentBytes * 2);
  const reader = new ByteReader(data, 0, data.length);
  while (reader.left > 0) {
    const magic = reader.uint(4);
    if (magic >>> 4 === SKIPPABLE) {
      reader.skip(reader.uint(4));
      continue;
    }
    if (magic !== MAGIC) throw new RangeError('compressed data that is not zstd');
    const window = readWindow(reader);
    if (window.bytes > limit) throw new RangeError(`a window of ${window.bytes} bytes for ${contentBytes} bytes`);
    skipBlocks(reader, steps);
    if (window.hasChecksum) reader.skip(4);
  }
  if (steps.at(-1) !== data.length) steps.push(data.length);
  return steps;
}

function readWindow(reader: ByteReader): { bytes: number; hasChecksum: boolean } {
  const flags = reader.uint(1);
  const hasChecksum = (flags & 4) !== 0;
  const single = (flags & 0x20) !== 0;
  let bytes = 0;
  if (!single) {
    const descriptor = reader.uint(1);
    const base = 2 ** (10 + (descriptor >> 3));
    bytes = base + (base / 8) * (descriptor & 7);
  }
  reader.skip([0, 1, 2, 4][flags & 3] as number);
  const sizeBytes = single && flags >> 6 === 0 ? 1 : ([0, 2, 4, 8][flags >> 6] as number);
  if (!single) reader.skip(sizeBytes);
  else if (sizeBytes === 8) bytes = reader.uint64();
  else bytes = reader.uint(sizeBytes as 1 | 2 | 4) + (sizeBytes === 2 ? 256 : 0);
  return { bytes, hasChecksum };
}

function skipBlocks(reader: ByteReader, steps: number[]): void {
  for (let blocks = 1; ; blocks += 1) {
    const header = reader.uint(3);
    const kind = (header >> 1) & 3;
    if (kind > BLOCK.COMPRESSED) throw new RangeError('a zstd block of no known kind');
    reader.skip(kind === BLOCK.RLE ? 1 : header >> 3);
    if (blocks % BLOCKS_A_STEP === 0) steps.push(reader.at);
    if ((header & 1) === 1) return;
  }
}
