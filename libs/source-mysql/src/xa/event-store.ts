/**
 * Events that are held back, in order, with the places where they stand.
 *
 * 1. Bounded: all stores of a reader share one budget of memory; the one that would go beyond it goes on in a file, which is
 *    unlinked as soon as it is open, so that a killed process leaves nothing behind.
 *
 * Record: total length, type, flags, seconds, length of the event in the log (one, two, four, four bytes), offset (eight), body.
 */
import { closeSync, readSync, writeSync } from 'node:fs';
import { readControlEvent } from '../binlog/control-events.ts';
import type { LogEvent } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import { openUnlinked } from '../stream/transaction-spool.ts';

const HEAD_BYTES = 4 + 1 + 2 + 4 + 4 + 8;

/** Memory that several stores share. */
export interface HeldMemory {
  readonly limitBytes: number;
  usedBytes: number;
  /** For what does not fit. */
  readonly folder: string;
}

export class EventStore {
  readonly #memory: HeldMemory;
  readonly #logFile: string;
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #file: number | undefined;
  #fileBytes = 0;

  /** The events stand in `logFile`. */
  constructor(memory: HeldMemory, logFile: string) {
    this.#memory = memory;
    this.#logFile = logFile;
  }

  /** Takes a copy: what was received is not kept alive by it. */
  add(event: LogEvent, offset: number): void {
    const body = event.end - event.start;
    const record = Buffer.allocUnsafeSlow(HEAD_BYTES + body);
    record.writeUInt32LE(record.length, 0);
    record[4] = event.type;
    record.writeUInt16LE(event.flags, 5);
    record.writeUInt32LE(event.seconds, 7);
    record.writeUInt32LE(event.length, 11);
    record.writeDoubleLE(offset, 15);
    event.buffer.copy(record, HEAD_BYTES, event.start, event.end);
    this.#parts.push(record);
    this.#partsBytes += record.length;
    this.#memory.usedBytes += record.length;
    if (this.#memory.usedBytes > this.#memory.limitBytes) this.#spill();
  }

  /** All events in order; afterwards the store is empty. */
  *drain(): Generator<LogEvent> {
    const head = Buffer.alloc(4);
    for (let at = 0; at < this.#fileBytes; ) {
      this.#read(head, at);
      const record = Buffer.allocUnsafeSlow(head.readUInt32LE(0));
      this.#read(record, at);
      at += record.length;
      yield this.#event(record);
    }
    const parts = this.#parts;
    for (const record of parts) yield this.#event(record);
    this.close();
  }

  close(): void {
    this.#memory.usedBytes -= this.#partsBytes;
    this.#parts = [];
    this.#partsBytes = 0;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    this.#fileBytes = 0;
  }

  #event(record: Buffer): LogEvent {
    const type = record[4] as number;
    return {
      type,
      flags: record.readUInt16LE(5),
      seconds: record.readUInt32LE(7),
      length: record.readUInt32LE(11),
      nextOffset: 0,
      buffer: record,
      start: HEAD_BYTES,
      end: record.length,
      control: readControlEvent(type, 0, record, HEAD_BYTES, record.length),
      place: { file: this.#logFile, offset: record.readDoubleLE(15) },
    };
  }

  #spill(): void {
    const { folder } = this.#memory;
    const data = Buffer.concat(this.#parts);
    try {
      this.#file ??= openUnlinked(folder);
      for (let done = 0; done < data.length; ) {
        done += writeSync(this.#file, data, done, data.length - done, this.#fileBytes + done);
      }
    } catch (error) {
      throw sourceErrors.SOURCE_SPOOL_FAILED({
        message: `a prepared XA transaction cannot be written to ${folder}`,
        where: { folder, bytes: data.length },
        cause: error,
      });
    }
    this.#fileBytes += data.length;
    this.#parts = [];
    this.#memory.usedBytes -= this.#partsBytes;
    this.#partsBytes = 0;
  }

  #read(into: Buffer, at: number): void {
    for (let got = 0; got < into.length; ) {
      const count = readSync(this.#file as number, into, got, into.length - got, at + got);
      if (count === 0) throw new RangeError('the file of a held transaction has become shorter');
      got += count;
    }
  }
}
