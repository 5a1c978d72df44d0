/**
 * Dates and times in their binary forms to the text that SELECT prints (TIMESTAMP in UTC). What no server prints (years of five
 * digits, a million microseconds, hours past 838) is a RangeError.
 * Formats: MySQL, sql-common/my_time.cc: my_time_packed_from_binary, my_datetime_packed_from_binary, my_timestamp_from_binary.
 */
/** Of TIME. */
const MAX_HOURS = 838;
const TWO: readonly string[] = Array.from({ length: 100 }, (_, i) => String(i).padStart(2, '0'));
const TENS = [1_000_000, 100_000, 10_000, 1_000, 100, 10, 1] as const;

/** Bytes that a fraction of so many digits takes. */
export function fractionSize(digits: number): number {
  return (digits + 1) >> 1;
}

function two(value: number): string {
  return TWO[value] ?? String(value);
}

function four(value: number): string {
  if (value < 0 || value > 9999) throw new RangeError(`the year ${value}`);
  return two(Math.floor(value / 100)) + two(value % 100);
}

function fraction(micros: number, digits: number): string {
  if (digits === 0) return '';
  if (micros >= 1_000_000) throw new RangeError(`${micros} microseconds`);
  return `.${String(Math.floor(micros / (TENS[digits] ?? 1))).padStart(digits, '0')}`;
}

/** The fraction's bytes as microseconds. */
function readMicros(buffer: Buffer, at: number, digits: number): number {
  switch (fractionSize(digits)) {
    case 0:
      return 0;
    case 1:
      return (buffer[at] as number) * 10_000;
    case 2:
      return buffer.readUInt16BE(at) * 100;
    default:
      return buffer.readUIntBE(at, 3);
  }
}

/** DATE: three bytes, little-endian: day 5 bits, month 4, year 15. */
export function readDate(buffer: Buffer, at: number): string {
  const value = buffer.readUIntLE(at, 3);
  return `${four(value >> 9)}-${two((value >> 5) & 15)}-${two(value & 31)}`;
}

/** DATETIME(digits): 40 bits, big-endian, then the fraction. */
export function readDatetime(buffer: Buffer, at: number, digits: number): string {
  const value = buffer.readUIntBE(at, 5) - 0x80_0000_0000;
  const day = Math.floor(value / 131_072);
  const time = value % 131_072;
  const months = day >> 5;
  const date = `${four(Math.floor(months / 13))}-${two(months % 13)}-${two(day & 31)}`;
  return `${date} ${two(time >> 12)}:${two((time >> 6) & 63)}:${two(time & 63)}${fraction(readMicros(buffer, at + 5, digits), digits)}`;
}

/** TIME(digits): 24 bits, big-endian, sign by offset, then the fraction as part of the same signed number. */
export function readTime(buffer: Buffer, at: number, digits: number): string {
  let packed: number;
  switch (fractionSize(digits)) {
    case 0:
      packed = (buffer.readUIntBE(at, 3) - 0x80_0000) * 16_777_216;
      break;
    case 1: {
      let whole = buffer.readUIntBE(at, 3) - 0x80_0000;
      let part = buffer[at + 3] as number;
      if (whole < 0 && part > 0) {
        whole += 1;
        part -= 0x100;
      }
      packed = whole * 16_777_216 + part * 10_000;
      break;
    }
    case 2: {
      let whole = buffer.readUIntBE(at, 3) - 0x80_0000;
      let part = buffer.readUInt16BE(at + 3);
      if (whole < 0 && part > 0) {
        whole += 1;
        part -= 0x1_0000;
      }
      packed = whole * 16_777_216 + part * 100;
      break;
    }
    default:
      packed = buffer.readUIntBE(at, 6) - 0x8000_0000_0000;
  }
  const sign = packed < 0 ? '-' : '';
  const size = Math.abs(packed);
  const time = Math.floor(size / 16_777_216);
  const hours = (time >> 12) & 1023;
  if (hours > MAX_HOURS) throw new RangeError(`${hours} hours`);
  return `${sign}${two(hours)}:${two((time >> 6) & 63)}:${two(time & 63)}${fraction(size % 16_777_216, digits)}`;
}

let lastDay = -1;
let lastDayText = '';

/** TIMESTAMP(digits): seconds since 1970, big-endian, then the fraction. All zero is the zero date, not 1970. */
export function readTimestamp(buffer: Buffer, at: number, digits: number): string {
  const seconds = buffer.readUInt32BE(at);
  const micros = readMicros(buffer, at + 4, digits);
  if (seconds === 0 && micros === 0) return `0000-00-00 00:00:00${fraction(0, digits)}`;
  const day = Math.floor(seconds / 86_400);
  if (day !== lastDay) {
    lastDay = day;
    lastDayText = new Date(day * 86_400_000).toISOString().slice(0, 10);
  }
  const rest = seconds - day * 86_400;
  const time = `${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
  return `${lastDayText} ${time}${fraction(micros, digits)}`;
}
