/**
 * From a table version to the plan that the module follows (`layout.ts`): a walker for each column with what it needs, key, partition and the
 * schema block, in one piece that can be put anywhere in the module's memory. A type without a walker is read by the reference.
 */
import type { TablePlan } from '@mysync/wire';
import { TYPE } from '../binlog/column-types.ts';
import { decimalSize } from '../binlog/decimal.ts';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { RowPeriod } from './current-rows.ts';
import {
  BLOCK_BYTES,
  COLUMN_BYTES,
  COLUMN_DATA,
  COLUMN_FRACTION_GROUPS,
  COLUMN_INDEX,
  COLUMN_LENGTH_BYTES,
  COLUMN_SIZE,
  COLUMN_WALK,
  COLUMN_WHOLE_GROUPS,
  HEAD_BYTES,
  KEY_PART_BYTES,
  KEY_PART_COLUMN,
  KEY_PART_NAME,
  KEY_PART_NAME_LENGTH,
  MEMBER_BYTES,
  MEMBER_LENGTH,
  MEMBER_TEXT,
  MOST_COLUMNS,
  PLAN_COLUMN_COUNT,
  PLAN_COLUMNS,
  PLAN_HASH_SEED,
  PLAN_HEAD_BYTES,
  PLAN_KEY,
  PLAN_KEY_COUNT,
  PLAN_KEY_PREFIX,
  PLAN_KEY_PREFIX_LENGTH,
  PLAN_PARTITION,
  PLAN_PARTITION_COUNT,
  PLAN_SCHEMA,
  PLAN_SCHEMA_LENGTH,
  PLANS_BYTES,
  WALK_ASCII_OR_REFERENCE,
  WALK_BINARY,
  WALK_BIT,
  WALK_BYTES,
  WALK_DATE,
  WALK_DATETIME,
  WALK_DECIMAL,
  WALK_DOUBLE,
  WALK_ENUM,
  WALK_FLOAT,
  WALK_INT8,
  WALK_INT16,
  WALK_INT24,
  WALK_INT32,
  WALK_INT64,
  WALK_JSON,
  WALK_REFERENCE,
  WALK_SET,
  WALK_SINGLE_BYTES,
  WALK_TIME,
  WALK_TIMESTAMP,
  WALK_UINT8,
  WALK_UINT16,
  WALK_UINT24,
  WALK_UINT32,
  WALK_UINT64,
  WALK_UTF8,
  WALK_YEAR,
} from './layout.ts';
import { PlanBytes } from './plan-bytes.ts';

export interface TranscribedTable {
  readonly plan: TablePlan;
  readonly readers: readonly ColumnReader[];
  /** What the module follows; null: the table is left to the reference. */
  readonly image: Uint8Array | null;
  /** Its rows are logged with their history, and hidden columns; null: they are as they are logged. */
  readonly period: RowPeriod | null;
}

const ALL_BYTES = Array.from({ length: 256 }, (_, byte) => byte);
const UTF8 = new Set(['utf8', 'utf8mb3', 'utf8mb4']);

interface Choice {
  readonly walk: number;
  readonly lengthBytes?: number;
  readonly size?: number;
  readonly wholeGroups?: number;
  readonly fractionGroups?: number;
  /** What COLUMN_DATA points at. */
  readonly data?: Uint8Array | readonly Uint8Array[];
}

/** Throws a RangeError for a type that cannot be, as only a damaged table map has it. */
export function compileTranscription(
  plan: TablePlan,
  readers: readonly ColumnReader[],
  period: RowPeriod | null = null,
): TranscribedTable {
  if (readers.length === 0) throw new RangeError('a table without columns');
  if (period !== null) return { plan, readers, image: null, period };
  const choices = readers.map((reader) => choose(reader));
  return { plan, readers, image: planImage(plan, choices), period };
}

