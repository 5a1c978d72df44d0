/** Row images that hold some of the columns, as values; what an update leaves out of the image after it is taken from the one before. */
import type { ColumnValue } from '@mysync/core';
import type { RowValues } from '@mysync/wire';
import { RowReader } from '../binlog/row-reader.ts';
import type { HeldColumns, RowsEvent } from '../binlog/rows-event.ts';
import type { KnownTable } from '../schema/table-book.ts';
import { withoutDoubted } from './doubted-columns.ts';
import { keyLiteral, rawReader } from './key-literal.ts';

export interface PartialChange {
  /** As the image holds it; undefined where it does not. Of updates and deletes. */
  readonly before: RowValues | null;
  /** The row after the change as far as the images tell. Of inserts and updates. */
  readonly after: RowValues | null;
  /** The key after the change, in the order of the table's columns: literals. Of inserts and updates; undefined when the images do not hold it. */
  readonly keyLiterals: readonly string[] | undefined;
}

export interface PartialImagesOptions {
  readonly table: KnownTable;
  readonly held: HeldColumns;
  /** Columns whose value after an update is unknown when the image after it lacks them, whatever the one before says. */
  readonly untold: ReadonlySet<string>;
}

/** Throws a RangeError past the event's end. */
export function* readPartialRows(rows: RowsEvent, options: PartialImagesOptions): Generator<PartialChange> {
  const { table, held } = options;
  const { readers } = table;
  const keys = keyColumns(table);
  const reader = new RowReader(readers);
  const raw = new RowReader(readers.map((column, i) => (keys.includes(i) ? rawReader(column) : column)));
  const data = rows.buffer.subarray(rows.start, rows.end);
  let at = 0;
  const image = (columns: readonly boolean[] | null): [RowValues, RowValues] | [null, null] => {
    if (columns === null) return [null, null];
    reader.open(data, at);
    const values = reader.readHeld(columns);
    raw.open(data, at);
    const rawValues = raw.readHeld(columns);
    at = reader.at;
    return [values, rawValues];
  };
  while (at < data.length) {
    const from = at;
    const [before, rawBefore] = image(held.before);
    const [after, rawAfter] = image(held.after);
    if (at === from) throw new RangeError('a row without bytes');
    const change = {
      before,
      after: after === null ? null : merge(after, before, table, options.untold),
      keyLiterals: rawAfter === null ? undefined : literals(table, keys, rawAfter, rawBefore),
    };
    yield table.doubted === null ? change : withoutDoubted(change, table.doubted);
  }
}

/** Their places in the table, in its order; none when rows are named by their hash. */
export function keyColumns(table: KnownTable): readonly number[] {
  return table.plan.schema.columns.flatMap((column, i) => (column.keyPosition > 0 ? [i] : []));
}

function merge(
  after: RowValues,
  before: RowValues | null,
  table: KnownTable,
  untold: ReadonlySet<string>,
): readonly ColumnValue[] {
  if (before === null) return after;
  const { columns } = table.plan.schema;
  return after.map((value, i) => (value === undefined && !untold.has(columns[i]?.name ?? '') ? before[i] : value));
}

function literals(
  table: KnownTable,
  keys: readonly number[],
  after: RowValues,
  before: RowValues | null,
): readonly string[] | undefined {
  const found = keys.map((i) => after[i] ?? before?.[i]);
  if (keys.length === 0 || found.includes(undefined)) return undefined;
  return keys.map((i, n) => keyLiteral((table.readers[i] as KnownTable['readers'][number]).shape, found[n]));
}
