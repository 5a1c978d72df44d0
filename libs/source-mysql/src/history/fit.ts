/**
 * A definition held against a table map that says less: count, types, sizes, nullability, and signedness and charsets where it has them. What
 * comes out is what a map with full metadata would have said.
 */
import { formatTableRef, type TableRef } from '@mysync/core';
import type { BareColumn, TableMapColumn } from '../binlog/table-map.ts';
import type { Charsets } from '../schema/charsets.ts';
import { type ColumnShape, GEOMETRY_TYPES, type GeometryType } from '../schema/column-shape.ts';
import { shapeOf } from '../schema/from-table-map.ts';
import { HIDDEN_PERIOD } from '../schema/period.ts';
import { type DefinedColumn, periodOf, type TableDefinition } from './definition.ts';
import { isLogical, LOGICAL_BYTES } from './doubtful-types.ts';

export interface FittedTable {
  readonly columns: readonly TableMapColumn[];
  readonly shapes: readonly ColumnShape[];
}

/** Why a definition does not fit. Caught by whoever asked. */
export class Misfit extends Error {}

export function fit(
  definition: TableDefinition,
  map: readonly BareColumn[],
  ref: TableRef,
  charsets: Charsets,
): FittedTable {
  const defs = periodOf(definition)?.isHidden === true ? [...definition.columns, ...HIDDEN_BOUNDS] : definition.columns;
  if (defs.length !== map.length) {
    throw new Misfit(`the table map has ${map.length} columns, the definition ${defs.length}`);
  }
  const columns: TableMapColumn[] = [];
  const shapes: ColumnShape[] = [];
  for (const [i, bare] of map.entries()) {
    const defined = defs[i] as DefinedColumn;
    const column = completed(bare, defined, charsets);
    columns.push(column);
    shapes.push(fitted(column, bare, defined, ref, charsets));
  }
  return { columns, shapes };
}

/** Columns of a versioned table that no definition names. */
const HIDDEN_BOUNDS: readonly DefinedColumn[] = [HIDDEN_PERIOD.start, HIDDEN_PERIOD.end].map((name) => ({
  name,
  base: 'timestamp',
  unsigned: false,
  length: 6,
  precision: 0,
  scale: 0,
  nullable: false,
  charset: '',
  members: [],
}));

const TEXT_KINDS = new Set(['char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext', 'enum', 'set']);

function completed(bare: BareColumn, defined: DefinedColumn, charsets: Charsets): TableMapColumn {
  let collationId = bare.collationId ?? 0;
  if (bare.collationId === undefined && TEXT_KINDS.has(defined.base)) {
    if (defined.charset === null) throw new Misfit(`the charset of column ${defined.name} is not known`);
    collationId = charsets.collationOf(defined.charset);
  }
  return {
    ...bare,
    name: defined.name,
    unsigned: bare.unsigned ?? defined.unsigned,
    collationId,
    members: [],
    geometryType: bare.geometryType ?? Math.max(0, GEOMETRY_TYPES.indexOf(defined.base as GeometryType)),
    dimensions: defined.base === 'vector' ? defined.length : 0,
  };
}

function fitted(
  column: TableMapColumn,
  bare: BareColumn,
  defined: DefinedColumn,
  ref: TableRef,
  charsets: Charsets,
): ColumnShape {
  const logical = new Map(isLogical(defined.base) ? [[defined.name, defined.base]] : []);
  const shape = { ...shapeOf(column, ref, charsets, logical), members: defined.members };
  const wrong = (what: string, is: unknown, wanted: unknown): Misfit =>
    new Misfit(
      `column ${defined.name} of ${formatTableRef(ref)} has ${what} ${is} in the table map, ${wanted} in the definition`,
    );
  if (shape.base !== defined.base) throw wrong('type', shape.base, defined.base);
  if (shape.unsigned !== defined.unsigned) throw wrong('unsigned', shape.unsigned, defined.unsigned);
  if (shape.length !== defined.length) throw wrong('length', shape.length, defined.length);
  if (shape.precision !== defined.precision) throw wrong('precision', shape.precision, defined.precision);
  if (shape.scale !== defined.scale) throw wrong('scale', shape.scale, defined.scale);
  if (defined.charset !== null && shape.charset !== defined.charset)
    throw wrong('charset', shape.charset, defined.charset);
  if (defined.nullable !== null && bare.nullable !== defined.nullable) {
    throw wrong('nullable', bare.nullable, defined.nullable);
  }
  if (isLogical(defined.base) && bare.size !== LOGICAL_BYTES[defined.base]) {
    throw wrong('size', bare.size, LOGICAL_BYTES[defined.base]);
  }
  const size = membersSize(defined);
  if (size !== 0 && bare.size !== size) throw wrong('size', bare.size, size);
  return shape;
}

/** Bytes of the number that stands for the members; 0 for other types. */
function membersSize({ base, members }: DefinedColumn): number {
  if (base === 'enum') return members.length < 256 ? 1 : 2;
  if (base !== 'set') return 0;
  const bytes = Math.ceil(members.length / 8);
  return bytes > 4 ? 8 : bytes;
}
