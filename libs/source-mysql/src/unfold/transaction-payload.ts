/**
 * MySQL's compressed transactions: one event that holds the events of a transaction, from BEGIN to XID, without checksums.
 *
 * 1. Bounded: it is unfolded event by event; beside the event itself only 16 MiB, or its zstd window and the event in hand, take
 *    memory, and nothing is unfolded beyond the size that the payload says.
 *
 * Layout: fields (type, length, value; packed integers) up to type 0, then the payload (MySQL,
 * libs/mysql/binlog/event/codecs/binary.cpp and transaction_payload_event).
 */
import type { BinlogPosition } from '@mysync/core';
import { Decompress, decompress } from 'fzstd';
import { ByteReader } from '../binlog/byte-reader.ts';
import { readControlEvent } from '../binlog/control-events.ts';
import { type LogEvent, MOST_EVENT_BYTES } from '../binlog/log-event.ts';
import { ByteQueue } from './byte-queue.ts';
import { zstdSteps } from './zstd-frames.ts';

const FIELD = { END: 0, SIZE: 1, COMPRESSION: 2, UNCOMPRESSED: 3 } as const;
const COMPRESSION = { ZSTD: 0, NONE: 255 } as const;
const HEADER_BYTES = 19;
const LENGTH_AT = 9;
/** A payload that unfolds to no more is unfolded at once, which is faster. */
const AT_ONCE_BYTES = 16 << 20;
/** What zstd takes for the smallest of contents. */
const LEAST_WINDOW_BYTES = 1 << 20;

interface Payload {
  readonly compression: number;
  readonly uncompressedBytes: number;
  readonly data: Buffer;
}

function readPayload(event: LogEvent): Payload {
  const reader = new ByteReader(event.buffer, event.start, event.end);
  let bytes: number | undefined;
  let compression: number = COMPRESSION.NONE;
  let uncompressed: number | undefined;
  for (;;) {
    const field = reader.packed();
    if (field === FIELD.END) break;
    const length = reader.packed();
    const value = new ByteReader(reader.bytes(length), 0, length);
    if (field === FIELD.SIZE) bytes = value.packed();
    else if (field === FIELD.COMPRESSION) compression = value.packed();
    else if (field === FIELD.UNCOMPRESSED) uncompressed = value.packed();
  }
  const data = reader.bytes(bytes ?? reader.left);
  if (reader.left > 0) throw new RangeError(`${reader.left} bytes follow the payload`);
  return { compression, uncompressedBytes: uncompressed ?? data.length, data };
}

/** The events inside, in order, each at the place of the whole. Throws when they are damaged. */
export function* unfoldPayload(event: LogEvent, place: BinlogPosition): Generator<LogEvent> {
  const { compression, uncompressedBytes, data } = readPayload(event);
  const queue = new ByteQueue();
  let got = 0;
  const take = (chunk: Uint8Array): void => {
    got += chunk.length;
    if (got > uncompressedBytes)
      throw new RangeError(`a payload holds more than the ${uncompressedBytes} bytes it says`);
    // a copy: the inflater goes on writing into its window
    queue.push(Buffer.from(chunk));
  };
  if (compression === COMPRESSION.NONE) {
    take(data);
    yield* wholeEvents(queue, place);
  } else if (compression === COMPRESSION.ZSTD) {
    const steps = zstdSteps(data, Math.max(uncompressedBytes, LEAST_WINDOW_BYTES));
    if (uncompressedBytes <= AT_ONCE_BYTES) {
      const { buffer, byteOffset, length } = decompress(data, Buffer.allocUnsafeSlow(uncompressedBytes));
      got = length;
      queue.push(Buffer.from(buffer, byteOffset, length));
      yield* wholeEvents(queue, place);
    } else {
      const inflater = new Decompress(take);
      let at = 0;
      for (const end of steps) {
        inflater.push(data.subarray(at, end), end === data.length);
        at = end;
        yield* wholeEvents(queue, place);
      }
    }
  } else throw new RangeError(`unknown compression ${compression} of a payload`);
  if (queue.bytes > 0 || got !== uncompressedBytes) {
    throw new RangeError(`a payload of ${uncompressedBytes} bytes ends after ${got}, ${queue.bytes} inside an event`);
  }
}

function* wholeEvents(queue: ByteQueue, place: BinlogPosition): Generator<LogEvent> {
  if (queue.bytes < queue.wanted) return;
  const buffer = queue.all();
  let at = 0;
  let wanted = HEADER_BYTES;
  while (buffer.length - at >= HEADER_BYTES) {
    const length = buffer.readUInt32LE(at + LENGTH_AT);
    if (length < HEADER_BYTES || length > MOST_EVENT_BYTES) {
      throw new RangeError(`an event of ${length} bytes in a payload`);
    }
    wanted = length;
    if (buffer.length - at < length) break;
    yield innerEvent(buffer, at, length, place);
    at += length;
    wanted = HEADER_BYTES;
  }
  queue.drop(at);
  queue.wanted = wanted;
}

function innerEvent(buffer: Buffer, at: number, length: number, place: BinlogPosition): LogEvent {
  const type = buffer[at + 4] as number;
  const start = at + HEADER_BYTES;
  const end = at + length;
  return {
    type,
    seconds: buffer.readUInt32LE(at),
    flags: buffer.readUInt16LE(at + 17),
    length,
    nextOffset: 0,
    buffer,
    start,
    end,
    control: readControlEvent(type, buffer.readUInt32LE(at + 5), buffer, start, end),
    place,
  };
}
