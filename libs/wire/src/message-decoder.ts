/**
 * Payloads into messages: the writers' hot path.
 *
 * 1. What is not a message, or not one for this version, is an error with the byte at fault: never a hang, a crash, a
 *    value that was not sent, or memory beyond a small multiple of the payload.
 * 2. Fields that are not known are skipped, but a value of an unknown kind is an error: it would read as absent.
 * 3. Table schemas are read once per fingerprint, transactions once per run of messages that carry the same bytes.
 * 4. Byte values are views into the payload: valid as long as it is.
 */
import type { ColumnValue, Delivery, TableRef } from '@mysync/core';
import { ByteReader } from './byte-reader.ts';
import { readDelivery } from './delivery.ts';
import type { BaseMessage, MessageSource, RowMessage } from './message.ts';
import { type KnownSchema, SchemaDecoder } from './schema-decoder.ts';
import {
  MESSAGE,
  OPERATIONS,
  ROW_VALUES,
  SOURCE,
  TABLE_REF,
  TRANSACTION,
  VALUE_BYTES,
  VALUE_DOUBLE,
  VALUE_FLOAT,
  VALUE_INT,
  VALUE_NULL,
  VALUE_TEXT,
  VALUE_UINT,
} from './wire-format.ts';

const TWO_32 = 4294967296;
const NOTHING = Buffer.alloc(0);

interface TransactionParts {
  name: string;
  serverUuid: string;
  gtid: string;
  file: string;
  offset: number;
  commitTimeMicros: number;
}

export class MessageDecoder {
  readonly #reader = new ByteReader();
  readonly #schemas = new SchemaDecoder();
  /** Bytes of the transaction that was read last, and what they say. */
  #transactionBytes: Buffer = NOTHING;
  #transaction: TransactionParts = noTransaction();

  /** Throws WIRE_MESSAGE_INVALID. */
  decode(payload: Uint8Array): BaseMessage {
    const delivery = readDelivery(payload);
    const reader = this.#reader;
    reader.open(payload);
    const end = payload.length;
    reader.position = 1;
    reader.position = reader.until(end);
    let operation = 0;
    let source: MessageSource | null = null;
    let known: KnownSchema | null = null;
    let before = -1;
    let after = -1;
    let table: TableRef | null = null;
    let statement = '';
    let flag = -1;
    while (reader.position < end) {
      const at = reader.position;
      const tag = reader.varint(end);
      switch (tag) {
        case MESSAGE.operation:
          operation = reader.varint(end);
          break;
        case MESSAGE.source:
          if (source !== null) throw reader.fault('the source stands twice', at);
          source = this.#source(reader.until(end));
          break;
        case MESSAGE.schema:
          if (known !== null) throw reader.fault('the table schema stands twice', at);
          known = this.#schemas.decode(reader, reader.until(end));
          break;
        case MESSAGE.before:
          if (before >= 0) throw reader.fault('the image before stands twice', at);
          before = reader.position;
          reader.position = reader.until(end);
          break;
        case MESSAGE.after:
          if (after >= 0) throw reader.fault('the image after stands twice', at);
          after = reader.position;
          reader.position = reader.until(end);
          break;
        case MESSAGE.table:
          if (table !== null) throw reader.fault('the table stands twice', at);
          table = readTableRef(reader, reader.until(end));
          break;
        case MESSAGE.statement:
          statement = reader.text(end);
          break;
        case MESSAGE.lastInTransaction:
          flag = reader.varint(end);
          break;
        case MESSAGE.delivery:
          throw reader.fault('the delivery stands twice', at);
        default:
          reader.skip(tag, end);
      }
    }
    if (source === null) throw reader.fault('the message has no source');
    // Always there, always last: without it the message was cut off, if only behind a whole field.
    if (flag < 0) throw reader.fault('the message has no end');
    const last = flag !== 0;
    switch (operation) {
      case 1:
      case 2:
      case 3:
      case 4:
      case 10:
        return this.#row(operation, delivery, source, known, before, after, end, last);
      case 5:
      case 6:
      case 7: {
        if (table === null) throw reader.fault(`a ${OPERATIONS[operation]} has no table`);
        const name = operation === 5 ? 'sweep' : operation === 6 ? 'truncate' : 'ddl';
        return { operation: name, delivery, source, lastInTransaction: last, table, statement };
      }
      case 8:
      case 9:
        return { operation: operation === 8 ? 'heartbeat' : 'fence', delivery, source, lastInTransaction: last };
      default:
        throw reader.fault(`the operation ${operation} is not known`, 0);
    }
  }

