/**
 * Table map events: what a table id means until the end of the statement.
 * Layout: MySQL, libs/mysql/binlog/event/rows_event.h, class Table_map_event, with its optional metadata fields.
 */
import { ByteReader } from './byte-reader.ts';
import { TYPE } from './column-types.ts';

export interface TableMapColumn {
  /** The real type: ENUM and SET are told from STRING. */
  readonly type: number;
  /** Byte length of VARCHAR and STRING, length bytes of BLOBs, fractional digits of times, bits of BIT, size of ENUM, SET and floats. */
  readonly size: number;
  readonly precision: number;
  readonly scale: number;
  readonly nullable: boolean;
  readonly unsigned: boolean;
  /** 0 when the column has none. */
  readonly collationId: number;
  readonly name: string;
  /** Bytes in the column's own charset. */
  readonly members: readonly Buffer[];
  /** Field::geometry_type; 0 GEOMETRY. */
  readonly geometryType: number;
  /** Of a VECTOR; 0 otherwise. */
  readonly dimensions: number;
}

/** What every table map says of a column; undefined where this one does not tell. */
export interface BareColumn extends Pick<TableMapColumn, 'type' | 'size' | 'precision' | 'scale' | 'nullable'> {
  readonly unsigned: boolean | undefined;
  readonly collationId: number | undefined;
  readonly geometryType: number | undefined;
}

export interface TableMap {
  readonly tableId: number;
  readonly database: string;
  readonly table: string;
  readonly columnCount: number;
  /** undefined unless the event carries full metadata (binlog_row_metadata=FULL). */
  readonly columns: readonly TableMapColumn[] | undefined;
  /** The columns as far as any map tells; made only where `columns` is undefined. */
  readonly bareColumns: readonly BareColumn[];
  /** Indexes of the primary key's columns, in its order. */
  readonly primaryKey: readonly number[];
  /** The event's bytes after the table id: equal for equal maps, so that a table is looked at once only. */
  readonly identity: Buffer;
}

const ID_AND_FLAGS_BYTES = 8;
/** Both servers have a limit of 4096; hidden columns come on top. */
const MOST_COLUMNS = 8192;

const FIELD = {
  SIGNEDNESS: 1,
  DEFAULT_CHARSET: 2,
  COLUMN_CHARSET: 3,
  COLUMN_NAME: 4,
  SET_STR_VALUE: 5,
  ENUM_STR_VALUE: 6,
  GEOMETRY_TYPE: 7,
  SIMPLE_PRIMARY_KEY: 8,
  PRIMARY_KEY_WITH_PREFIX: 9,
  ENUM_AND_SET_DEFAULT_CHARSET: 10,
  ENUM_AND_SET_COLUMN_CHARSET: 11,
  COLUMN_VISIBILITY: 12,
  VECTOR_DIMENSIONALITY: 13,
} as const;

const NUMERIC: ReadonlySet<number> = new Set([
  TYPE.TINY,
  TYPE.SHORT,
  TYPE.INT24,
  TYPE.LONG,
  TYPE.LONGLONG,
  TYPE.NEWDECIMAL,
  TYPE.FLOAT,
  TYPE.DOUBLE,
  TYPE.YEAR,
]);
const CHARACTER: ReadonlySet<number> = new Set([
  TYPE.VARCHAR,
  TYPE.VAR_STRING,
  TYPE.STRING,
  TYPE.BLOB,
  TYPE.TINY_BLOB,
  TYPE.MEDIUM_BLOB,
  TYPE.LONG_BLOB,
  TYPE.BLOB_COMPRESSED,
  TYPE.VARCHAR_COMPRESSED,
]);
/**
 * Types that are kept as BLOBs, and whose collation (binary) stands among those of text: so the place of each text after them
 * depends on the server. Seen on MySQL 9.7 and MariaDB 10.11.
 */
const LISTED_WITH_TEXT: Readonly<Record<'mysql' | 'mariadb', number>> = { mysql: TYPE.VECTOR, mariadb: TYPE.GEOMETRY };

/** The table id alone: enough to look a known table up. That of no table when the event ends before its id and flags. */
export function readTableId(event: { readonly buffer: Buffer; readonly start: number; readonly end: number }): number {
  return event.end - event.start < ID_AND_FLAGS_BYTES ? -1 : event.buffer.readUIntLE(event.start, 6);
}

