/**
 * The delivery numbers at the head of a payload, read and written in place: a message that is sent again is
 * stamped anew, never encoded anew.
 */
import { coreErrors, type Delivery, type Operation, ORDINAL_BITS } from '@mysync/core';
import { wireErrors } from './errors.ts';
import {
  BASE_AT,
  DELIVERY_END,
  DELIVERY_LENGTH,
  EPOCH_AT,
  GENERATION_AT,
  MESSAGE,
  OPERATIONS,
  SEQUENCE_AT,
  VERSION_AT,
} from './wire-format.ts';

const TWO_32 = 4294967296;
const ORDINALS = 2 ** ORDINAL_BITS;
/** Counters per high half of a version. */
const COUNTERS_PER_HIGH = TWO_32 / ORDINALS;
const MAX_COUNTER = 2 ** (63 - ORDINAL_BITS) - 1;

/** What a copy of a message is stamped with. */
export interface DeliveryStamp {
  readonly epoch: number;
  readonly generation: number;
  readonly base: number;
  readonly sequence: number;
  /** Below 2^43. */
  readonly transactionCounter: number;
  /** May exceed 2^20: it then counts into the room that the counter leaves after such a transaction. */
  readonly ordinal: number;
}

/** The numbers that the guard needs, in an object that is filled again for each message. */
export interface DeliveryNumbers {
  epoch: number;
  generation: number;
  base: number;
  sequence: number;
}

/** Writes the delivery numbers into the encoded message that begins at `at`. `version` = transactionCounter × 2^20 + ordinal. */
export function stampDelivery(bytes: Uint8Array, stamp: DeliveryStamp, at = 0): void {
  checkLayout(bytes, at);
  checkNumber('epoch', stamp.epoch, TWO_32 - 1);
  checkNumber('generation', stamp.generation, TWO_32 - 1);
  checkNumber('base', stamp.base, Number.MAX_SAFE_INTEGER);
  checkNumber('sequence', stamp.sequence, Number.MAX_SAFE_INTEGER);
  checkNumber('transactionCounter', stamp.transactionCounter, MAX_COUNTER);
  checkNumber('ordinal', stamp.ordinal, Number.MAX_SAFE_INTEGER - TWO_32);
  const low = (stamp.transactionCounter % COUNTERS_PER_HIGH) * ORDINALS + stamp.ordinal;
  const high = Math.floor(stamp.transactionCounter / COUNTERS_PER_HIGH) + Math.floor(low / TWO_32);
  if (high > 0x7fffffff) checkNumber('version', Number.POSITIVE_INFINITY, 2 ** 63);
  writeHalf(bytes, at + EPOCH_AT, stamp.epoch);
  writeHalf(bytes, at + GENERATION_AT, stamp.generation);
  writeWhole(bytes, at + BASE_AT, stamp.base);
  writeWhole(bytes, at + SEQUENCE_AT, stamp.sequence);
  writeHalf(bytes, at + VERSION_AT, low);
  writeHalf(bytes, at + VERSION_AT + 4, high);
}

/** Reads all delivery numbers. Throws WIRE_MESSAGE_INVALID when the payload does not begin with them. */
export function readDelivery(payload: Uint8Array): Delivery {
  checkLayout(payload);
  return {
    epoch: readHalf(payload, EPOCH_AT),
    generation: readHalf(payload, GENERATION_AT),
    base: readWhole(payload, BASE_AT),
    sequence: readWhole(payload, SEQUENCE_AT),
    version: readVersion(payload),
  };
}

/** Fills `out` with what the guard needs, without allocating. */
export function readNumbers(payload: Uint8Array, out: DeliveryNumbers): void {
  checkLayout(payload);
  out.epoch = readHalf(payload, EPOCH_AT);
  out.generation = readHalf(payload, GENERATION_AT);
  out.base = readWhole(payload, BASE_AT);
  out.sequence = readWhole(payload, SEQUENCE_AT);
}

