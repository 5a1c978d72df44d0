const DAYS = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * True when `YYYY-MM-DD`, with or without a time after it, is a day of the calendar: MySQL also stores `0000-00-00`,
 * `2024-02-00` and, with ALLOW_INVALID_DATES, `2024-02-31`. The year 0000 counts as none: MySQL's own documentation gives
 * dates from 1000 on only.
 */
export function isCalendarDate(text: string): boolean {
  if (text.length < 10 || text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return false;
  const year = digits(text, 0) * 100 + digits(text, 2);
  const month = digits(text, 5);
  const day = digits(text, 8);
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1)) return false;
  if (day <= 28) return true;
  if (month === 2 && day === 29) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return day <= (DAYS[month] ?? 0);
}

function digits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}
