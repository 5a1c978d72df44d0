/**
 * Packets of the dump to events: header, checksum, control events.
 *
 * 1. Checksums are checked and cut off as the format description of each file says: files before and after a change of
 *    binlog_checksum follow each other.
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

export class EventFrames {
  /** Of the file that is being sent; undefined before its format description. */
  #checksums: boolean | undefined;
  #file = '';
  /** Behind the last event that stands in the log: what an event says of its own place may be damaged. */
  #offset = 0;

  /** The event in `buffer[start, end)`, header first. Throws SOURCE_EVENT_UNREADABLE. */
  read(buffer: Buffer, start: number, end: number): LogEvent {
    if (end - start < HEADER_BYTES) throw this.#unreadable(`an event of ${end - start} bytes`, this.#offset);
    const seconds = buffer.readUInt32LE(start);
    const type = buffer[start + 4] as number;
    const serverId = buffer.readUInt32LE(start + 5);
    const length = buffer.readUInt32LE(start + 9);
    const nextOffset = buffer.readUInt32LE(start + 13);
    const flags = buffer.readUInt16LE(start + 17);
    const at = this.#offset;
    if (start + length !== end) throw this.#unreadable(`an event says ${length} bytes, but ${end - start} came`, at);
    if (type === EVENT.FORMAT_DESCRIPTION) this.#learnFormat(buffer, start + HEADER_BYTES, end, at);
    const bodyEnd = this.#hasChecksum(type, flags, buffer, start, end, at) ? end - CHECKSUM_BYTES : end;
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
    return {
      type,
      seconds,
      flags,
      length,
      nextOffset,
      buffer,
      start: bodyStart,
      end: bodyEnd,
      control,
      place: undefined,
    };
  }

  #learnFormat(buffer: Buffer, start: number, end: number, at: number): void {
    if (end - start < HEADER_LENGTH_AT + 1 + 1 + CHECKSUM_BYTES) {
      throw this.#unreadable('a format description that ends too early', at);
    }
    const version = buffer.readUInt16LE(start);
    const header = buffer[start + HEADER_LENGTH_AT];
    const algorithm = buffer[end - CHECKSUM_BYTES - 1] as number;
    if (version !== LOG_VERSION || header !== HEADER_BYTES || algorithm > CRC32) {
      throw this.#unreadable(`a log of version ${version}, headers of ${header} bytes, checksum ${algorithm}`, at);
    }
    this.#checksums = algorithm === CRC32;
  }

  /**
   * What a file holds is checked; what the server makes up for us is too, but may come with or without a checksum, whatever the
   * file has, so there the sum itself decides.
   */
  #hasChecksum(type: number, flags: number, buffer: Buffer, start: number, end: number, at: number): boolean {
    if (type === EVENT.FORMAT_DESCRIPTION) return true; // its sum does not cover the "in use" flag: not checked
    const madeUp =
      (flags & EVENT_FLAG.ARTIFICIAL) !== 0 ||
      type === EVENT.HEARTBEAT ||
      type === EVENT.HEARTBEAT_V2 ||
      type === EVENT.ROTATE;
    if (madeUp || this.#checksums === undefined) return matches(buffer, start, end);
    if (this.#checksums && !matches(buffer, start, end)) {
      throw this.#unreadable(`the checksum of an event of type ${type} is wrong`, at);
    }
    return this.#checksums;
  }

  #unreadable(message: string, at: number, cause?: unknown): Error {
    const where = { position: `${this.#file}:${at}` };
    return sourceErrors.SOURCE_EVENT_UNREADABLE({ message, where, ...(cause === undefined ? {} : { cause }) });
  }
}

function matches(buffer: Buffer, start: number, end: number): boolean {
  return (
    end - start >= HEADER_BYTES + CHECKSUM_BYTES &&
    checksum(buffer, start, end - CHECKSUM_BYTES) === buffer.readUInt32LE(end - CHECKSUM_BYTES)
  );
}
