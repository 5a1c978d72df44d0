/** The bytes of record keys (docs/spec/keys.md). Changing any of them moves every row to another key: never. */

export const KEY_VERSION = 1;

export const KEY_KINDS = ['row', 'heartbeat', 'fence', 'truncate', 'ddl', 'sweep'] as const;
export type KeyKind = (typeof KEY_KINDS)[number];
/** The kinds of keys that are not a row's. */
export type ControlKind = Exclude<KeyKind, 'row'>;

export const KEY_NULL = 0;
export const KEY_INTEGER = 1;
export const KEY_REAL = 2;
export const KEY_TEXT = 3;
export const KEY_BYTES = 4;
export const KEY_ROW_HASH = 5;

/** Name that a decoded key gives to the hash of a row without key columns. */
export const ROW_HASH_COLUMN = '#row';
/** Bytes of SHA-256 that are kept: with 2^40 rows, two share a hash with a probability of 2^-49. */
export const ROW_HASH_BYTES = 16;
