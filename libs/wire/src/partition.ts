/**
 * The partition of a row: FNV-1a over bytes, then the finaliser of MurmurHash3, so that keys that differ in their last
 * digit only are spread over all partitions. Stable for ever: the test vectors stand in docs/spec/keys.md.
 */

export const HASH_SEED = 0x811c9dc5;

/** FNV-1a, 32 bits, continued from `seed`. */
export function hashBytes(seed: number, bytes: Uint8Array, from: number, to: number): number {
  let hash = seed;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash;
}

/** The avalanche: every bit of the input moves every bit of the output. Unsigned. */
export function finishHash(seed: number): number {
  let hash = seed;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export function partitionOf(partitionHash: number, partitions: number): number {
  return partitionHash % partitions;
}