function planImage(plan: TablePlan, choices: readonly Choice[]): Uint8Array | null {
  if (choices.length > MOST_COLUMNS || plan.block.length > HEAD_BYTES - 2 * BLOCK_BYTES) return null;
  const bytes = new PlanBytes(PLAN_HEAD_BYTES);
  const columns = bytes.reserve(choices.length * COLUMN_BYTES);
  for (const [index, choice] of choices.entries()) {
    const at = columns + index * COLUMN_BYTES;
    bytes.setByte(at + COLUMN_WALK, choice.walk);
    bytes.setByte(at + COLUMN_LENGTH_BYTES, choice.lengthBytes ?? 0);
    bytes.setByte(at + COLUMN_WHOLE_GROUPS, choice.wholeGroups ?? 0);
    bytes.setByte(at + COLUMN_FRACTION_GROUPS, choice.fractionGroups ?? 0);
    bytes.setNumber(at + COLUMN_INDEX, index);
    bytes.setNumber(at + COLUMN_SIZE, choice.size ?? 0);
    bytes.setNumber(at + COLUMN_DATA, dataOf(bytes, choice.data));
  }
  const keyParts = bytes.reserve(plan.keyColumns.length * KEY_PART_BYTES);
  for (const [i, column] of plan.keyColumns.entries()) {
    const name = plan.keyNames[i] as Uint8Array;
    const at = keyParts + i * KEY_PART_BYTES;
    bytes.setNumber(at + KEY_PART_COLUMN, column);
    bytes.setNumber(at + KEY_PART_NAME, bytes.append(name));
    bytes.setNumber(at + KEY_PART_NAME_LENGTH, name.length);
  }
  const partition = plan.partitionColumns ?? [];
  const partitionAt = bytes.reserve(partition.length * 4);
  for (const [i, column] of partition.entries()) bytes.setNumber(partitionAt + i * 4, column);
  bytes.setNumber(PLAN_COLUMNS, columns);
  bytes.setNumber(PLAN_COLUMN_COUNT, choices.length);
  bytes.setNumber(PLAN_SCHEMA, bytes.append(plan.block));
  bytes.setNumber(PLAN_SCHEMA_LENGTH, plan.block.length);
  bytes.setNumber(PLAN_KEY_PREFIX, bytes.append(plan.keyPrefix));
  bytes.setNumber(PLAN_KEY_PREFIX_LENGTH, plan.keyPrefix.length);
  bytes.setNumber(PLAN_KEY, keyParts);
  bytes.setNumber(PLAN_KEY_COUNT, plan.keyColumns.length);
  bytes.setNumber(PLAN_PARTITION, partitionAt);
  bytes.setNumber(PLAN_PARTITION_COUNT, partition.length);
  bytes.setNumber(PLAN_HASH_SEED, plan.hashSeed);
  return bytes.length > PLANS_BYTES ? null : bytes.whole();
}

/** Appends what a walker needs and returns where it is: members with their places in front, else the bytes. */
function dataOf(bytes: PlanBytes, data: Choice['data']): number {
  if (data === undefined) return 0;
  if (data instanceof Uint8Array) return bytes.append(data);
  const members = bytes.reserve(data.length * MEMBER_BYTES);
  for (const [i, member] of data.entries()) {
    bytes.setNumber(members + i * MEMBER_BYTES + MEMBER_TEXT, bytes.append(member));
    bytes.setNumber(members + i * MEMBER_BYTES + MEMBER_LENGTH, member.length);
  }
  return members;
}

function choose(reader: ColumnReader): Choice {
  const { type, size, unsigned } = reader;
  switch (type) {
    case TYPE.TINY:
      return { walk: unsigned ? WALK_UINT8 : WALK_INT8 };
    case TYPE.SHORT:
      return { walk: unsigned ? WALK_UINT16 : WALK_INT16 };
    case TYPE.INT24:
      return { walk: unsigned ? WALK_UINT24 : WALK_INT24 };
    case TYPE.LONG:
      return { walk: unsigned ? WALK_UINT32 : WALK_INT32 };
    case TYPE.LONGLONG:
      return { walk: unsigned ? WALK_UINT64 : WALK_INT64 };
    case TYPE.FLOAT:
      return { walk: WALK_FLOAT };
    case TYPE.DOUBLE:
      return { walk: WALK_DOUBLE };
    case TYPE.NEWDECIMAL:
      return decimal(reader);
    case TYPE.YEAR:
      return { walk: WALK_YEAR };
    case TYPE.DATE:
    case TYPE.NEWDATE:
      return { walk: WALK_DATE };
    case TYPE.TIME2:
      return temporal(WALK_TIME, size);
    case TYPE.DATETIME2:
      return temporal(WALK_DATETIME, size);
    case TYPE.TIMESTAMP2:
      return temporal(WALK_TIMESTAMP, size);
    case TYPE.BIT:
      return size >= 1 && size <= 64 ? { walk: WALK_BIT, size: (size + 7) >> 3 } : { walk: WALK_REFERENCE };
    case TYPE.VARCHAR:
      return { ...text(reader), lengthBytes: size > 255 ? 2 : 1 };
    case TYPE.STRING:
    case TYPE.VAR_STRING:
      return string(reader);
    case TYPE.BLOB:
    case TYPE.TINY_BLOB:
    case TYPE.MEDIUM_BLOB:
    case TYPE.LONG_BLOB:
    case TYPE.GEOMETRY:
    case TYPE.VECTOR:
      return { ...text(reader), lengthBytes: lengthBytes(size) };
    case TYPE.JSON:
      return { walk: WALK_JSON, lengthBytes: lengthBytes(size) };
    case TYPE.ENUM:
      return members(WALK_ENUM, reader, 2);
    case TYPE.SET:
      return members(WALK_SET, reader, 8);
    default: // MariaDB's compressed columns
      return { walk: WALK_REFERENCE };
  }
}