/**
 * The operation alone of the message that begins at `at`: a guard tells a fence from the rest without decoding. Throws
 * WIRE_MESSAGE_INVALID.
 */
export function readOperation(bytes: Uint8Array, at = 0): Operation {
  checkLayout(bytes, at);
  const tag = at + 2 + (bytes[at + 1] as number);
  const operation = bytes[tag] === MESSAGE.operation ? OPERATIONS[bytes[tag + 1] ?? 0] : undefined;
  if (operation === undefined) {
    throw wireErrors.WIRE_MESSAGE_INVALID({
      message: 'no known operation stands behind the delivery numbers',
      where: { byte: tag - at },
    });
  }
  return operation;
}

/** Marks the message that ends at `end` as the last (or not) of its transaction, in place. */
export function setLastInTransaction(bytes: Uint8Array, last: boolean, end = bytes.length): void {
  const at = end - 2;
  if (at < DELIVERY_END || bytes[at] !== MESSAGE.lastInTransaction) {
    throw wireErrors.WIRE_MESSAGE_INVALID({
      message: 'the message does not end with last_in_transaction',
      where: { byte: Math.max(at, 0) },
    });
  }
  bytes[at + 1] = last ? 1 : 0;
}

/** Throws unless a delivery whose numbers stand in their fixed places begins at `at`. */
function checkLayout(bytes: Uint8Array, at = 0): void {
  if (
    bytes.length < at + DELIVERY_END ||
    bytes[at] !== MESSAGE.delivery ||
    (bytes[at + 1] as number) < DELIVERY_LENGTH ||
    (bytes[at + 1] as number) > 0x7f ||
    bytes[at + EPOCH_AT - 1] !== 0x0d ||
    bytes[at + GENERATION_AT - 1] !== 0x15 ||
    bytes[at + BASE_AT - 1] !== 0x19 ||
    bytes[at + SEQUENCE_AT - 1] !== 0x21 ||
    bytes[at + VERSION_AT - 1] !== 0x29
  ) {
    throw wireErrors.WIRE_MESSAGE_INVALID({
      message: 'the message does not begin with its delivery numbers',
      where: { byte: 0 },
    });
  }
}

const scratch = new DataView(new ArrayBuffer(8));

function readVersion(payload: Uint8Array): bigint {
  scratch.setUint32(0, readHalf(payload, VERSION_AT + 4));
  scratch.setUint32(4, readHalf(payload, VERSION_AT));
  return scratch.getBigUint64(0);
}

function readHalf(payload: Uint8Array, at: number): number {
  return (
    ((payload[at] as number) |
      ((payload[at + 1] as number) << 8) |
      ((payload[at + 2] as number) << 16) |
      ((payload[at + 3] as number) << 24)) >>>
    0
  );
}

function readWhole(payload: Uint8Array, at: number): number {
  const value = readHalf(payload, at + 4) * TWO_32 + readHalf(payload, at);
  if (value > Number.MAX_SAFE_INTEGER) {
    throw wireErrors.WIRE_MESSAGE_INVALID({ message: 'a delivery number is 2^53 or more', where: { byte: at } });
  }
  return value;
}

/** Only the low 32 bits of `value` are written. */
function writeHalf(payload: Uint8Array, at: number, value: number): void {
  const bits = value >>> 0;
  payload[at] = bits;
  payload[at + 1] = bits >>> 8;
  payload[at + 2] = bits >>> 16;
  payload[at + 3] = bits >>> 24;
}

function writeWhole(payload: Uint8Array, at: number, value: number): void {
  writeHalf(payload, at, value);
  writeHalf(payload, at + 4, value / TWO_32);
}

function checkNumber(name: string, value: number, most: number): void {
  if (!(Number.isInteger(value) && value >= 0 && value <= most)) {
    throw coreErrors.INTERNAL({ message: `${name} ${value} is not a whole number from 0 to ${most}` });
  }
}
