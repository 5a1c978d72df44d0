/**
 * MySQL's partial updates (binlog_row_value_options=PARTIAL_JSON) as ordinary ones: the changes that the after image holds in
 * place of JSON documents are applied to the before image. Where that does not hold the document (binlog_row_image is not FULL), the image
 * after is made to lack it too: whoever completes the row finds it on the server.
 * Layout: as an update, but each after image begins with its options (packed; 1: partial JSON) and then one bit for each JSON column of the
 * table, set where changes stand (MySQL, sql/log_event.cc, Rows_log_event::unpack_current_row; sql/rpl_record.cc, unpack_row).
 */
import { formatTableRef, isMysyncError, type TableRef } from '@mysync/core';
import { ByteReader } from '../binlog/byte-reader.ts';
import { EVENT, TYPE } from '../binlog/column-types.ts';
import {
  countSet,
  isJson,
  isSet,
  lengthOf,
  PARTIAL_JSON,
  readImage,
  readUpdateHead,
  valueBytes,
} from '../binlog/image.ts';
import type { LogEvent } from '../binlog/log-event.ts';
import { type BareColumn, readTableId, readTableMap, readTableName } from '../binlog/table-map.ts';
import { sourceErrors } from '../errors.ts';
import { applyJsonDiffs } from '../json/json-diff.ts';

/** Where a table map lies in the bytes of all that are held. */
interface HeldMap {
  readonly start: number;
  readonly end: number;
}

export class PartialUpdates {
  readonly #captures: (ref: TableRef) => boolean;
  /** The maps of the transaction, by table id; one after the other in `#bytes`, since an event's own are not valid for long. */
  readonly #maps = new Map<number, HeldMap>();
  #bytes = Buffer.allocUnsafeSlow(1024);
  #filled = 0;

  constructor(captures: (ref: TableRef) => boolean) {
    this.#captures = captures;
  }

  /** Whether `process` must see the event. */
  concerns({ type }: LogEvent): boolean {
    return type === EVENT.TABLE_MAP || type === EVENT.PARTIAL_UPDATE_ROWS || type === EVENT.XID;
  }

  /** The event itself unless it is a partial update of a captured table. `where` is for the errors. */
  process(event: LogEvent, where: () => string): LogEvent {
    if (event.type === EVENT.TABLE_MAP) this.#hold(event);
    else if (event.type === EVENT.PARTIAL_UPDATE_ROWS) return this.#whole(event, where);
    else if (event.control.kind === 'xid' && this.#maps.size > 0) {
      this.#maps.clear();
      this.#filled = 0;
    }
    return event;
  }

  #hold(event: LogEvent): void {
    const id = readTableId(event);
    const { buffer, start, end } = event;
    const length = end - start;
    const known = this.#maps.get(id);
    if (known !== undefined && known.end - known.start === length) {
      buffer.copy(this.#bytes, known.start, start, end);
      return;
    }
    if (this.#filled + length > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * (this.#filled + length));
      this.#bytes.copy(larger, 0, 0, this.#filled);
      this.#bytes = larger;
    }
    buffer.copy(this.#bytes, this.#filled, start, end);
    this.#maps.set(id, { start: this.#filled, end: this.#filled + length });
    this.#filled += length;
  }

  #whole(event: LogEvent, where: () => string): LogEvent {
    const map = this.#maps.get(readTableId(event));
    if (map === undefined) return event;
    let ref: TableRef;
    try {
      ref = readTableName(this.#bytes, map.start, map.end);
    } catch {
      // whoever reads the map says so
      return event;
    }
    if (!this.#captures(ref)) return event;
    try {
      const { columns, bareColumns } = readTableMap(this.#bytes, map.start, map.end, 'mysql');
      return wholeUpdate(event, columns ?? bareColumns);
    } catch (error) {
      if (isMysyncError(error)) throw error;
      throw sourceErrors.SOURCE_ROW_UNREADABLE({
        message: `a partial update of ${formatTableRef(ref)} cannot be read`,
        where: { table: formatTableRef(ref), position: where() },
        cause: error,
      });
    }
  }
}

interface Images {
  readonly columns: readonly BareColumn[];
  /** A bit for each column that the image before holds; of the image after, as it is and as it becomes. */
  readonly before: Buffer;
  readonly after: Buffer;
  readonly kept: Buffer;
}

function wholeUpdate(event: LogEvent, columns: readonly BareColumn[]): LogEvent {
  const reader = new ByteReader(event.buffer, event.start, event.end);
  const { before, after } = readUpdateHead(reader, event.type, columns);
  const head = event.buffer.subarray(event.start, reader.at - after.length);
  const kept = Buffer.from(after);
  for (const [i, column] of columns.entries()) {
    if (column.type === TYPE.JSON && !isSet(before, i)) clear(kept, i);
  }
  const parts: Buffer[] = [head, kept];
  while (reader.left > 0) pushRow(reader, { columns, before, after, kept }, parts);
  const buffer = Buffer.concat(parts);
  return { ...event, type: EVENT.UPDATE_ROWS, buffer, start: 0, end: buffer.length };
}

function pushRow(reader: ByteReader, images: Images, parts: Buffer[]): void {
  const { columns, before, after } = images;
  const beforeAt = reader.at;
  const documents = readImage(reader, columns, before, isJson);
  parts.push(reader.buffer.subarray(beforeAt, reader.at));
  const isPartial = (reader.packed() & PARTIAL_JSON) !== 0;
  const ofJson = columns.filter(isJson).length;
  const partial = isPartial ? reader.bytes((ofJson + 7) >> 3) : undefined;
  const nulls = reader.bytes((countSet(after, columns.length) + 7) >> 3);
  parts.push(keptNulls(nulls, images));
  let copiedTo = reader.at;
  let document = -1;
  let held = -1;
  for (const [i, column] of columns.entries()) {
    if (column.type === TYPE.JSON) document += 1;
    if (!isSet(after, i)) continue;
    held += 1;
    if (isSet(nulls, held)) continue;
    if (column.type !== TYPE.JSON) {
      reader.skip(valueBytes(reader, column));
      continue;
    }
    const valueAt = reader.at;
    const value = reader.bytes(lengthOf(reader, column.size));
    if (isSet(images.kept, i)) {
      if (partial === undefined || !isSet(partial, document)) continue;
      const old = documents.get(i);
      if (old === undefined) throw new RangeError(`a change of column ${i}, which was NULL`);
      const whole = applyJsonDiffs(old, value);
      const length = Buffer.alloc(column.size);
      length.writeUIntLE(whole.length, 0, column.size);
      parts.push(reader.buffer.subarray(copiedTo, valueAt), length, whole);
    } else parts.push(reader.buffer.subarray(copiedTo, valueAt));
    copiedTo = reader.at;
  }
  parts.push(reader.buffer.subarray(copiedTo, reader.at));
}

/** The bits of NULL without those of the columns that are left out. */
function keptNulls(nulls: Buffer, { columns, after, kept }: Images): Buffer {
  const bits = Buffer.alloc((countSet(kept, columns.length) + 7) >> 3);
  let from = -1;
  let to = -1;
  for (let i = 0; i < columns.length; i += 1) {
    if (isSet(after, i)) from += 1;
    if (!isSet(kept, i)) continue;
    to += 1;
    if (isSet(nulls, from)) bits.writeUInt8((bits[to >> 3] as number) | (1 << (to & 7)), to >> 3);
  }
  return bits;
}

function clear(bits: Buffer, index: number): void {
  bits.writeUInt8((bits[index >> 3] as number) & ~(1 << (index & 7)), index >> 3);
}