/** Database and table only: enough to know whether anybody wants the rest. */
export function readTableName(buffer: Buffer, start: number, end: number): { database: string; table: string } {
  const reader = new ByteReader(buffer, start + 8, end);
  const database = reader.text(reader.uint(1));
  reader.skip(1);
  const table = reader.text(reader.uint(1));
  return { database, table };
}

export function readTableMap(buffer: Buffer, start: number, end: number, flavor: 'mysql' | 'mariadb'): TableMap {
  const reader = new ByteReader(buffer, start, end);
  const tableId = reader.uint(6);
  const identity = buffer.subarray(reader.at, end);
  reader.skip(2);
  const database = reader.text(reader.uint(1));
  reader.skip(1);
  const table = reader.text(reader.uint(1));
  reader.skip(1);
  const columnCount = reader.packed();
  if (columnCount > MOST_COLUMNS) throw new RangeError(`a table of ${columnCount} columns`);
  const codes = reader.bytes(columnCount);
  const metadata = readColumnMetadata(codes, new ByteReader(buffer, ...piece(reader)));
  const nullBits = reader.bytes((columnCount + 7) >> 3);
  const optional = readOptional(reader, metadata, flavor);
  const names = optional.names;
  const columns =
    names?.length !== columnCount
      ? undefined
      : metadata.map(
          (column, i): TableMapColumn => ({
            ...column,
            nullable: (((nullBits[i >> 3] ?? 0) >> (i & 7)) & 1) === 1,
            unsigned: optional.unsigned.has(i),
            collationId: optional.collations.get(i) ?? 0,
            name: names[i] ?? '',
            members: optional.members.get(i) ?? [],
            geometryType: optional.geometryTypes.get(i) ?? 0,
            dimensions: optional.dimensions.get(i) ?? 0,
          }),
        );
  const bareColumns =
    columns !== undefined
      ? []
      : metadata.map(
          (column, i): BareColumn => ({
            ...column,
            nullable: (((nullBits[i >> 3] ?? 0) >> (i & 7)) & 1) === 1,
            unsigned: optional.signedness && NUMERIC.has(column.type) ? optional.unsigned.has(i) : undefined,
            collationId: optional.collations.get(i),
            geometryType: optional.geometryTypes.get(i),
          }),
        );
  return { tableId, database, table, columnCount, columns, bareColumns, primaryKey: optional.primaryKey, identity };
}

/** A length and that many bytes: their borders, the reader moved behind them. */
function piece(reader: ByteReader): [number, number] {
  const length = reader.packed();
  const start = reader.at;
  reader.skip(length);
  return [start, start + length];
}

type Metadata = Pick<TableMapColumn, 'type' | 'size' | 'precision' | 'scale'>;

function readColumnMetadata(codes: Buffer, reader: ByteReader): Metadata[] {
  return Array.from(codes, (type): Metadata => {
    switch (type) {
      case TYPE.FLOAT:
      case TYPE.DOUBLE:
      case TYPE.BLOB:
      case TYPE.TINY_BLOB:
      case TYPE.MEDIUM_BLOB:
      case TYPE.LONG_BLOB:
      case TYPE.BLOB_COMPRESSED:
      case TYPE.GEOMETRY:
      case TYPE.JSON:
      case TYPE.VECTOR:
      case TYPE.TIMESTAMP2:
      case TYPE.DATETIME2:
      case TYPE.TIME2:
        return { type, size: reader.uint(1), precision: 0, scale: 0 };
      case TYPE.VARCHAR:
      case TYPE.VARCHAR_COMPRESSED:
        return { type, size: reader.uint(2), precision: 0, scale: 0 };
      case TYPE.BIT: {
        const bits = reader.uint(1);
        return { type, size: reader.uint(1) * 8 + bits, precision: 0, scale: 0 };
      }
      case TYPE.NEWDECIMAL:
        return { type, size: 0, precision: reader.uint(1), scale: reader.uint(1) };
      case TYPE.STRING:
      case TYPE.VAR_STRING: {
        const high = reader.uint(1);
        const low = reader.uint(1);
        if (high === TYPE.ENUM || high === TYPE.SET) return { type: high, size: low, precision: 0, scale: 0 };
        // bits 8 and 9 of the byte length are folded, inverted, into the type byte
        return { type, size: (((high << 4) & 0x300) ^ 0x300) + low, precision: 0, scale: 0 };
      }
      default:
        return { type, size: 0, precision: 0, scale: 0 };
    }
  });
}

