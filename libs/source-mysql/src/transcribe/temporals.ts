/** Walkers of dates and times. The formats are told in `binlog/temporal.ts`. */
import { type ByteWriter, beginShortText, digitCount, endShortText, putDigits } from '@mysync/wire';
import { fractionSize, MAX_HOURS, TENS } from '../binlog/temporal.ts';
import type { Walk } from './column-walk.ts';
import type { RowBytes } from './row-bytes.ts';

const MAX_TEXT = 32;
const MINUS = 0x2d;
const COLON = 0x3a;
const POINT = 0x2e;
const SPACE = 0x20;

function two(bytes: Uint8Array, at: number, value: number): void {
  const tens = (value / 10) | 0;
  bytes[at] = 48 + tens;
  bytes[at + 1] = 48 + value - tens * 10;
}

/** YYYY-MM-DD. */
function date(bytes: Uint8Array, at: number, year: number, month: number, day: number): void {
  if (year > 9999) throw new RangeError(`the year ${year}`);
  const century = (year / 100) | 0;
  two(bytes, at, century);
  two(bytes, at + 2, year - century * 100);
  bytes[at + 4] = MINUS;
  two(bytes, at + 5, month);
  bytes[at + 7] = MINUS;
  two(bytes, at + 8, day);
}

/** :MM:SS. */
function minutes(bytes: Uint8Array, at: number, minute: number, second: number): void {
  bytes[at] = COLON;
  two(bytes, at + 1, minute);
  bytes[at + 3] = COLON;
  two(bytes, at + 4, second);
}

/** Appends the point and so many digits. */
function fraction(out: ByteWriter, micros: number, digits: number): void {
  if (digits === 0) return;
  if (micros >= 1_000_000) throw new RangeError(`${micros} microseconds`);
  const at = out.position;
  out.buffer[at] = POINT;
  putDigits(out.buffer, at + 1, (micros / (TENS[digits] as number)) | 0, digits);
  out.position = at + 1 + digits;
}

function readMicros(source: RowBytes, at: number, digits: number): number {
  const { buffer } = source;
  switch ((digits + 1) >> 1) {
    case 0:
      return 0;
    case 1:
      return (buffer[at] as number) * 10_000;
    case 2:
      return (((buffer[at] as number) << 8) | (buffer[at + 1] as number)) * 100;
    default:
      return ((buffer[at] as number) << 16) | ((buffer[at + 1] as number) << 8) | (buffer[at + 2] as number);
  }
}

export const walkDate: Walk = (_column, source, out) => {
  const value = source.length(3);
  const begun = beginShortText(out, MAX_TEXT);
  date(out.buffer, out.position, value >> 9, (value >> 5) & 15, value & 31);
  out.position += 10;
  endShortText(out, begun);
};

export const walkDatetime: Walk = (column, source, out) => {
  const digits = column.size;
  const from = source.take(5 + fractionSize(digits));
  // 23 bits of date and the sign, then 17 bits of time
  const day = (source.view.getUint32(from) >>> 9) - 0x40_0000;
  const time = source.view.getUint32(from + 1) & 0x1_ffff;
  const months = day >> 5;
  const begun = beginShortText(out, MAX_TEXT);
  const { buffer } = out;
  const at = out.position;
  const year = Math.floor(months / 13);
  if (year < 0) throw new RangeError(`the year ${year}`);
  date(buffer, at, year, months - year * 13, day & 31);
  buffer[at + 10] = SPACE;
  two(buffer, at + 11, time >> 12);
  minutes(buffer, at + 13, (time >> 6) & 63, time & 63);
  out.position = at + 19;
  fraction(out, readMicros(source, from + 5, digits), digits);
  endShortText(out, begun);
};

export const walkTime: Walk = (column, source, out) => {
  const digits = column.size;
  const size = fractionSize(digits);
  const from = source.take(3 + size);
  const { buffer } = source;
  const head = ((buffer[from] as number) << 16) | ((buffer[from + 1] as number) << 8) | (buffer[from + 2] as number);
  let whole = head - 0x80_0000;
  let part = size === 0 ? 0 : readRaw(buffer, from + 3, size);
  if (whole < 0 && part > 0) {
    // the fraction is part of one negative number
    whole += 1;
    part -= 2 ** (8 * size);
  }
  const negative = whole < 0 || part < 0;
  const time = Math.abs(whole);
  const micros = Math.abs(part) * (size === 1 ? 10_000 : size === 2 ? 100 : 1);
  const hours = (time >> 12) & 1023;
  if (hours > MAX_HOURS) throw new RangeError(`${hours} hours`);
  const begun = beginShortText(out, MAX_TEXT);
  const target = out.buffer;
  if (negative) target[out.position++] = MINUS;
  const shown = hours < 100 ? 2 : digitCount(hours);
  putDigits(target, out.position, hours, shown);
  minutes(target, out.position + shown, (time >> 6) & 63, time & 63);
  out.position += shown + 6;
  fraction(out, micros, digits);
  endShortText(out, begun);
};

function readRaw(buffer: Uint8Array, at: number, size: number): number {
  let value = 0;
  for (let i = 0; i < size; i += 1) value = (value << 8) | (buffer[at + i] as number);
  return value;
}

export const walkTimestamp: Walk = (column, source, out) => {
  const digits = column.size;
  const from = source.take(4 + fractionSize(digits));
  const seconds = source.view.getUint32(from);
  const micros = readMicros(source, from + 4, digits);
  const begun = beginShortText(out, MAX_TEXT);
  const { buffer } = out;
  const at = out.position;
  const isZero = seconds === 0 && micros === 0;
  const day = Math.floor(seconds / 86_400);
  const rest = seconds - day * 86_400;
  if (isZero) date(buffer, at, 0, 0, 0);
  else calendarDate(buffer, at, day);
  buffer[at + 10] = SPACE;
  const hour = (rest / 3600) | 0;
  two(buffer, at + 11, hour);
  const minute = ((rest - hour * 3600) / 60) | 0;
  minutes(buffer, at + 13, minute, rest - hour * 3600 - minute * 60);
  out.position = at + 19;
  fraction(out, micros, digits);
  endShortText(out, begun);
};

const DAYS_OF_400_YEARS = 146_097;
/** From 0000-03-01, with which a year without its leap day at its end begins, to 1970. */
const DAYS_TO_1970 = 719_468;

/** The date of a day counted from 1970, of the Gregorian calendar. */
function calendarDate(bytes: Uint8Array, at: number, day: number): void {
  const days = day + DAYS_TO_1970;
  const era = (days / DAYS_OF_400_YEARS) | 0;
  const ofEra = days - era * DAYS_OF_400_YEARS;
  const years = ((ofEra - ((ofEra / 1460) | 0) + ((ofEra / 36_524) | 0) - ((ofEra / 146_096) | 0)) / 365) | 0;
  const ofYear = ofEra - (365 * years + (years >> 2) - ((years / 100) | 0));
  /** From March. */
  const month = ((5 * ofYear + 2) / 153) | 0;
  const inMonth = ofYear - (((153 * month + 2) / 5) | 0) + 1;
  const isNextYear = month > 9;
  date(bytes, at, era * 400 + years + (isNextYear ? 1 : 0), isNextYear ? month - 9 : month + 3, inMonth);
}
