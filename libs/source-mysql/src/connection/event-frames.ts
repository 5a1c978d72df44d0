/**
 * Packets of the dump to events: header, checksum, control events.
 *
 * 1. Checksums are checked and cut off as the format description of each file says: files before and after a change of
 *    binlog_checksum follow each other. A wrong sum is never taken for none, but of what a server makes up for us (`maySkipSum`).
 * 2. An error names the place of the event.
 */
import { isMysyncError } from '@mysync/core';
import { EVENT } from '../binlog/column-types.ts';
import { readControlEvent } from '../binlog/control-events.ts';
import { type ControlEvent, EVENT_FLAG, type LogEvent } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import { checksum } from './checksum.ts';

const CHECKSUM_BYTES = 4;
const HEADER_BYTES = 19;
/** Version of the log, version of the server, time of creation; then the length of every event's header. */
const HEADER_LENGTH_AT = 2 + 50 + 4;
const LOG_VERSION = 4;
const CRC32 = 1;
const NONE: ControlEvent = { kind: 'none' };
const MOST_KEPT_BYTES = 1 << 20;
const NO_BYTES = Buffer.allocUnsafeSlow(0);

export class EventFrames {
  /** Of the file that is being sent; undefined before its format description. */
  #checksums: boolean | undefined;
  /** That there are none is said by a format whose own sum proves nothing: the next event shows whether it is true. */
  #isDoubtful = false;
  #file = '';
  /** Behind the last event that stands in the log: what an event says of its own place may be damaged. */
  #offset = 0;
  readonly #event: { -readonly [K in keyof LogEvent]: LogEvent[K] } = {
    type: 0,
    seconds: 0,
    flags: 0,
    length: 0,
    nextOffset: 0,
    buffer: NO_BYTES,
    start: 0,
    end: 0,
    control: NONE,
    place: undefined,
  };
  /** Over the bytes that were read last: many events lie in them. */
  #viewed: Buffer = NO_BYTES;
  #view: DataView = new DataView(NO_BYTES.buffer, 0, 0);

  /** The event in `buffer[start, end)`, header first; the next call reads into the same object. Throws SOURCE_EVENT_UNREADABLE. */
  read(buffer: Buffer, start: number, end: number): LogEvent {
    if (end - start < HEADER_BYTES) throw this.#unreadable(`an event of ${end - start} bytes`, this.#offset);
    const view = this.#viewOf(buffer);
    const seconds = view.getUint32(start, true);
    const type = buffer[start + 4] as number;
    const serverId = view.getUint32(start + 5, true);
    const length = view.getUint32(start + 9, true);
    const nextOffset = view.getUint32(start + 13, true);
    const flags = view.getUint16(start + 17, true);
    const at = this.#offset;
    if (start + length !== end) throw this.#unreadable(`an event says ${length} bytes, but ${end - start} came`, at);
    const hasSum =
      type === EVENT.FORMAT_DESCRIPTION
        ? this.#learnFormat(buffer, start, end, nextOffset, at)
        : this.#hasChecksum(type, seconds, flags, buffer, start, end, at);
    const bodyEnd = hasSum ? end - CHECKSUM_BYTES : end;
    const bodyStart = start + HEADER_BYTES;
    let control = NONE;
    try {
      control = readControlEvent(type, serverId, buffer, bodyStart, bodyEnd);
    } catch (error) {
      if (isMysyncError(error)) throw error;
      throw this.#unreadable(`an event of type ${type} cannot be read`, at, error);
    }
    if (control.kind === 'rotate') {
      this.#file = control.file;
      this.#offset = control.offset;
    } else if (nextOffset !== 0) this.#offset = nextOffset;
    else if (type !== EVENT.FORMAT_DESCRIPTION) this.#offset += length;
    const event = this.#event;
    event.type = type;
    event.seconds = seconds;
    event.flags = flags;
    event.length = length;
    event.nextOffset = nextOffset;
    event.buffer = buffer;
    event.start = bodyStart;
    event.end = bodyEnd;
    event.control = control;
    return event;
  }

  /** A format has room for a sum in any case. */
  #learnFormat(buffer: Buffer, start: number, end: number, nextOffset: number, at: number): true {
    const body = start + HEADER_BYTES;
    if (end - body < HEADER_LENGTH_AT + 1 + 1 + CHECKSUM_BYTES) {
      throw this.#unreadable('a format description that ends too early', at);
    }
    const version = buffer.readUInt16LE(body);
    const header = buffer[body + HEADER_LENGTH_AT];
    const algorithm = buffer[end - CHECKSUM_BYTES - 1] as number;
    if (version !== LOG_VERSION || header !== HEADER_BYTES || algorithm > CRC32) {
      throw this.#unreadable(`a log of version ${version}, headers of ${header} bytes, checksum ${algorithm}`, at);
    }
    const isProven = this.#matches(buffer, start, end);
    if (!isProven && (algorithm === CRC32 || nextOffset !== 0)) throw this.#wrongSum(EVENT.FORMAT_DESCRIPTION, at);
    this.#checksums = algorithm === CRC32;
    this.#isDoubtful = !isProven;
    return true;
  }

  /** Whether the event ends with a sum. Throws when it must and that is wrong. */
  #hasChecksum(
    type: number,
    seconds: number,
    flags: number,
    buffer: Buffer,
    start: number,
    end: number,
    at: number,
  ): boolean {
    if (this.#checksums === true) {
      if (this.#matches(buffer, start, end)) return true;
      if (!maySkipSum(type, seconds, flags)) throw this.#wrongSum(type, at);
      return false;
    }
    if (maySkipSum(type, seconds, flags)) return this.#matches(buffer, start, end);
    if (this.#checksums === undefined) {
      throw this.#unreadable(`an event of type ${type} in front of the log's format description`, at);
    }
    if (!this.#isDoubtful) return false;
    this.#isDoubtful = false;
    if (this.#matches(buffer, start, end)) throw this.#wrongSum(EVENT.FORMAT_DESCRIPTION, at);
    return false;
  }

  #matches(buffer: Buffer, start: number, end: number): boolean {
    const sumAt = end - CHECKSUM_BYTES;
    const view = this.#viewOf(buffer);
    return sumAt - start >= HEADER_BYTES && checksum(buffer, view, start, sumAt) === view.getUint32(sumAt, true);
  }

  #viewOf(buffer: Buffer): DataView {
    if (this.#viewed === buffer) return this.#view;
    const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
    // a large event is not kept for its view
    if (buffer.length <= MOST_KEPT_BYTES) {
      this.#viewed = buffer;
      this.#view = view;
    }
    return view;
  }

  #wrongSum(type: number, at: number): Error {
    return this.#unreadable(`the checksum of an event of type ${type} is wrong`, at);
  }

  #unreadable(message: string, at: number, cause?: unknown): Error {
    const where = { position: `${this.#file}:${at}` };
    return sourceErrors.SOURCE_EVENT_UNREADABLE({ message, where, ...(cause === undefined ? {} : { cause }) });
  }
}

/**
 * What a server makes up for us has a sum or none, whatever the file has: its own setting of now decides. All of it tells no time. (Seen on MariaDB 10.11 and
 * MySQL 9.7, with binlog_checksum changed at run time: rotations to the file that is read, heartbeats, MariaDB's list of GTIDs; formats have a right sum, but the
 * one with which reading begins inside of a file without sums.)
 */
function maySkipSum(type: number, seconds: number, flags: number): boolean {
  if (seconds !== 0) return false;
  if (type === EVENT.HEARTBEAT || type === EVENT.HEARTBEAT_V2) return true;
  return (flags & EVENT_FLAG.ARTIFICIAL) !== 0 && (type === EVENT.ROTATE || type === EVENT.MARIADB_GTID_LIST);
}