interface Optional {
  names: string[] | undefined;
  /** Whether there was a word on it. */
  signedness: boolean;
  readonly unsigned: Set<number>;
  readonly collations: Map<number, number>;
  readonly members: Map<number, Buffer[]>;
  readonly geometryTypes: Map<number, number>;
  readonly dimensions: Map<number, number>;
  primaryKey: number[];
}

function readOptional(reader: ByteReader, columns: readonly Metadata[], flavor: 'mysql' | 'mariadb'): Optional {
  const found: Optional = {
    names: undefined,
    signedness: false,
    unsigned: new Set(),
    collations: new Map(),
    members: new Map(),
    geometryTypes: new Map(),
    dimensions: new Map(),
    primaryKey: [],
  };
  /** The columns that a field speaks of, in order. */
  const of = (wanted: (type: number) => boolean): number[] =>
    columns.flatMap((column, i) => (wanted(column.type) ? [i] : []));
  const character = of((type) => CHARACTER.has(type) || type === LISTED_WITH_TEXT[flavor]);
  const enumSet = of((type) => type === TYPE.ENUM || type === TYPE.SET);
  const seen = new Set<number>();
  while (reader.left > 0) {
    const kind = reader.uint(1);
    // one of each; more would cost as often a walk over all columns
    if (seen.has(kind)) throw new RangeError(`field ${kind} comes twice`);
    seen.add(kind);
    const [start, end] = piece(reader);
    const field = new ByteReader(reader.buffer, start, end);
    switch (kind) {
      case FIELD.SIGNEDNESS: {
        found.signedness = true;
        const bits = field.bytes(end - start);
        for (const [i, column] of of((type) => NUMERIC.has(type)).entries()) {
          if (((bits[i >> 3] ?? 0) & (0x80 >> (i & 7))) !== 0) found.unsigned.add(column);
        }
        break;
      }
      case FIELD.DEFAULT_CHARSET:
        readDefaultCharset(field, character, found.collations);
        break;
      case FIELD.COLUMN_CHARSET:
        for (const column of character) if (field.left > 0) found.collations.set(column, field.packed());
        break;
      case FIELD.ENUM_AND_SET_DEFAULT_CHARSET:
        readDefaultCharset(field, enumSet, found.collations);
        break;
      case FIELD.ENUM_AND_SET_COLUMN_CHARSET:
        for (const column of enumSet) if (field.left > 0) found.collations.set(column, field.packed());
        break;
      case FIELD.COLUMN_NAME: {
        const names: string[] = [];
        while (field.left > 0) names.push(field.text(field.packed()));
        found.names = names;
        break;
      }
      case FIELD.SET_STR_VALUE:
        readMembers(
          field,
          of((type) => type === TYPE.SET),
          found.members,
        );
        break;
      case FIELD.ENUM_STR_VALUE:
        readMembers(
          field,
          of((type) => type === TYPE.ENUM),
          found.members,
        );
        break;
      case FIELD.GEOMETRY_TYPE:
        for (const column of of((type) => type === TYPE.GEOMETRY)) {
          if (field.left > 0) found.geometryTypes.set(column, field.packed());
        }
        break;
      case FIELD.SIMPLE_PRIMARY_KEY:
        while (field.left > 0) found.primaryKey.push(field.packed());
        break;
      case FIELD.PRIMARY_KEY_WITH_PREFIX:
        while (field.left > 0) {
          found.primaryKey.push(field.packed());
          field.packed(); // characters of the prefix; the whole value names the row as well
        }
        break;
      case FIELD.VECTOR_DIMENSIONALITY:
        for (const column of of((type) => type === TYPE.VECTOR)) {
          if (field.left > 0) found.dimensions.set(column, field.packed());
        }
        break;
      default: // visibility, and fields of later versions: each is skipped whole
    }
  }
  return found;
}

/** The collation of most columns, then (place among them, collation) of the others. */
function readDefaultCharset(field: ByteReader, columns: readonly number[], into: Map<number, number>): void {
  const usual = field.packed();
  for (const column of columns) into.set(column, usual);
  while (field.left > 0) {
    const column = columns[field.packed()];
    const collation = field.packed();
    if (column !== undefined) into.set(column, collation);
  }
}

function readMembers(field: ByteReader, columns: readonly number[], into: Map<number, Buffer[]>): void {
  for (const column of columns) {
    if (field.left === 0) return;
    const count = field.packed();
    if (count > field.left) throw new RangeError(`${count} members are not in the event`);
    into.set(
      column,
      Array.from({ length: count }, () => field.bytes(field.packed())),
    );
  }
}
