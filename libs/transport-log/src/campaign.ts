/**
 * Whether passes are worth their cost in a partition whose dirty keys do not fit into memory.
 *
 * Such a pass cleans only the beginning of the dirty stretch, but walks everything before it as well. So what counts is all that is
 * dirty and old enough, not what fits into memory: a large partition would never have enough of that again. And since many rows
 * that were only ever added (a snapshot) would cost pass after pass and give nothing back, a campaign of passes begins only where a
 * look at a sample of the keys, over everything, shows that enough is superseded. That look reads as much as a pass; it is taken
 * again when the partition has grown by a quarter. A campaign goes on until little is dirty.
 */
import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { BATCH_HEADER_BYTES, recordKeyLength, recordKeyStart, recordLength } from './batch-codec.ts';
import { batchesFrom, type StretchOptions } from './dirty-stretch.ts';

/** A campaign begins when at least this share of the dirty ratio is superseded, and ends when less than it is dirty. */
const ENOUGH = 0.5;
const GROWTH = 1.25;
const SAMPLED_RECORDS = 65_536;

export interface Extent {
  /** From the partition's first offset to behind what is dirty and old enough. */
  readonly from: number;
  readonly end: number;
  /** Bytes before the dirty stretch, and of all that is dirty and old enough. */
  readonly cleanBytes: number;
  readonly oldBytes: number;
  /** Of a record, on average. */
  readonly recordBytes: number;
}

export class Campaign {
  #isOn = false;
  #nextLookBytes = 0;

  /** @param ratio of dirty bytes to all, from which a pass is wanted */
  async wants(options: StretchOptions, extent: Extent, ratio: number): Promise<boolean> {
    const { cleanBytes, oldBytes } = extent;
    const bytes = cleanBytes + oldBytes;
    if (oldBytes < (this.#isOn ? ENOUGH * ratio : ratio) * bytes) this.#isOn = false;
    else if (!this.#isOn && bytes >= this.#nextLookBytes) {
      this.#isOn = (await supersededShare(options, extent)) >= ENOUGH * ratio;
      this.#nextLookBytes = this.#isOn ? 0 : GROWTH * bytes;
    }
    return this.#isOn;
  }
}

/** Which share of the bytes belongs to records that a later one of their key follows: of all keys of a random class. */
async function supersededShare(options: StretchOptions, extent: Extent): Promise<number> {
  const { from, end, cleanBytes, oldBytes, recordBytes } = extent;
  const classes = Math.max(1, Math.ceil((cleanBytes + oldBytes) / recordBytes / SAMPLED_RECORDS));
  const factor = 2 * randomInt(2 ** 31) + 1;
  const last = new Map<string, number>();
  let total = 0;
  let superseded = 0;
  for await (const { source, header } of batchesFrom(options, from)) {
    if (header.baseOffset >= end) break;
    let at = BATCH_HEADER_BYTES;
    for (let left = header.count; left > 0; left--) {
      const start = recordKeyStart(at);
      const key = source.subarray(start, start + recordKeyLength(source, at));
      const length = recordLength(source, at);
      if ((Math.imul(crc32(key), factor) >>> 8) % classes === 0) {
        const text = key.toString('latin1');
        total += length;
        superseded += last.get(text) ?? 0;
        last.set(text, length);
      }
      at += length;
    }
  }
  return total === 0 ? 0 : superseded / total;
}
