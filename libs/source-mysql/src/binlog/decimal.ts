/**
 * DECIMAL in its binary form to exact text, as SELECT prints it.
 * Format: MySQL, strings/decimal.cc, decimal2bin: groups of nine digits in four big-endian bytes, the odd digits of the
 * integer part first and those of the fraction last in fewer bytes, the first bit inverted, all bits inverted when negative.
 */
/** By number of digits. */
const GROUP_BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4] as const;

/** Bytes of a value. Throws a RangeError when there is no such type. */
export function decimalSize(precision: number, scale: number): number {
  const whole = precision - scale;
  if (whole < 0) throw new RangeError(`DECIMAL(${precision},${scale})`);
  return (
    Math.floor(whole / 9) * 4 +
    (GROUP_BYTES[whole % 9] ?? 0) +
    Math.floor(scale / 9) * 4 +
    (GROUP_BYTES[scale % 9] ?? 0)
  );
}

/** Throws a RangeError when a group of digits holds a number of more digits. */
export function readDecimal(buffer: Buffer, start: number, precision: number, scale: number): string {
  const negative = ((buffer[start] as number) & 0x80) === 0;
  const mask = negative ? 0xff : 0;
  let at = start;
  let first = 0x80;
  const group = (digits: number): number => {
    let value = 0;
    for (let i = GROUP_BYTES[digits] ?? 0; i > 0; i -= 1) {
      value = value * 256 + (((buffer[at] as number) ^ mask ^ first) & 0xff);
      first = 0;
      at += 1;
    }
    if (value >= 10 ** digits) throw new RangeError(`${value} in place of ${digits} digits`);
    return value;
  };
  const whole = precision - scale;
  let text = '';
  const odd = whole % 9;
  if (odd > 0) {
    const value = group(odd);
    if (value > 0) text = String(value);
  }
  for (let i = Math.floor(whole / 9); i > 0; i -= 1) {
    const value = group(9);
    if (text !== '') text += String(value).padStart(9, '0');
    else if (value > 0) text = String(value);
  }
  if (text === '') text = '0';
  if (scale > 0) {
    text += '.';
    for (let i = Math.floor(scale / 9); i > 0; i -= 1) text += String(group(9)).padStart(9, '0');
    const rest = scale % 9;
    if (rest > 0) text += String(group(rest)).padStart(rest, '0');
  }
  return negative ? `-${text}` : text;
}
