/**
 * MySQL's GTID sets and numbers in their binary forms.
 *
 * Set: eight bytes with the number of entries, then for each UUID, (tag,) number of intervals, intervals (start, exclusive end) of eight
 * bytes each. From MySQL 8.3 a set with tags has 1 in the highest and lowest byte of the number of entries (MySQL, sql/rpl_gtid_set.cc,
 * Gtid_set::encode), and each entry a tag.
 */
import { MysqlGtidSet, parseGtidSet } from '@mysync/core';
import type { ByteReader } from './byte-reader.ts';

const UUID_BYTES = 16;
const MOST_TAG_BYTES = 32;
const INTERVAL_BYTES = 16;
const TAG = /^([a-z_][a-z0-9_]*)?$/;

export function readUuid(reader: ByteReader): string {
  return uuidText(reader.bytes(UUID_BYTES).toString('hex'));
}

export function uuidText(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The set's text in its usual form. Throws a RangeError when it is damaged. */
export function readMysqlGtidSet(reader: ByteReader): string {
  const low = reader.uint(6);
  const middle = reader.uint(1);
  const format = reader.uint(1);
  if (format > 1) throw new RangeError(`${format} is no known format of a GTID set`);
  const entries = format === 0 ? low + middle * 2 ** 48 : Math.floor(low / 256) + middle * 2 ** 40;
  const parts: string[] = [];
  for (let i = 0; i < entries; i += 1) {
    const uuid = readUuid(reader);
    const tag = format === 1 ? readTag(reader) : '';
    const intervals = reader.uint64();
    if (intervals > reader.left / INTERVAL_BYTES) throw new RangeError(`${intervals} intervals are not in the event`);
    const ranges: string[] = [];
    for (let j = 0; j < intervals; j += 1) {
      const from = reader.uint64();
      const end = reader.uint64();
      if (from < 1 || end <= from) throw new RangeError(`${from} to ${end} is no interval`);
      ranges.push(`${from}-${end - 1}`);
    }
    if (ranges.length > 0) parts.push(`${uuid}:${tag === '' ? '' : `${tag}:`}${ranges.join(':')}`);
  }
  return parseGtidSet('mysql', parts.join(',')).toString();
}

export function readTag(reader: ByteReader): string {
  const length = readVarint(reader);
  if (length > MOST_TAG_BYTES) throw new RangeError(`a tag of ${length} bytes`);
  const tag = reader.text(length);
  if (!TAG.test(tag)) throw new RangeError('a tag of a GTID that is none');
  return tag;
}

export function mysqlGtidSetBytes(text: string): Buffer {
  const set = new MysqlGtidSet();
  set.addAll(text);
  const { entries } = set;
  const tagged = entries.some((entry) => entry.tag !== '');
  const count = BigInt(entries.length);
  const parts = [eightBytes(tagged ? (1n << 56n) | (count << 8n) | 1n : count)];
  for (const { uuid, tag, ranges } of entries) {
    parts.push(Buffer.from(uuid.replaceAll('-', ''), 'hex'));
    if (tagged) parts.push(Buffer.from([tag.length << 1]), Buffer.from(tag, 'latin1'));
    parts.push(eightBytes(BigInt(ranges.length)));
    for (const [from, to] of ranges) parts.push(eightBytes(BigInt(from)), eightBytes(BigInt(to) + 1n));
  }
  return Buffer.concat(parts);
}

function eightBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

/**
 * An integer of MySQL's serialization library: as many more bytes as the first byte has one bits at its end; the bits left over in the first
 * byte are the lowest of the value (MySQL, libs/mysql/serialization/variable_length_integers.h). Throws when it is not a safe integer.
 */
export function readVarint(reader: ByteReader): number {
  const first = reader.uint(1);
  let more = 0;
  while (more < 8 && ((first >> more) & 1) === 1) more += 1;
  if (more === 0) return first >> 1;
  if (more === 8) return reader.uint64();
  const rest = more === 7 ? reader.uint(4) + reader.uint(3) * 2 ** 32 : reader.uint(more as 1 | 2 | 3 | 4 | 5 | 6);
  const value = (first >> (more + 1)) + rest * 2 ** (7 - more);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is 2^53 or more`);
  return value;
}

/** The same for numbers with a sign, which is the lowest bit. */
export function readSignedVarint(reader: ByteReader): number {
  const value = readVarint(reader);
  const half = Math.floor(value / 2);
  return value % 2 === 1 ? -half - 1 : half;
}
