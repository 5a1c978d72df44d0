/**
 * Virtual columns of a system-versioned table (MariaDB), whose values in the log are not always those of the row. What the server logs:
 * docs/spec/source.md, "System-versioned tables".
 *
 * 1. What may be wrong is absent: of an image after, so that the row is read again; of an image before, which nothing completes.
 */
import type { RowValues } from '@mysync/wire';
import type { ColumnShape } from '../schema/column-shape.ts';

export interface DoubtedColumns {
  /** NULL where the image after may stand for a value that the server did not compute: places in the table. */
  readonly nulls: readonly number[];
  /** Values that lie outside of the server's row buffer, where those of another row may have come over them. */
  readonly blobs: readonly number[];
}

/** null: every value is that of its row. `isKeyed`: without a key the server computes all columns of an image. */
export function doubtedColumns(
  shapes: readonly ColumnShape[],
  virtual: ReadonlySet<string>,
  isKeyed: boolean,
): DoubtedColumns | null {
  const places = shapes.flatMap(({ name }, i) => (virtual.has(name) ? [i] : []));
  const blobs = places.filter((i) => isBlob(shapes[i] as ColumnShape));
  const nulls = isKeyed ? places.filter((i) => !blobs.includes(i)) : [];
  return nulls.length === 0 && blobs.length === 0 ? null : { nulls, blobs };
}

export function withoutDoubted<T extends { readonly before: RowValues | null; readonly after: RowValues | null }>(
  change: T,
  { nulls, blobs }: DoubtedColumns,
): T {
  const { before, after } = change;
  if (before !== null && after === null) return { ...change, before: without(before, blobs) };
  if (after === null) return change;
  const uncomputed = nulls.filter((i) => after[i] === null && before?.[i] === undefined);
  if (before === null) return { ...change, after: without(after, [...uncomputed, ...blobs]) };
  return { ...change, before: without(before, blobs), after: without(after, uncomputed) };
}

function without(values: RowValues, places: readonly number[]): RowValues {
  return places.length === 0 ? values : values.map((value, i) => (places.includes(i) ? undefined : value));
}

function isBlob({ base }: ColumnShape): boolean {
  return /(text|blob|json|geometry|point|linestring|polygon|collection)$/.test(base);
}
