/**
 * A place of the log that a dump request cannot ask for: it has 32 bits for the offset, and a transaction of more than 4 GiB makes a file longer, with
 * those that were committed in the same group behind it. So the file is asked for from its beginning, and what stands before the place is
 * read over. What is handed on is what a server sends that begins there: a rotation to the place, the format, and what follows.
 */
import { type BinlogPosition, formatBinlogPosition } from '@mysync/core';
import { EVENT } from '../binlog/column-types.ts';
import { isMadeUp, type LogEvent } from '../binlog/log-event.ts';
import { sourceErrors } from '../errors.ts';
import { LogCursor } from '../stream/log-position.ts';

/** What a dump request can ask for. */
export const FARTHEST_OFFSET = 0xffff_ffff;
export const FIRST_OFFSET = 4;

export class FarPlace {
  readonly #place: BinlogPosition;
  readonly #cursor: LogCursor;

  constructor(place: BinlogPosition) {
    this.#place = place;
    this.#cursor = new LogCursor(place.file, FIRST_OFFSET);
  }

  get isReached(): boolean {
    return this.#cursor.offset === this.#place.offset;
  }

  /** What to hand on for an event in front of the place; undefined for nothing. Throws SOURCE_POSITION_UNKNOWN, and a RangeError as `LogCursor`. */
  pass(event: LogEvent): LogEvent | undefined {
    const { file, offset } = this.#place;
    const { control, type } = event;
    if (control.kind === 'rotate' && control.file === file) return { ...event, control: { ...control, offset } };
    if (isMadeUp(event)) return event;
    this.#cursor.pass(event.length, event.nextOffset);
    if (this.#cursor.offset > offset || control.kind === 'rotate') {
      const where = { position: formatBinlogPosition(this.#place) };
      throw sourceErrors.SOURCE_POSITION_UNKNOWN({ message: 'no event of the log begins at our position', where });
    }
    // one that tells no offset was made for whoever begins inside of the file
    return type === EVENT.FORMAT_DESCRIPTION ? { ...event, nextOffset: 0 } : undefined;
  }
}
