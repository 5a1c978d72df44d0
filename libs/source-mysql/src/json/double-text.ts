/**
 * A double as MySQL prints it inside JSON: the shortest digits that give the number back, in plain form when the decimal point is
 * at most 15 digits away or has digits on both sides, else with an exponent; whole numbers end in `.0` (MySQL, strings/dtoa.cc, my_gcvt).
 */
const MOST_PLAIN_DIGITS = 15;

export function doubleText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  /** Where the decimal point stands, counted from the first digit. */
  const point = Number(exponent) + 1;
  const sign = value < 0 ? '-' : '';
  if ((point > MOST_PLAIN_DIGITS && digits.length <= point) || point < 1 - MOST_PLAIN_DIGITS) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
    return `${sign}${digits.slice(0, 1)}${fraction}e${point - 1}`;
  }
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  if (digits.length <= point) return `${sign}${digits}${'0'.repeat(point - digits.length)}.0`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
