/**
 * How a batch of records lies in the store: one value, a header of 48 bytes and the records.
 *
 *     0 magic · 4 CRC of bytes 8–47 · 8 CRC of the body · 12 record count · 16 base offset (f64) · 24 span · 28 body length
 *     32 append time (f64, ms) · 40 delete horizon (f64, ms; 0 none)
 *     record: length · offset delta · key length · value length (-1: tombstone) · header count (u16) · key · value · headers
 *     header: name length (u16) · value length · name · value
 *
 * Little endian, CRC-32 (zlib's). Offsets are deltas to the base, so the body can be encoded before the base is known;
 * the header, with the base, is stamped at the append. The batch covers base … base + span, also where compaction
 * removed records. Byte lengths stand first so that a reader can step over records without looking into them.
 */
import { crc32 } from 'node:zlib';
import type { Header, IncomingRecord, OutgoingRecord } from '@mysync/transport';

export const BATCH_HEADER_BYTES = 48;
const RECORD_PREFIX_BYTES = 18;
const MAGIC = 0x3142534d;

const names = new Map<string, Buffer>();

function nameBytes(name: string): Buffer {
  let bytes = names.get(name);
  if (bytes === undefined) {
    bytes = Buffer.from(name);
    // Header names are a handful of constants; a caller that makes them up must not fill the memory.
    if (names.size < 256) names.set(name, bytes);
  }
  return bytes;
}

function recordBytes(record: OutgoingRecord): number {
  let size = RECORD_PREFIX_BYTES + record.key.length + (record.value === null ? 0 : record.value.length);
  for (const header of record.headers) size += 6 + nameBytes(header.name).length + header.value.length;
  return size;
}

/** What a record takes beside its key, value and headers, with room for one header's name. */
export const RECORD_OVERHEAD_BYTES = RECORD_PREFIX_BYTES + 64;

/** Index of the first record larger than `maxRecordBytes`, or -1. */
export function findTooLarge(records: readonly OutgoingRecord[], maxRecordBytes: number): number {
  return records.findIndex((record) => recordBytes(record) > maxRecordBytes);
}

/** The room that `encodeBody` needs, with the header. */
export function encodedBytes(records: readonly OutgoingRecord[]): number {
  let size = BATCH_HEADER_BYTES;
  for (const record of records) size += recordBytes(record);
  return size;
}

/** Writes the records behind the place of the header; offsets are base + index. */
export function encodeBody(target: Buffer, records: readonly OutgoingRecord[]): void {
  let at = BATCH_HEADER_BYTES;
  let delta = 0;
  for (const record of records) {
    const { key, value, headers } = record;
    const start = at;
    target.writeUInt32LE(delta++, at + 4);
    target.writeUInt32LE(key.length, at + 8);
    target.writeInt32LE(value === null ? -1 : value.length, at + 12);
    target.writeUInt16LE(headers.length, at + 16);
    at += RECORD_PREFIX_BYTES;
    target.set(key, at);
    at += key.length;
    if (value !== null) {
      target.set(value, at);
      at += value.length;
    }
    for (const header of headers) {
      const name = nameBytes(header.name);
      target.writeUInt16LE(name.length, at);
      target.writeUInt32LE(header.value.length, at + 2);
      at += 6;
      target.set(name, at);
      at += name.length;
      target.set(header.value, at);
      at += header.value.length;
    }
    target.writeUInt32LE(at - start, start);
  }
  target.writeUInt32LE(crc32(target.subarray(BATCH_HEADER_BYTES, at)), 8);
  target.writeUInt32LE(records.length, 12);
  target.writeUInt32LE(records.length - 1, 24);
  target.writeUInt32LE(at - BATCH_HEADER_BYTES, 28);
}

/** Completes an encoded batch with what is known only at the append. */
export function stampBatch(batch: Buffer, baseOffset: number, appendedMs: number, deleteHorizonMs = 0): void {
  batch.writeUInt32LE(MAGIC, 0);
  batch.writeDoubleLE(baseOffset, 16);
  batch.writeDoubleLE(appendedMs, 32);
  batch.writeDoubleLE(deleteHorizonMs, 40);
  batch.writeUInt32LE(crc32(batch.subarray(8, BATCH_HEADER_BYTES)), 4);
}

export interface BatchHeader {
  readonly count: number;
  readonly baseOffset: number;
  /** The last offset that the batch covers. */
  readonly lastOffset: number;
  readonly appendedMs: number;
  readonly deleteHorizonMs: number;
  /** Header and body. */
  readonly bytes: number;
}

