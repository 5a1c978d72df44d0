/** From information_schema to the shapes of a table's columns: the same shapes that its table map gives. */
import type { TableRef } from '@mysync/core';
import type { ServerSession, TextRow } from '../server/session.ts';
import { type BaseType, type ColumnShape, GEOMETRY_TYPES, type GeometryType } from './column-shape.ts';

export interface ColumnShapes {
  readonly shapes: readonly ColumnShape[];
  /** The first column whose type we do not know, if there is one. */
  readonly unsupported: { readonly column: string; readonly type: string } | undefined;
}

export async function readColumnShapes(session: ServerSession, ref: TableRef): Promise<ColumnShapes> {
  const rows = await session.query(
    `SELECT COLUMN_NAME AS name, DATA_TYPE AS data, COLUMN_TYPE AS type, IS_NULLABLE AS nullable,
            CHARACTER_SET_NAME AS charset, CHARACTER_MAXIMUM_LENGTH AS chars, NUMERIC_PRECISION AS digits,
            NUMERIC_SCALE AS scale, DATETIME_PRECISION AS fraction
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION`,
    [ref.database, ref.table],
  );
  const shapes: ColumnShape[] = [];
  for (const row of rows) {
    const shape = shapeOfRow(row, session.facts.flavor);
    if (shape === undefined) {
      return { shapes, unsupported: { column: row['name'] ?? '', type: row['type'] ?? '' } };
    }
    shapes.push(shape);
  }
  return { shapes, unsupported: undefined };
}

const BASES = new Set<string>([
  'tinyint',
  'smallint',
  'mediumint',
  'int',
  'bigint',
  'float',
  'double',
  'decimal',
  'bit',
  'year',
  'date',
  'time',
  'datetime',
  'timestamp',
  'char',
  'varchar',
  'binary',
  'varbinary',
  'tinytext',
  'text',
  'mediumtext',
  'longtext',
  'tinyblob',
  'blob',
  'mediumblob',
  'longblob',
  'enum',
  'set',
  'json',
  'uuid',
  'inet4',
  'inet6',
  'vector',
] satisfies BaseType[]);

function shapeOfRow(row: TextRow, flavor: 'mysql' | 'mariadb'): ColumnShape | undefined {
  const data = (row['data'] ?? '').toLowerCase();
  const type = row['type'] ?? '';
  const base = baseOf(data);
  if (base === undefined) return undefined;
  const shape: ColumnShape = {
    name: row['name'] ?? '',
    base,
    unsigned: /^[a-z]+(\([\d,]*\))? unsigned/i.test(type),
    length: 0,
    precision: 0,
    scale: 0,
    nullable: row['nullable'] === 'YES',
    charset: '',
    members: [],
  };
  switch (base) {
    case 'decimal':
      return { ...shape, precision: Number(row['digits']), scale: Number(row['scale']) };
    case 'time':
    case 'datetime':
    case 'timestamp':
      return { ...shape, length: Number(row['fraction'] ?? 0) };
    case 'bit':
      return { ...shape, length: Number(row['digits']) };
    case 'binary':
    case 'varbinary':
    case 'char':
    case 'varchar':
      return { ...shape, length: Number(row['chars']), charset: row['charset'] ?? '' };
    case 'vector': {
      const dimensions = Number(/\((\d+)\)/.exec(type)?.[1] ?? 0);
      // MariaDB's is a VARBINARY in the log (seen on 11.8), of four bytes a dimension
      if (flavor === 'mariadb') return { ...shape, base: 'varbinary', length: 4 * dimensions };
      return { ...shape, length: dimensions };
    }
    case 'json':
      return { ...shape, charset: 'utf8mb4' };
    case 'uuid':
    case 'inet4':
    case 'inet6':
      return { ...shape, charset: 'ascii' };
    case 'enum':
    case 'set':
      // the catalogue has no name for the charset of members that are bytes
      return { ...shape, charset: row['charset'] ?? 'binary', members: members(type) };
    default:
      return { ...shape, charset: row['charset'] ?? '' };
  }
}

function baseOf(data: string): BaseType | undefined {
  if (BASES.has(data)) return data as BaseType;
  if (data === 'geomcollection') return 'geometrycollection';
  return GEOMETRY_TYPES.includes(data as GeometryType) ? (data as GeometryType) : undefined;
}

/** `enum('a','b''c')` to its members. */
function members(type: string): string[] {
  const found: string[] = [];
  for (const match of type.matchAll(/'((?:[^']|'')*)'/g)) found.push((match[1] ?? '').replaceAll("''", "'"));
  return found;
}