  #row(
    operation: 1 | 2 | 3 | 4 | 10,
    delivery: Delivery,
    source: MessageSource,
    known: KnownSchema | null,
    before: number,
    after: number,
    end: number,
    last: boolean,
  ): BaseMessage {
    const reader = this.#reader;
    if (known === null) throw reader.fault('a row has no table schema');
    const wantsBefore = operation === 2 || operation === 3;
    const wantsAfter = operation !== 3 && operation !== 10;
    if (wantsBefore !== before >= 0 || wantsAfter !== after >= 0) {
      throw reader.fault(`the operation ${OPERATIONS[operation]} has the wrong row images`);
    }
    return {
      operation: OPERATIONS[operation] as RowMessage['operation'],
      delivery,
      source,
      lastInTransaction: last,
      schema: known.schema,
      before: before < 0 ? null : readRow(reader, before, end, known),
      after: after < 0 ? null : readRow(reader, after, end, known),
    };
  }

  #source(end: number): MessageSource {
    const reader = this.#reader;
    let transaction: TransactionParts | null = null;
    let eventOffset = 0;
    let eventFile = '';
    let ordinal = 0;
    while (reader.position < end) {
      const tag = reader.varint(end);
      switch (tag) {
        case SOURCE.transaction:
          if (transaction !== null) throw reader.fault('the transaction stands twice');
          transaction = this.#readTransaction(reader.until(end));
          break;
        case SOURCE.eventOffset:
          eventOffset = reader.varint(end);
          break;
        case SOURCE.eventFile:
          eventFile = reader.text(end);
          break;
        case SOURCE.ordinal:
          ordinal = reader.varint(end);
          break;
        default:
          reader.skip(tag, end);
      }
    }
    if (transaction === null) throw reader.fault('the source names no transaction');
    const { file, offset, gtid } = transaction;
    return {
      name: transaction.name,
      serverUuid: transaction.serverUuid,
      commitTimeMicros: transaction.commitTimeMicros,
      change: { file, offset, gtid, ordinal },
      eventFile: eventFile === '' ? file : eventFile,
      eventOffset,
    };
  }

  #readTransaction(end: number): TransactionParts {
    const reader = this.#reader;
    const from = reader.position;
    const bytes = this.#transactionBytes;
    if (bytes.length === end - from && bytes.length > 0 && sameBytes(bytes, reader.buffer, from)) {
      reader.position = end;
      return this.#transaction;
    }
    const parts = noTransaction();
    while (reader.position < end) {
      const tag = reader.varint(end);
      if (tag === TRANSACTION.source) parts.name = reader.text(end);
      else if (tag === TRANSACTION.serverUuid) parts.serverUuid = reader.text(end);
      else if (tag === TRANSACTION.gtid) parts.gtid = reader.text(end);
      else if (tag === TRANSACTION.file) parts.file = reader.text(end);
      else if (tag === TRANSACTION.offset) parts.offset = reader.varint(end);
      else if (tag === TRANSACTION.commitTimeMicros) parts.commitTimeMicros = reader.varint(end);
      else reader.skip(tag, end);
    }
    this.#transaction = parts;
    this.#transactionBytes = Buffer.from(reader.buffer.subarray(from, end));
    return parts;
  }
}