/** Reads and checks the header of the batch at `at`; null when it is damaged. */
export function readBatchHeader(source: Buffer, at: number, length: number): BatchHeader | null {
  if (length < BATCH_HEADER_BYTES || source.readUInt32LE(at) !== MAGIC) return null;
  if (source.readUInt32LE(at + 4) !== crc32(source.subarray(at + 8, at + BATCH_HEADER_BYTES))) return null;
  const baseOffset = source.readDoubleLE(at + 16);
  const bytes = BATCH_HEADER_BYTES + source.readUInt32LE(at + 28);
  if (bytes !== length) return null;
  return {
    count: source.readUInt32LE(at + 12),
    baseOffset,
    lastOffset: baseOffset + source.readUInt32LE(at + 24),
    appendedMs: source.readDoubleLE(at + 32),
    deleteHorizonMs: source.readDoubleLE(at + 40),
    bytes,
  };
}

/** True when the records are as they were written. */
export function bodyIsIntact(source: Buffer, at: number, bytes: number): boolean {
  return source.readUInt32LE(at + 8) === crc32(source.subarray(at + BATCH_HEADER_BYTES, at + bytes));
}

/** A record in place: nothing is copied or made before it is asked for. */
export class StoredRecord implements IncomingRecord {
  readonly offset: number;
  readonly #source: Buffer;
  readonly #at: number;

  constructor(source: Buffer, at: number, offset: number) {
    this.#source = source;
    this.#at = at;
    this.offset = offset;
  }

  get key(): Uint8Array {
    const start = this.#at + RECORD_PREFIX_BYTES;
    return this.#source.subarray(start, start + this.#source.readUInt32LE(this.#at + 8));
  }

  get value(): Uint8Array | null {
    const length = this.#source.readInt32LE(this.#at + 12);
    if (length < 0) return null;
    const start = this.#at + RECORD_PREFIX_BYTES + this.#source.readUInt32LE(this.#at + 8);
    return this.#source.subarray(start, start + length);
  }

  get headers(): readonly Header[] {
    const source = this.#source;
    const headers: Header[] = [];
    const valueLength = source.readInt32LE(this.#at + 12);
    let at = this.#at + RECORD_PREFIX_BYTES + source.readUInt32LE(this.#at + 8) + Math.max(valueLength, 0);
    for (let left = source.readUInt16LE(this.#at + 16); left > 0; left--) {
      const nameEnd = at + 6 + source.readUInt16LE(at);
      const valueEnd = nameEnd + source.readUInt32LE(at + 2);
      headers.push({ name: source.toString('utf8', at + 6, nameEnd), value: source.subarray(nameEnd, valueEnd) });
      at = valueEnd;
    }
    return headers;
  }
}

export function recordLength(source: Buffer, at: number): number {
  return source.readUInt32LE(at);
}

export function recordDelta(source: Buffer, at: number): number {
  return source.readUInt32LE(at + 4);
}

export function recordKeyStart(at: number): number {
  return at + RECORD_PREFIX_BYTES;
}

export function recordKeyLength(source: Buffer, at: number): number {
  return source.readUInt32LE(at + 8);
}

export function recordIsTombstone(source: Buffer, at: number): boolean {
  return source.readInt32LE(at + 12) < 0;
}

/** What compaction keeps of a batch: whole records, by place. */
export interface KeptRecords {
  readonly source: Buffer;
  readonly header: BatchHeader;
  /** Places of the records that stay. */
  readonly places: readonly number[];
}

/** Span and deltas have four bytes: neighbours that are further apart are not joined. */
const MAX_SPAN = 2 ** 31;

/** Whether a batch may be joined with those from `first` on. */
export function mayJoin(first: BatchHeader, next: BatchHeader): boolean {
  return next.lastOffset - first.baseOffset < MAX_SPAN;
}

/** Joins what is left of neighbouring batches into one, at the first one's base; `mayJoin` holds for each. Nothing left: null. */
export function joinBatches(parts: readonly KeptRecords[], deleteHorizonMs: number): Buffer | null {
  const first = parts[0];
  const last = parts.at(-1);
  if (first === undefined || last === undefined) return null;
  let size = BATCH_HEADER_BYTES;
  let count = 0;
  let appendedMs = 0;
  for (const { source, header, places } of parts) {
    for (const at of places) size += recordLength(source, at);
    count += places.length;
    appendedMs = Math.max(appendedMs, header.appendedMs);
  }
  if (count === 0) return null;
  const batch = Buffer.allocUnsafeSlow(size);
  const base = first.header.baseOffset;
  let to = BATCH_HEADER_BYTES;
  for (const { source, header, places } of parts) {
    for (const at of places) {
      const length = recordLength(source, at);
      source.copy(batch, to, at, at + length);
      batch.writeUInt32LE(header.baseOffset - base + recordDelta(source, at), to + 4);
      to += length;
    }
  }
  batch.writeUInt32LE(crc32(batch.subarray(BATCH_HEADER_BYTES)), 8);
  batch.writeUInt32LE(count, 12);
  batch.writeUInt32LE(last.header.lastOffset - base, 24);
  batch.writeUInt32LE(size - BATCH_HEADER_BYTES, 28);
  stampBatch(batch, base, appendedMs, deleteHorizonMs);
  return batch;
}
