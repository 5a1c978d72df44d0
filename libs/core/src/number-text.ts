/** The shortest decimal text that reads back as the same number; `single`: as the same 32-bit number. */
export function numberText(value: number, single: boolean): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (single && !Number.isInteger(value)) return singleText(value);
  if (single && Math.abs(value) > 0xffffff) return singleText(value);
  return String(value);
}

function singleText(value: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}
