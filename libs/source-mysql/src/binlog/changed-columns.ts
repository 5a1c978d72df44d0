/** Whether an update changes certain columns, from its bytes alone. */
import { ByteReader } from './byte-reader.ts';
import { EVENT, TYPE } from './column-types.ts';
import { countSet, isSet, lengthOf, valueBytes } from './image.ts';
import type { LogEvent } from './log-event.ts';
import type { BareColumn } from './table-map.ts';

const PARTIAL_JSON = 1;

/**
 * False: no row of the event (an update of MySQL, also a partial one) has another value in any of the columns at `indexes` than before. True: one has, or the
 * images do not tell. `columns` are those of the event's table map. Throws a RangeError when the event is no such thing.
 */
export function changesColumns(event: LogEvent, columns: readonly BareColumn[], indexes: ReadonlySet<number>): boolean {
  const reader = new ByteReader(event.buffer, event.start, event.end);
  reader.skip(8); // table id and flags
  if (event.type === EVENT.UPDATE_ROWS || event.type === EVENT.PARTIAL_UPDATE_ROWS) reader.skip(reader.uint(2) - 2);
  const count = reader.packed();
  if (count !== columns.length) throw new RangeError(`the event has ${count} columns, its table map ${columns.length}`);
  const bitmapBytes = (count + 7) >> 3;
  const before = reader.bytes(bitmapBytes);
  const after = reader.bytes(bitmapBytes);
  const watched = new Set<number>();
  for (const index of indexes) {
    // what a statement does not set is not in the image after
    if (!isSet(after, index)) continue;
    if (!isSet(before, index)) return true;
    watched.add(index);
  }
  if (watched.size === 0) return false;
  const isPartial = event.type === EVENT.PARTIAL_UPDATE_ROWS;
  const documents = columns.filter((column) => column.type === TYPE.JSON).length;
  while (reader.left > 0) {
    const was = readValues(reader, columns, before, watched);
    if (isPartial && (reader.packed() & PARTIAL_JSON) !== 0) reader.skip((documents + 7) >> 3);
    const is = readValues(reader, columns, after, watched);
    for (const index of watched) if (!equal(was.get(index), is.get(index))) return true;
  }
  return false;
}

/** Reads over an image. The watched columns' bytes; none for NULL. */
function readValues(
  reader: ByteReader,
  columns: readonly BareColumn[],
  held: Buffer,
  watched: ReadonlySet<number>,
): ReadonlyMap<number, Buffer> {
  const values = new Map<number, Buffer>();
  const nulls = reader.bytes((countSet(held, columns.length) + 7) >> 3);
  let bit = -1;
  for (const [i, column] of columns.entries()) {
    if (!isSet(held, i)) continue;
    bit += 1;
    if (isSet(nulls, bit)) continue;
    // changes of a document stand behind a length like the document's
    const length = column.type === TYPE.JSON ? lengthOf(reader, column.size) : valueBytes(reader, column);
    if (watched.has(i)) values.set(i, reader.bytes(length));
    else reader.skip(length);
  }
  return values;
}

function equal(a: Buffer | undefined, b: Buffer | undefined): boolean {
  return a === undefined || b === undefined ? a === b : a.equals(b);
}
