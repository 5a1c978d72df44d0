/** MariaDB's compressed columns and compressed events. */

import { inflateRawSync, inflateSync } from 'node:zlib';
import { MOST_EVENT_BYTES } from './log-event.ts';

/**
 * A value of a COMPRESSED column. Header (MariaDB, sql/field_comp.cc): high half the method (0 stored, 8 zlib), bit 3 "no zlib wrapper",
 * low three bits the bytes of the original length that follows, big-endian. An empty value has no header.
 */
export function inflateColumn(value: Buffer): Buffer {
  const header = value[0];
  if (header === undefined) return value;
  if (header >> 4 === 0) return value.subarray(1);
  if (header >> 4 !== 8) throw new RangeError(`unknown compression method ${header >> 4} of a column`);
  const lengthBytes = header & 7;
  if (lengthBytes < 1 || lengthBytes > 4) throw new RangeError(`a length of ${lengthBytes} bytes`);
  const length = value.readUIntBE(1, lengthBytes);
  const data = value.subarray(1 + lengthBytes);
  const options = { maxOutputLength: Math.max(length, 1) };
  const whole = (header & 8) === 0 ? inflateSync(data, options) : inflateRawSync(data, options);
  if (whole.length !== length) throw new RangeError('a compressed value has another length than it says');
  return whole;
}

/**
 * The rows of a compressed event. Header (MariaDB, sql/log_event.cc, binlog_get_uncompress_len): bit 7 set, bits 4 to 6 the method
 * (0 zlib), low three bits the bytes of the original length, big-endian.
 */
export function inflateEvent(value: Buffer): Buffer {
  const header = value[0] ?? 0;
  const lengthBytes = header & 7;
  if ((header & 0xf0) !== 0x80 || lengthBytes < 1 || lengthBytes > 4) {
    throw new RangeError(`unknown compression header ${header} of an event`);
  }
  const length = value.readUIntBE(1, lengthBytes);
  // no more is taken than it says, whatever it unfolds to
  if (length > MOST_EVENT_BYTES) throw new RangeError(`a compressed event of ${length} bytes`);
  const data = inflateSync(value.subarray(1 + lengthBytes), { maxOutputLength: Math.max(length, 1) });
  if (data.length !== length) throw new RangeError('a compressed event has another length than it says');
  return data;
}
