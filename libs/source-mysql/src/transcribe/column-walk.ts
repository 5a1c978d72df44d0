/** What a column of a table version is transcribed with. */
import type { ByteWriter, TablePlan } from '@mysync/wire';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { RowBytes } from './row-bytes.ts';

/**
 * Reads one value that is not NULL and appends it as the value of a message's row. A walker keeps nothing and makes no string, view
 * or object on its usual path. Throws a RangeError on bytes that are no value of the column.
 */
export type Walk = (column: ColumnWalk, source: RowBytes, out: ByteWriter) => void;

/** All columns have all fields, so that every walker meets objects of one shape. */
export interface ColumnWalk {
  readonly walk: Walk;
  /** Of its values that a walker cannot take from the bytes alone: the reference reads those. */
  readonly reader: ColumnReader;
  readonly plan: TablePlan;
  /** Its place in the table. */
  readonly index: number;
  /** Bytes of the length in front of a value; of the number of an ENUM or SET. */
  readonly lengthBytes: number;
  /** Bytes of a BINARY or BIT, fractional digits of a time. */
  readonly size: number;
  /** DECIMAL: digits of each group in front of the point, and behind it. */
  readonly wholeGroups: Uint8Array;
  readonly fractionGroups: Uint8Array;
  /** ENUM: each value as it stands in a message, by number. SET: each member's text. */
  readonly members: readonly Uint8Array[];
  /** Text in a charset of single bytes: for each byte its UTF-8, lowest byte first, the count in the highest byte. */
  readonly characters: Uint32Array;
  /** Bytes below 0x80 are ASCII, wherever they stand. */
  readonly asciiIsPlain: boolean;
}
