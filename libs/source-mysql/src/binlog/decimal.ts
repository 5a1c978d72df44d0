/**
 * DECIMAL in its binary form to exact text, as SELECT prints it.
 * Format: MySQL, strings/decimal.cc, decimal2bin: groups of nine digits in four big-endian bytes, the odd digits of the
 * integer part first and those of the fraction last in fewer bytes, the first bit inverted, all bits inverted when negative.
 */
const GROUP_BYTES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4] as const;

export function decimalSize(precision: number, scale: number): number {
  const whole = precision - scale;
  return (
    Math.floor(whole / 9) * 4 +
    (GROUP_BYTES[whole % 9] ?? 0) +
    Math.floor(scale / 9) * 4 +
    (GROUP_BYTES[scale % 9] ?? 0)
  );
}

export function readDecimal(buffer: Buffer, start: number, precision: number, scale: number): string {
  const negative = ((buffer[start] as number) & 0x80) === 0;
  const mask = negative ? 0xff : 0;
  let at = start;
  let first = 0x80;
  const group = (bytes: number): number => {
    let value = 0;
    for (let i = 0; i < bytes; i += 1) {
      value = value * 256 + (((buffer[at] as number) ^ mask ^ first) & 0xff);
      first = 0;
      at += 1;
    }
    return value;
  };
  const whole = precision - scale;
  let text = '';
  const odd = GROUP_BYTES[whole % 9] ?? 0;
  if (odd > 0) {
    const value = group(odd);
    if (value > 0) text = String(value);
  }
  for (let i = Math.floor(whole / 9); i > 0; i -= 1) {
    const value = group(4);
    if (text !== '') text += String(value).padStart(9, '0');
    else if (value > 0) text = String(value);
  }
  if (text === '') text = '0';
  if (scale > 0) {
    text += '.';
    for (let i = Math.floor(scale / 9); i > 0; i -= 1) text += String(group(4)).padStart(9, '0');
    const rest = scale % 9;
    if (rest > 0) text += String(group(GROUP_BYTES[rest] ?? 0)).padStart(rest, '0');
  }
  return negative ? `-${text}` : text;
}
