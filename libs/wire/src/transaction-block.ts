/** The part of a message's source that is equal for a whole transaction: encoded once, copied as a block. */
import { type ChangeId, coreErrors } from '@mysync/core';
import { ByteWriter, varintSize } from './byte-writer.ts';
import { MESSAGE, SOURCE, TRANSACTION } from './wire-format.ts';

export interface TransactionOptions {
  /** Name of the source in the configuration. */
  readonly source: string;
  readonly serverUuid: string;
  /** Names the transaction; its ordinal is not used. */
  readonly id: ChangeId;
  /** Microseconds since 1970; 0 when unknown. */
  readonly commitTimeMicros: number;
}

/** Made by `encodeTransaction`, given to the encoders with each change of the transaction. */
export interface TransactionBlock {
  readonly file: string;
  /** `slab[start, end)` is the field `transaction` of Source, tag and length included. */
  readonly slab: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Blocks lie behind each other in its slabs; `bodies` is written over each time. */
const blocks = new ByteWriter(16 * 1024);
const bodies = new ByteWriter(1024);

/** Of the source that transactions came from last: one process reads from few of them. */
let head: { source: string; serverUuid: string; bytes: Uint8Array } = {
  source: '',
  serverUuid: '',
  bytes: new Uint8Array(0),
};

function headOf(source: string, serverUuid: string): Uint8Array {
  if (head.source !== source || head.serverUuid !== serverUuid) {
    const writer = new ByteWriter(256);
    text(writer, TRANSACTION.source, source);
    text(writer, TRANSACTION.serverUuid, serverUuid);
    head = { source, serverUuid, bytes: writer.take() };
  }
  return head.bytes;
}

export function encodeTransaction(options: TransactionOptions): TransactionBlock {
  const { id } = options;
  const inner = bodies;
  inner.begin();
  inner.few(headOf(options.source, options.serverUuid));
  text(inner, TRANSACTION.gtid, id.gtid);
  text(inner, TRANSACTION.file, id.file);
  number(inner, TRANSACTION.offset, id.offset);
  number(inner, TRANSACTION.commitTimeMicros, options.commitTimeMicros);
  const length = inner.position - inner.start;
  const writer = blocks;
  writer.begin();
  writer.byte(SOURCE.transaction);
  writer.varint(length);
  writer.few(inner.buffer, inner.start, inner.position);
  const { buffer: slab, start, position: end } = writer;
  writer.start = end;
  return { file: id.file, slab, start, end };
}

/** Appends the field `source` of a message. `eventFile` '' stands for the transaction's file. */
export function writeSource(
  writer: ByteWriter,
  transaction: TransactionBlock,
  eventFile: string,
  eventOffset: number,
  ordinal: number,
): void {
  const otherFile = eventFile !== '' && eventFile !== transaction.file ? Buffer.from(eventFile, 'utf8') : null;
  // Like every proto3 encoder, no zeros and no empty texts.
  const fileSize = otherFile === null ? 0 : 1 + varintSize(otherFile.length) + otherFile.length;
  const offsetSize = eventOffset === 0 ? 0 : 1 + varintSize(eventOffset);
  const ordinalSize = ordinal === 0 ? 0 : 1 + varintSize(ordinal);
  const blockSize = transaction.end - transaction.start;
  writer.ensure(blockSize + fileSize + 30);
  writer.byte(MESSAGE.source);
  writer.varint(blockSize + offsetSize + fileSize + ordinalSize);
  writer.few(transaction.slab, transaction.start, transaction.end);
  number(writer, SOURCE.eventOffset, eventOffset);
  if (otherFile !== null) {
    writer.byte(SOURCE.eventFile);
    writer.varint(otherFile.length);
    writer.raw(otherFile);
  }
  number(writer, SOURCE.ordinal, ordinal);
}

function text(writer: ByteWriter, tag: number, value: string): void {
  if (value === '') return;
  writer.byte(tag);
  if (!writer.lengthAndText(value)) throw coreErrors.INTERNAL({ message: `'${value}' is not well-formed Unicode` });
}

function number(writer: ByteWriter, tag: number, value: number): void {
  if (!(Number.isSafeInteger(value) && value >= 0)) {
    throw coreErrors.INTERNAL({ message: `${value} is no offset, ordinal or time in microseconds` });
  }
  if (value === 0) return;
  writer.byte(tag);
  writer.varint(value);
}
