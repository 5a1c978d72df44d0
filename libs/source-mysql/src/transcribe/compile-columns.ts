/**
 * From the columns of a table version to their walkers. To add a type is to add a walker and to choose it here; a type without one is
 * read by the reference.
 */
import { ByteWriter, type TablePlan, writeTextHead } from '@mysync/wire';
import { TYPE } from '../binlog/column-types.ts';
import { decimalSize } from '../binlog/decimal.ts';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { ColumnWalk, Walk } from './column-walk.ts';
import { walkJson } from './json.ts';
import {
  walkBit,
  walkDecimal,
  walkDouble,
  walkFloat,
  walkInt8,
  walkInt16,
  walkInt24,
  walkInt32,
  walkInt64,
  walkUint,
  walkUint64,
  walkYear,
} from './numbers.ts';
import { walkRare } from './reference.ts';
import { walkBinary, walkBytes, walkEnum, walkOtherText, walkSet, walkSingleBytes, walkUtf8 } from './strings.ts';
import { walkDate, walkDatetime, walkTime, walkTimestamp } from './temporals.ts';

const NONE = new Uint8Array(0);
const NO_CHARACTERS = new Uint32Array(0);
const ALL_BYTES = Array.from({ length: 256 }, (_, byte) => byte);
const UTF8 = new Set(['utf8', 'utf8mb3', 'utf8mb4']);

type Choice = Partial<Pick<ColumnWalk, 'lengthBytes' | 'size' | 'wholeGroups' | 'fractionGroups' | 'members'>> & {
  readonly walk: Walk;
};

/** Throws a RangeError for a type that cannot be, as only a damaged table map has it. */
export function compileColumns(plan: TablePlan, readers: readonly ColumnReader[]): ColumnWalk[] {
  if (readers.length === 0) throw new RangeError('a table without columns');
  return readers.map((reader, index) => {
    const text = textOf(reader);
    const choice = choose(reader, text);
    return {
      walk: choice.walk,
      reader,
      plan,
      index,
      lengthBytes: choice.lengthBytes ?? 0,
      size: choice.size ?? 0,
      wholeGroups: choice.wholeGroups ?? NONE,
      fractionGroups: choice.fractionGroups ?? NONE,
      members: choice.members ?? [],
      characters: text.characters,
      asciiIsPlain: text.asciiIsPlain,
    };
  });
}

function choose(reader: ColumnReader, text: Text): Choice {
  const { type, size, unsigned } = reader;
  switch (type) {
    case TYPE.TINY:
      return unsigned ? { walk: walkUint, size: 1 } : { walk: walkInt8 };
    case TYPE.SHORT:
      return unsigned ? { walk: walkUint, size: 2 } : { walk: walkInt16 };
    case TYPE.INT24:
      return unsigned ? { walk: walkUint, size: 3 } : { walk: walkInt24 };
    case TYPE.LONG:
      return unsigned ? { walk: walkUint, size: 4 } : { walk: walkInt32 };
    case TYPE.LONGLONG:
      return { walk: unsigned ? walkUint64 : walkInt64 };
    case TYPE.FLOAT:
      return { walk: walkFloat };
    case TYPE.DOUBLE:
      return { walk: walkDouble };
    case TYPE.NEWDECIMAL:
      return decimal(reader);
    case TYPE.YEAR:
      return { walk: walkYear };
    case TYPE.DATE:
    case TYPE.NEWDATE:
      return { walk: walkDate };
    case TYPE.TIME2:
      return temporal(walkTime, size);
    case TYPE.DATETIME2:
      return temporal(walkDatetime, size);
    case TYPE.TIMESTAMP2:
      return temporal(walkTimestamp, size);
    case TYPE.BIT:
      return size >= 1 && size <= 64 ? { walk: walkBit, size: (size + 7) >> 3 } : { walk: walkRare };
    case TYPE.VARCHAR:
      return { walk: text.walk, lengthBytes: size > 255 ? 2 : 1 };
    case TYPE.STRING:
    case TYPE.VAR_STRING:
      return string(reader, text);
    case TYPE.BLOB:
    case TYPE.TINY_BLOB:
    case TYPE.MEDIUM_BLOB:
    case TYPE.LONG_BLOB:
    case TYPE.GEOMETRY:
    case TYPE.VECTOR:
      return { walk: text.walk, lengthBytes: lengthBytes(size) };
    case TYPE.JSON:
      return { walk: walkJson, lengthBytes: lengthBytes(size) };
    case TYPE.ENUM:
      return members(walkEnum, reader, 2);
    case TYPE.SET:
      return members(walkSet, reader, 8);
    default: // MariaDB's compressed columns
      return { walk: walkRare };
  }
}