function noTransaction(): TransactionParts {
  return { name: '', serverUuid: '', gtid: '', file: '', offset: 0, commitTimeMicros: 0 };
}

/** Backwards: transactions differ in their last bytes. */
function sameBytes(bytes: Buffer, other: Buffer, from: number): boolean {
  for (let i = bytes.length - 1; i >= 0; i--) if (bytes[i] !== other[from + i]) return false;
  return true;
}

function readTableRef(reader: ByteReader, end: number): TableRef {
  let database = '';
  let table = '';
  while (reader.position < end) {
    const tag = reader.varint(end);
    if (tag === TABLE_REF.database) database = reader.text(end);
    else if (tag === TABLE_REF.table) table = reader.text(end);
    else reader.skip(tag, end);
  }
  return { database, table };
}

/** Reads the row whose length stands at `at`. */
function readRow(reader: ByteReader, at: number, messageEnd: number, known: KnownSchema): ColumnValue[] {
  reader.position = at;
  const end = reader.until(messageEnd);
  const tags = known.tags;
  const values: ColumnValue[] = [];
  while (reader.position < end) {
    const tag = reader.varint(end);
    if (tag !== ROW_VALUES) {
      reader.skip(tag, end);
      continue;
    }
    const column = values.length;
    if (column >= tags.length) throw reader.fault('a row has more values than its table has columns');
    const stop = reader.until(end);
    values.push(reader.position === stop ? undefined : readValue(reader, stop, tags[column] as number));
  }
  if (values.length !== tags.length) {
    throw reader.fault(`a row has ${values.length} values, its table ${tags.length} columns`);
  }
  return values;
}

function readValue(reader: ByteReader, end: number, expected: number): ColumnValue {
  const from = reader.position;
  let value: ColumnValue;
  while (reader.position < end) {
    const tag = reader.varint(end);
    if (tag === expected) value = readTyped(reader, end, tag);
    else if (tag === VALUE_NULL) {
      if (reader.varint(end) !== 1) throw reader.fault('a NULL is not true', from);
      value = null;
    } else {
      throw reader.fault(`a value has the field ${tag >>> 3}, its column another kind`, from);
    }
  }
  return value;
}

function readTyped(reader: ByteReader, end: number, tag: number): ColumnValue {
  switch (tag) {
    case VALUE_INT:
      return readInt(reader, end);
    case VALUE_UINT: {
      reader.varint64(end);
      if (reader.high <= 0x1fffff) return reader.high * TWO_32 + reader.low;
      return (BigInt(reader.high) << 32n) | BigInt(reader.low);
    }
    case VALUE_FLOAT:
      return reader.buffer.readFloatLE(reader.fixed(4, end));
    case VALUE_DOUBLE:
      return reader.buffer.readDoubleLE(reader.fixed(8, end));
    case VALUE_TEXT:
      return reader.text(end);
    case VALUE_BYTES:
      return reader.bytes(end);
    default:
      throw reader.fault('a column has an unknown kind');
  }
}

function readInt(reader: ByteReader, end: number): number | bigint {
  reader.varint64(end);
  const { low, high } = reader;
  if (high === 0) return low & 1 ? -((low >>> 1) + 1) : low >>> 1;
  const half = ((low >>> 1) | (high << 31)) >>> 0;
  const rest = high >>> 1;
  const negative = (low & 1) === 1;
  // Below 2^53 − 1, so that the complement is safe too.
  if (rest < 0x1fffff || (rest === 0x1fffff && half < 0xffffffff)) {
    const magnitude = rest * TWO_32 + half;
    return negative ? -magnitude - 1 : magnitude;
  }
  if (rest === 0x1fffff && !negative) return Number.MAX_SAFE_INTEGER;
  const magnitude = (BigInt(rest) << 32n) | BigInt(half);
  return negative ? -magnitude - 1n : magnitude;
}