function lengthBytes(size: number): number {
  if (size < 1 || size > 4) throw new RangeError(`a length of ${size} bytes`);
  return size;
}

function temporal(walk: number, digits: number): Choice {
  if (digits > 6) throw new RangeError(`a time with ${digits} fractional digits`);
  return { walk, size: digits };
}

function decimal(reader: ColumnReader): Choice {
  const { precision, scale } = reader;
  const size = decimalSize(precision, scale);
  if (precision < 1 || precision > 65) throw new RangeError(`DECIMAL(${precision},${scale})`);
  const whole = precision - scale;
  const nines = (count: number): number[] => new Array(Math.floor(count / 9)).fill(9);
  const wholeGroups = [...(whole % 9 > 0 ? [whole % 9] : []), ...nines(whole)];
  const fractionGroups = [...nines(scale), ...(scale % 9 > 0 ? [scale % 9] : [])];
  return {
    walk: WALK_DECIMAL,
    size,
    wholeGroups: wholeGroups.length,
    fractionGroups: fractionGroups.length,
    data: Uint8Array.from([...wholeGroups, ...fractionGroups]),
  };
}

function string(reader: ColumnReader): Choice {
  const prefix = reader.size > 255 ? 2 : 1;
  switch (reader.shape.base) {
    case 'char':
      return { ...text(reader), lengthBytes: prefix };
    case 'binary':
      return { walk: WALK_BINARY, lengthBytes: prefix, size: reader.size };
    default: // UUID, INET4, INET6
      return { walk: WALK_REFERENCE };
  }
}

function members(walk: number, reader: ColumnReader, mostBytes: number): Choice {
  const texts = reader.shape.members.map((member) => Buffer.from(member, 'utf8'));
  const isWellFormed = texts.every((bytes, i) => bytes.toString('utf8') === reader.shape.members[i]);
  if (reader.size < 1 || reader.size > mostBytes || !isWellFormed) return { walk: WALK_REFERENCE };
  // of an ENUM 0 is the empty text of an invalid value
  const data = walk === WALK_ENUM ? [Buffer.alloc(0), ...texts] : texts;
  return { walk, lengthBytes: reader.size, size: data.length, data };
}

/** How values that may have a charset are read: asked from the charset's decoder, byte by byte. */
function text(reader: ColumnReader): Choice {
  const { decode, shape } = reader;
  if (decode === undefined) return { walk: WALK_BYTES };
  if (UTF8.has(shape.charset)) return { walk: WALK_UTF8 };
  const single = ALL_BYTES.map((byte) => decode(Buffer.of(byte), 0, 1));
  if (!reader.isSingleByte) {
    const asciiIsPlain = single.every((character, byte) => byte > 0x7f || character === String.fromCharCode(byte));
    return { walk: asciiIsPlain ? WALK_ASCII_OR_REFERENCE : WALK_REFERENCE };
  }
  const characters = Uint32Array.from(single, (character) => packed(Buffer.from(character, 'utf8')));
  return { walk: WALK_SINGLE_BYTES, data: new Uint8Array(characters.buffer) };
}

/** Lowest byte first, the count in the highest byte. */
function packed(utf8: Buffer): number {
  return utf8.reduce((bits, byte, i) => bits | (byte << (8 * i)), utf8.length << 24) >>> 0;
}
