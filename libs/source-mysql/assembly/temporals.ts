/** Walkers of dates and times. The formats are told in `binlog/temporal.ts`. */
import { COLUMN_SIZE, FAIL_HOURS, FAIL_MICROSECONDS, FAIL_YEAR } from '../src/transcribe/layout';
import { digitCount, putDigits, putPair } from './digits';
import { fail } from './host';
import { endShortText } from './output';
import { take, takeLength } from './source';

const MINUS: u8 = 0x2d;
const COLON: u8 = 0x3a;
const POINT: u8 = 0x2e;
const SPACE: u8 = 0x20;
const MAX_HOURS: u32 = 838;
/** Microseconds in the last of so many fractional digits. */
const UNITS: usize = memory.data<u32>([1_000_000, 100_000, 10_000, 1_000, 100, 10, 1]);

/** YYYY-MM-DD. */
function putDate(out: usize, year: u32, month: u32, day: u32): usize {
  if (year > 9999) fail(FAIL_YEAR, out);
  const century = year / 100;
  putPair(out, century);
  putPair(out + 2, year - century * 100);
  store<u8>(out + 4, MINUS);
  putPair(out + 5, month);
  store<u8>(out + 7, MINUS);
  putPair(out + 8, day);
  return out + 10;
}

/** :MM:SS. */
function putMinutes(out: usize, minute: u32, second: u32): usize {
  store<u8>(out, COLON);
  putPair(out + 1, minute);
  store<u8>(out + 3, COLON);
  putPair(out + 4, second);
  return out + 6;
}

/** The point and so many digits. */
function putFraction(out: usize, micros: u32, digits: usize): usize {
  if (digits === 0) return out;
  if (micros >= 1_000_000) fail(FAIL_MICROSECONDS, out);
  store<u8>(out, POINT);
  return putDigits(out + 1, micros / load<u32>(UNITS + 4 * digits), digits);
}

function fractionSize(digits: usize): usize {
  return (digits + 1) >> 1;
}

/** A big-endian number of up to three bytes. */
function readFraction(from: usize, size: usize): u32 {
  return size === 0 ? 0 : bswap<u32>(load<u32>(from)) >>> (32 - 8 * <u32>size);
}

function microsOf(fraction: u32, size: usize): u32 {
  if (size === 1) return fraction * 10_000;
  return size === 2 ? fraction * 100 : fraction;
}

export function walkDate(out: usize): usize {
  const value = <u32>takeLength(3);
  return endShortText(out, putDate(out + 4, value >> 9, (value >> 5) & 15, value & 31));
}

export function walkDatetime(column: usize, out: usize): usize {
  const digits = <usize>load<u32>(column, COLUMN_SIZE);
  const size = fractionSize(digits);
  const from = take(5 + size);
  // 23 bits of date and the sign, then 17 bits of time
  const day = <i32>(bswap<u32>(load<u32>(from)) >>> 9) - 0x40_0000;
  const time = bswap<u32>(load<u32>(from + 1)) & 0x1_ffff;
  if (day < 0) fail(FAIL_YEAR, from);
  const months = <u32>day >> 5;
  const year = months / 13;
  let at = putDate(out + 4, year, months - year * 13, <u32>day & 31);
  store<u8>(at, SPACE);
  putPair(at + 1, time >> 12);
  at = putMinutes(at + 3, (time >> 6) & 63, time & 63);
  return endShortText(out, putFraction(at, microsOf(readFraction(from + 5, size), size), digits));
}

export function walkTime(column: usize, out: usize): usize {
  const digits = <usize>load<u32>(column, COLUMN_SIZE);
  const size = fractionSize(digits);
  const from = take(3 + size);
  let whole = <i32>(bswap<u32>(load<u32>(from)) >>> 8) - 0x80_0000;
  let part = <i32>readFraction(from + 3, size);
  if (whole < 0 && part > 0) {
    // the fraction is part of one negative number
    whole += 1;
    part -= 1 << (8 * <i32>size);
  }
  const time = <u32>(whole < 0 ? -whole : whole);
  const micros = microsOf(<u32>(part < 0 ? -part : part), size);
  const hours = (time >> 12) & 1023;
  if (hours > MAX_HOURS) fail(FAIL_HOURS, from);
  let at = out + 4;
  if (whole < 0 || part < 0) {
    store<u8>(at, MINUS);
    at += 1;
  }
  at = putDigits(at, hours, hours < 100 ? 2 : digitCount(hours));
  at = putMinutes(at, (time >> 6) & 63, time & 63);
  return endShortText(out, putFraction(at, micros, digits));
}

export function walkTimestamp(column: usize, out: usize): usize {
  const digits = <usize>load<u32>(column, COLUMN_SIZE);
  const size = fractionSize(digits);
  const from = take(4 + size);
  const seconds = bswap<u32>(load<u32>(from));
  const micros = microsOf(readFraction(from + 4, size), size);
  const day = seconds / 86_400;
  const rest = seconds - day * 86_400;
  let at = out + 4;
  at = seconds === 0 && micros === 0 ? putDate(at, 0, 0, 0) : putCalendarDate(at, day);
  store<u8>(at, SPACE);
  const hour = rest / 3600;
  putPair(at + 1, hour);
  const minute = (rest - hour * 3600) / 60;
  at = putMinutes(at + 3, minute, rest - hour * 3600 - minute * 60);
  return endShortText(out, putFraction(at, micros, digits));
}

const DAYS_OF_400_YEARS: u32 = 146_097;
/** From 0000-03-01, with which a year without its leap day at its end begins, to 1970. */
const DAYS_TO_1970: u32 = 719_468;

/** The date of a day counted from 1970, of the Gregorian calendar. */
function putCalendarDate(out: usize, day: u32): usize {
  const days = day + DAYS_TO_1970;
  const era = days / DAYS_OF_400_YEARS;
  const ofEra = days - era * DAYS_OF_400_YEARS;
  const years = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365;
  const ofYear = ofEra - (365 * years + (years >> 2) - years / 100);
  /** From March. */
  const month = (5 * ofYear + 2) / 153;
  const inMonth = ofYear - (153 * month + 2) / 5 + 1;
  const isNextYear = month > 9;
  return putDate(out, era * 400 + years + (isNextYear ? 1 : 0), isNextYear ? month - 9 : month + 3, inMonth);
}
