/** Whether an update changes certain columns, from its bytes alone. */
import { ByteReader } from './byte-reader.ts';
import { EVENT } from './column-types.ts';
import { isJson, isSet, PARTIAL_JSON, readImage, readUpdateHead } from './image.ts';
import type { LogEvent } from './log-event.ts';
import type { BareColumn } from './table-map.ts';

/**
 * False: no row of the event (an update of MySQL, also a partial one) has another value in any of the columns at `indexes` than before. True: one has, or the
 * images do not tell. `columns` are those of the event's table map. Throws a RangeError when the event is no such thing.
 */
export function changesColumns(event: LogEvent, columns: readonly BareColumn[], indexes: ReadonlySet<number>): boolean {
  const reader = new ByteReader(event.buffer, event.start, event.end);
  const { before, after } = readUpdateHead(reader, event.type, columns);
  const watched = new Set<number>();
  for (const index of indexes) {
    // what a statement does not set is not in the image after
    if (!isSet(after, index)) continue;
    if (!isSet(before, index)) return true;
    watched.add(index);
  }
  if (watched.size === 0) return false;
  const isPartial = event.type === EVENT.PARTIAL_UPDATE_ROWS;
  const documents = columns.filter(isJson).length;
  const isWatched = (_: BareColumn, index: number): boolean => watched.has(index);
  while (reader.left > 0) {
    const was = readImage(reader, columns, before, isWatched);
    if (isPartial && (reader.packed() & PARTIAL_JSON) !== 0) reader.skip((documents + 7) >> 3);
    const is = readImage(reader, columns, after, isWatched);
    for (const index of watched) if (!equal(was.get(index), is.get(index))) return true;
  }
  return false;
}

function equal(a: Buffer | undefined, b: Buffer | undefined): boolean {
  return a === undefined || b === undefined ? a === b : a.equals(b);
}
