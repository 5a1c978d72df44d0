/**
 * What a column is, in one form for both places that tell: the table map in the log and information_schema. One function
 * spells the type, so that a row of a snapshot and a row of the stream carry the same schema.
 *
 * Only what the log knows is spelled: display widths, ZEROFILL, the (M,D) of floats and MariaDB's COMPRESSED are not in it.
 */
import type { Column, ColumnKind } from '@mysync/core';

export type BaseType =
  | 'tinyint'
  | 'smallint'
  | 'mediumint'
  | 'int'
  | 'bigint'
  | 'float'
  | 'double'
  | 'decimal'
  | 'bit'
  | 'year'
  | 'date'
  | 'time'
  | 'datetime'
  | 'timestamp'
  | 'char'
  | 'varchar'
  | 'binary'
  | 'varbinary'
  | 'tinytext'
  | 'text'
  | 'mediumtext'
  | 'longtext'
  | 'tinyblob'
  | 'blob'
  | 'mediumblob'
  | 'longblob'
  | 'enum'
  | 'set'
  | 'json'
  | 'uuid'
  | 'inet4'
  | 'inet6'
  | 'vector'
  | GeometryType;

export type GeometryType =
  | 'geometry'
  | 'point'
  | 'linestring'
  | 'polygon'
  | 'multipoint'
  | 'multilinestring'
  | 'multipolygon'
  | 'geometrycollection';

/** By the number that the table map has for them. */
export const GEOMETRY_TYPES: readonly GeometryType[] = [
  'geometry',
  'point',
  'linestring',
  'polygon',
  'multipoint',
  'multilinestring',
  'multipolygon',
  'geometrycollection',
];

export interface ColumnShape {
  readonly name: string;
  readonly base: BaseType;
  readonly unsigned: boolean;
  /** Characters of CHAR and VARCHAR, bytes of BINARY and VARBINARY, bits of BIT, fractional digits of times, dimensions of VECTOR. */
  readonly length: number;
  readonly precision: number;
  readonly scale: number;
  readonly nullable: boolean;
  /** Charset of text, '' otherwise. */
  readonly charset: string;
  readonly members: readonly string[];
}

function spellType(shape: ColumnShape): string {
  const { base, length } = shape;
  switch (base) {
    case 'tinyint':
    case 'smallint':
    case 'mediumint':
    case 'int':
    case 'bigint':
    case 'float':
    case 'double':
      return shape.unsigned ? `${base} unsigned` : base;
    case 'decimal':
      return `decimal(${shape.precision},${shape.scale})${shape.unsigned ? ' unsigned' : ''}`;
    case 'time':
    case 'datetime':
    case 'timestamp':
      return length === 0 ? base : `${base}(${length})`;
    case 'bit':
    case 'char':
    case 'varchar':
    case 'binary':
    case 'varbinary':
    case 'vector':
      return `${base}(${length})`;
    case 'enum':
    case 'set':
      return `${base}(${shape.members.map((member) => `'${member.replaceAll("'", "''")}'`).join(',')})`;
    default:
      return base;
  }
}

export function kindOf(shape: ColumnShape): ColumnKind {
  switch (shape.base) {
    case 'tinyint':
    case 'smallint':
    case 'mediumint':
    case 'int':
    case 'bigint':
      return shape.unsigned ? 'uint' : 'int';
    case 'bit':
    case 'year':
      return 'uint';
    case 'float':
    case 'double':
      return shape.base;
    case 'binary':
    case 'varbinary':
    case 'tinyblob':
    case 'blob':
    case 'mediumblob':
    case 'longblob':
    case 'vector':
    case 'geometry':
    case 'point':
    case 'linestring':
    case 'polygon':
    case 'multipoint':
    case 'multilinestring':
    case 'multipolygon':
    case 'geometrycollection':
      return 'bytes';
    default:
      return 'text';
  }
}

export function toColumn(shape: ColumnShape, keyPosition: number): Column {
  const kind = kindOf(shape);
  return {
    name: shape.name,
    type: spellType(shape),
    kind,
    keyPosition,
    nullable: shape.nullable,
    charset: kind === 'bytes' ? 'binary' : shape.charset,
    members: shape.members,
  };
}
