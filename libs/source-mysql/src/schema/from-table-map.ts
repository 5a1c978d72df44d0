/** From the columns of a table map to their shapes. */
import type { TableRef } from '@mysync/core';
import { formatTableRef } from '@mysync/core';
import { TYPE } from '../binlog/column-types.ts';
import type { TableMapColumn } from '../binlog/table-map.ts';
import { sourceErrors } from '../errors.ts';
import type { LogicalTypes } from '../history/doubtful-types.ts';
import type { Charsets } from './charsets.ts';
import { type BaseType, type ColumnShape, GEOMETRY_TYPES } from './column-shape.ts';

const INTEGERS: ReadonlyMap<number, BaseType> = new Map([
  [TYPE.TINY, 'tinyint'],
  [TYPE.SHORT, 'smallint'],
  [TYPE.INT24, 'mediumint'],
  [TYPE.LONG, 'int'],
  [TYPE.LONGLONG, 'bigint'],
]);
/** Of bytes. */
export const BINARY_COLLATION = 63;
const BLOBS: readonly BaseType[] = ['blob', 'tinyblob', 'blob', 'mediumblob', 'longblob'];
const TEXTS: readonly BaseType[] = ['text', 'tinytext', 'text', 'mediumtext', 'longtext'];

/**
 * Throws SOURCE_TYPE_UNSUPPORTED for a column whose values cannot be read exactly. `logical` are MariaDB's types that
 * the log shows as BINARY: by column name, 'uuid', 'inet4' or 'inet6'.
 */
export function shapeOf(
  column: TableMapColumn,
  table: TableRef,
  charsets: Charsets,
  logical: LogicalTypes,
): ColumnShape {
  const plain = {
    name: column.name,
    unsigned: false,
    length: 0,
    precision: 0,
    scale: 0,
    nullable: column.nullable,
    charset: '',
    members: [] as readonly string[],
  };
  const unsupported = (what: string): Error =>
    sourceErrors.SOURCE_TYPE_UNSUPPORTED({
      message: `column ${formatTableRef(table)}.${column.name} has ${what}, whose values cannot be read exactly from the log`,
      where: { table: formatTableRef(table), column: column.name, type: column.type },
    });
  const charset = (): string => {
    const name = charsets.charsetOf(column.collationId);
    if (name === undefined) throw unsupported(`the unknown collation ${column.collationId}`);
    return name;
  };
  const binary = column.collationId === BINARY_COLLATION || column.collationId === 0;
  const integer = INTEGERS.get(column.type);
  if (integer !== undefined) return { ...plain, base: integer, unsigned: column.unsigned };
  switch (column.type) {
    case TYPE.FLOAT:
      return { ...plain, base: 'float', unsigned: column.unsigned };
    case TYPE.DOUBLE:
      return { ...plain, base: 'double', unsigned: column.unsigned };
    case TYPE.NEWDECIMAL:
      return { ...plain, base: 'decimal', precision: column.precision, scale: column.scale, unsigned: column.unsigned };
    case TYPE.YEAR:
      return { ...plain, base: 'year' };
    case TYPE.BIT:
      return { ...plain, base: 'bit', length: column.size };
    case TYPE.DATE:
    case TYPE.NEWDATE:
      return { ...plain, base: 'date' };
    case TYPE.TIME2:
      return { ...plain, base: 'time', length: column.size };
    case TYPE.DATETIME2:
      return { ...plain, base: 'datetime', length: column.size };
    case TYPE.TIMESTAMP2:
      return { ...plain, base: 'timestamp', length: column.size };
    case TYPE.TIME:
    case TYPE.DATETIME:
    case TYPE.TIMESTAMP:
      throw unsupported('a temporal type in the format before MySQL 5.6 (ALTER TABLE … FORCE converts it)');
    case TYPE.STRING: {
      const name = logical.get(column.name);
      if (binary && name !== undefined) return { ...plain, base: name, charset: 'ascii' };
      if (binary) return { ...plain, base: 'binary', length: column.size };
      return {
        ...plain,
        base: 'char',
        length: Math.floor(column.size / charsets.maxLength(charset())),
        charset: charset(),
      };
    }
    case TYPE.VARCHAR:
    case TYPE.VARCHAR_COMPRESSED: {
      // one byte of a compressed value's length is its header
      const size = column.type === TYPE.VARCHAR ? column.size : column.size - 1;
      if (binary) return { ...plain, base: 'varbinary', length: size };
      return {
        ...plain,
        base: 'varchar',
        length: Math.floor(size / charsets.maxLength(charset())),
        charset: charset(),
      };
    }
    case TYPE.BLOB:
    case TYPE.TINY_BLOB:
    case TYPE.MEDIUM_BLOB:
    case TYPE.LONG_BLOB:
    case TYPE.BLOB_COMPRESSED: {
      const base = (binary ? BLOBS : TEXTS)[column.size];
      if (base === undefined) throw unsupported(`a BLOB with lengths of ${column.size} bytes`);
      return { ...plain, base, charset: binary ? '' : charset() };
    }
    case TYPE.ENUM:
    case TYPE.SET: {
      const decode = charsets.decoder(charset());
      const members = column.members.map((bytes) => decode(bytes, 0, bytes.length));
      return { ...plain, base: column.type === TYPE.ENUM ? 'enum' : 'set', charset: charset(), members };
    }
    case TYPE.JSON:
      return { ...plain, base: 'json', charset: 'utf8mb4' };
    case TYPE.VECTOR:
      return { ...plain, base: 'vector', length: column.dimensions };
    case TYPE.GEOMETRY:
      return { ...plain, base: GEOMETRY_TYPES[column.geometryType] ?? 'geometry' };
    default:
      throw unsupported(`the type code ${column.type}`);
  }
}
