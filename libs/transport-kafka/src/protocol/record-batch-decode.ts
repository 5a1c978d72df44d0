/**
 * Reads record batches (format v2) as a broker sends them. Keys, values and header values are views of the answer's bytes;
 * nothing is copied unless the batch is compressed.
 */
import { gunzipSync } from 'node:zlib';
import { causeText } from '@mysync/core';
import type { Header, IncomingRecord } from '@mysync/transport';
import { crc32c } from '@node-rs/crc32';
import { kafkaErrors } from '../errors.ts';
import { BATCH_HEADER_BYTES } from './record-batch-encode.ts';

const NO_HEADERS: readonly Header[] = [];
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
const CONTROL_BIT = 0x20;

export interface BatchPlace {
  readonly topic: string;
  readonly partition: number;
}

/** How much of `bytes` is whole batches, and the offset behind the last of them. null when there is not one whole batch. */
export function wholeBatches(bytes: Buffer): { readonly length: number; readonly nextOffset: number } | null {
  let at = 0;
  let nextOffset = -1;
  while (at + BATCH_HEADER_BYTES <= bytes.length) {
    const end = at + 12 + bytes.readInt32BE(at + 8);
    if (end > bytes.length) break;
    nextOffset = offsetAt(bytes, at) + bytes.readInt32BE(at + 23) + 1;
    at = end;
  }
  return at === 0 ? null : { length: at, nextOffset };
}

function offsetAt(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}

export interface DecodedRecords {
  readonly records: IncomingRecord[];
  readonly nextOffset: number;
  /** Bytes of the records that this call added. */
  readonly bytes: number;
}

/** Walks over whole batches, a bounded number of bytes at a time. */
export class BatchReader {
  readonly #bytes: Buffer;
  readonly #place: BatchPlace;
  #from: number;
  #batchAt = 0;
  /** Records of the batch begun: bytes, position, how many are left, and the batch's own numbers. */
  #records: Buffer | null = null;
  #at = 0;
  #left = 0;
  #baseOffset = 0;
  #batchNext = 0;
  #batchEnd = 0;

  /** `bytes` holds whole batches only; records below `from` are left out. */
  constructor(bytes: Buffer, from: number, place: BatchPlace) {
    this.#bytes = bytes;
    this.#from = from;
    this.#place = place;
  }

