/** Which walker reads a column. Each reads one value that is not NULL and writes it as the value of a row; it returns where that ends. */
import {
  COLUMN_WALK,
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
} from '../src/transcribe/layout';
import { walkJson } from './json';
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
  walkUint8,
  walkUint16,
  walkUint24,
  walkUint32,
  walkUint64,
  walkYear,
} from './numbers';
import { walkReference } from './reference';
import { walkAsciiOrReference, walkBinary, walkBytes, walkEnum, walkSet, walkSingleBytes, walkUtf8 } from './strings';
import { walkDate, walkDatetime, walkTime, walkTimestamp } from './temporals';

export function walk(column: usize, out: usize): usize {
  switch (<i32>load<u8>(column, COLUMN_WALK)) {
    case WALK_INT8:
      return walkInt8(out);
    case WALK_INT16:
      return walkInt16(out);
    case WALK_INT24:
      return walkInt24(out);
    case WALK_INT32:
      return walkInt32(out);
    case WALK_INT64:
      return walkInt64(out);
    case WALK_UINT8:
      return walkUint8(out);
    case WALK_UINT16:
      return walkUint16(out);
    case WALK_UINT24:
      return walkUint24(out);
    case WALK_UINT32:
      return walkUint32(out);
    case WALK_UINT64:
      return walkUint64(out);
    case WALK_FLOAT:
      return walkFloat(column, out);
    case WALK_DOUBLE:
      return walkDouble(column, out);
    case WALK_DECIMAL:
      return walkDecimal(column, out);
    case WALK_YEAR:
      return walkYear(out);
    case WALK_BIT:
      return walkBit(column, out);
    case WALK_DATE:
      return walkDate(out);
    case WALK_TIME:
      return walkTime(column, out);
    case WALK_DATETIME:
      return walkDatetime(column, out);
    case WALK_TIMESTAMP:
      return walkTimestamp(column, out);
    case WALK_BYTES:
      return walkBytes(column, out);
    case WALK_BINARY:
      return walkBinary(column, out);
    case WALK_UTF8:
      return walkUtf8(column, out);
    case WALK_SINGLE_BYTES:
      return walkSingleBytes(column, out);
    case WALK_ASCII_OR_REFERENCE:
      return walkAsciiOrReference(column, out);
    case WALK_ENUM:
      return walkEnum(column, out);
    case WALK_SET:
      return walkSet(column, out);
    case WALK_JSON:
      return walkJson(column, out);
    default:
      return walkReference(column, out);
  }
}