function lengthBytes(size: number): number {
  if (size < 1 || size > 4) throw new RangeError(`a length of ${size} bytes`);
  return size;
}

function temporal(walk: Walk, digits: number): Choice {
  if (digits > 6) throw new RangeError(`a time with ${digits} fractional digits`);
  return { walk, size: digits };
}

function decimal(reader: ColumnReader): Choice {
  const { precision, scale } = reader;
  const size = decimalSize(precision, scale);
  if (precision < 1 || precision > 65) throw new RangeError(`DECIMAL(${precision},${scale})`);
  const whole = precision - scale;
  const nines = (count: number): number[] => new Array(Math.floor(count / 9)).fill(9);
  return {
    walk: walkDecimal,
    size,
    wholeGroups: Uint8Array.from([...(whole % 9 > 0 ? [whole % 9] : []), ...nines(whole)]),
    fractionGroups: Uint8Array.from([...nines(scale), ...(scale % 9 > 0 ? [scale % 9] : [])]),
  };
}

function string(reader: ColumnReader, text: Text): Choice {
  const prefix = reader.size > 255 ? 2 : 1;
  switch (reader.shape.base) {
    case 'char':
      return { walk: text.walk, lengthBytes: prefix };
    case 'binary':
      return { walk: walkBinary, lengthBytes: prefix, size: reader.size };
    default: // UUID, INET4, INET6
      return { walk: walkRare };
  }
}

function members(walk: Walk, reader: ColumnReader, mostBytes: number): Choice {
  const texts = reader.shape.members.map((member) => Buffer.from(member, 'utf8'));
  const isWellFormed = texts.every((bytes, i) => bytes.toString('utf8') === reader.shape.members[i]);
  if (reader.size < 1 || reader.size > mostBytes || !isWellFormed) return { walk: walkRare };
  return {
    walk,
    lengthBytes: reader.size,
    members: walk === walkEnum ? framed([NONE, ...texts]) : texts,
  };
}

/** As values of a message. */
function framed(texts: readonly Uint8Array[]): Uint8Array[] {
  const writer = new ByteWriter(1024);
  return texts.map((bytes) => {
    writeTextHead(writer, bytes.length);
    writer.raw(bytes);
    return writer.take();
  });
}

interface Text {
  readonly walk: Walk;
  readonly characters: Uint32Array;
  readonly asciiIsPlain: boolean;
}

/** How values that have a charset are read: asked from the charset's decoder, byte by byte. */
function textOf(reader: ColumnReader): Text {
  const { decode, shape } = reader;
  if (decode === undefined) return { walk: walkBytes, characters: NO_CHARACTERS, asciiIsPlain: false };
  if (UTF8.has(shape.charset)) return { walk: walkUtf8, characters: NO_CHARACTERS, asciiIsPlain: true };
  const single = ALL_BYTES.map((byte) => decode(Buffer.of(byte), 0, 1));
  const asciiIsPlain = single.every((text, byte) => byte > 0x7f || text === String.fromCharCode(byte));
  if (!reader.isSingleByte) return { walk: walkOtherText, characters: NO_CHARACTERS, asciiIsPlain };
  const characters = Uint32Array.from(single, (text) => packed(Buffer.from(text, 'utf8')));
  return { walk: walkSingleBytes, characters, asciiIsPlain };
}

function packed(utf8: Buffer): number {
  return utf8.reduce((bits, byte, i) => bits | (byte << (8 * i)), utf8.length << 24) >>> 0;
}