  /** The next records, of at most about `maxBytes` (but at least one batch or one record), or null at the end. Appends to `records`. */
  next(maxBytes: number, records: IncomingRecord[] = []): DecodedRecords | null {
    if (this.#records === null && this.#batchAt >= this.#bytes.length) return null;
    let room = maxBytes;
    while (room > 0) {
      if (this.#records === null) {
        if (this.#batchAt >= this.#bytes.length) break;
        this.#openBatch();
      }
      try {
        room -= this.#readRecords(records, room);
      } catch (error) {
        throw error instanceof RangeError || error instanceof TypeError ? this.#corrupt(causeText(error)) : error;
      }
    }
    return { records, nextOffset: this.#from, bytes: maxBytes - room };
  }

  #openBatch(): void {
    const bytes = this.#bytes;
    const at = this.#batchAt;
    const magic = bytes[at + 16];
    if (magic !== 2) throw this.#corrupt(`a batch of format ${magic}, not 2`);
    this.#batchEnd = at + 12 + bytes.readInt32BE(at + 8);
    const crc = bytes.readUInt32BE(at + 17);
    if (crc32c(bytes.subarray(at + 21, this.#batchEnd)) !== crc) throw this.#corrupt('a batch whose checksum is wrong');
    const attributes = bytes.readInt16BE(at + 21);
    this.#baseOffset = offsetAt(bytes, at);
    this.#batchNext = this.#baseOffset + bytes.readInt32BE(at + 23) + 1;
    // Control batches mark the end of others' transactions: they are no records.
    this.#left = (attributes & CONTROL_BIT) === 0 ? bytes.readInt32BE(at + 57) : 0;
    const packed = bytes.subarray(at + BATCH_HEADER_BYTES, this.#batchEnd);
    this.#records = this.#left === 0 ? packed : this.#unpack(attributes & 7, packed);
    this.#at = 0;
  }

  #unpack(codec: number, packed: Buffer): Buffer {
    if (codec === 0) return packed;
    if (codec === 1) {
      try {
        return gunzipSync(packed);
      } catch (error) {
        throw this.#corrupt(causeText(error));
      }
    }
    throw kafkaErrors.KAFKA_CODEC_UNSUPPORTED({
      message: `a batch is compressed with ${CODECS[codec] ?? `codec ${codec}`}, which MySync does not read`,
      where: { ...this.#place, offset: this.#baseOffset },
    });
  }

  /** Reads until the batch ends or `room` bytes are used; returns the bytes used. */
  #readRecords(into: IncomingRecord[], room: number): number {
    const bytes = this.#records as Buffer;
    const from = this.#from;
    let used = 0;
    varint.at = this.#at;
    while (this.#left > 0 && used < room) {
      const length = readVarint(bytes);
      const start = varint.at;
      varint.at = start + 1; // attributes
      readVarint(bytes); // timestamp delta
      const offset = this.#baseOffset + readVarint(bytes);
      this.#left--;
      if (offset < from) {
        varint.at = start + length;
        continue;
      }
      const key = readBytes(bytes);
      const value = readBytes(bytes);
      const headerCount = readVarint(bytes);
      const headers = headerCount === 0 ? NO_HEADERS : readHeaders(bytes, headerCount);
      if (varint.at !== start + length) throw new RangeError('a record whose length is wrong');
      into.push({ offset, key: key ?? NO_BYTES, value, headers });
      used += length;
      this.#from = offset + 1;
    }
    this.#at = varint.at;
    if (this.#left === 0) {
      this.#records = null;
      this.#batchAt = this.#batchEnd;
      this.#from = Math.max(from, this.#batchNext);
    }
    return used;
  }

  #corrupt(what: string): Error {
    return kafkaErrors.KAFKA_RECORD_CORRUPT({
      message: `cannot read the log: ${what}`,
      where: { ...this.#place, offset: this.#from },
    });
  }
}

const NO_BYTES = Buffer.alloc(0);

/** Where reading goes on. One for all: decoding never waits in the middle of a record. */
const varint = { at: 0 };

/** A signed (zigzag) varint of at most 35 bits; timestamp deltas may be longer and are only skipped. */
function readVarint(bytes: Buffer): number {
  let at = varint.at;
  let byte = bytes[at++] as number;
  if (byte < 0x80) {
    varint.at = at;
    return (byte >>> 1) ^ -(byte & 1);
  }
  let value = byte & 0x7f;
  let factor = 128;
  do {
    byte = bytes[at++] as number;
    if (byte === undefined) throw new RangeError('the bytes end in the middle of a record');
    value += (byte & 0x7f) * factor;
    factor *= 128;
  } while (byte >= 0x80);
  varint.at = at;
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

function readBytes(bytes: Buffer): Buffer | null {
  const length = readVarint(bytes);
  if (length < 0) return null;
  const start = varint.at;
  const end = start + length;
  if (end > bytes.length) throw new RangeError('the bytes end in the middle of a record');
  varint.at = end;
  return bytes.subarray(start, end);
}

/** Header names repeat for ever: the text of the last one at each place is kept beside its bytes. */
const lastNames: { readonly bytes: Buffer; readonly name: string }[] = [];
const MAX_PLACES = 16;

function readHeaders(bytes: Buffer, count: number): Header[] {
  const headers: Header[] = [];
  for (let place = 0; place < count; place++) {
    const length = readVarint(bytes);
    const start = varint.at;
    if (length < 0 || start + length > bytes.length) throw new RangeError('the bytes end in the middle of a record');
    varint.at = start + length;
    const name = headerName(bytes, start, length, place);
    headers.push({ name, value: readBytes(bytes) ?? NO_BYTES });
  }
  return headers;
}

function headerName(bytes: Buffer, start: number, length: number, place: number): string {
  const last = lastNames[place];
  if (last !== undefined && last.bytes.length === length) {
    let index = 0;
    while (index < length && bytes[start + index] === last.bytes[index]) index++;
    if (index === length) return last.name;
  }
  const name = bytes.toString('utf8', start, start + length);
  if (place < MAX_PLACES && length < 256) {
    lastNames[place] = { bytes: Buffer.from(bytes.subarray(start, start + length)), name };
  }
  return name;
}
