/** The way round over JavaScript values, for what is rare: the reference reads the value, wire's encoder writes it. */
import { type ByteWriter, writeValue } from '@mysync/wire';
import { RowReader } from '../binlog/row-reader.ts';
import type { ColumnWalk, Walk } from './column-walk.ts';
import type { RowBytes } from './row-bytes.ts';

const reader = new RowReader([]);

/** The value that begins at `from`, again. */
export function walkReference(column: ColumnWalk, source: RowBytes, out: ByteWriter, from: number): void {
  reader.open(source.buffer.subarray(0, source.end), from);
  const value = reader.value(column.reader);
  if (reader.at > source.end) throw new RangeError(`a value ends at ${reader.at}, the rows end at ${source.end}`);
  source.at = reader.at;
  writeValue(out, column.plan, column.index, value);
}

export const walkRare: Walk = (column, source, out) => walkReference(column, source, out, source.at);
