/** Quotient and remainder of a safe integer by it are below 2^31. */
const HALF = 100_000_000;

/** The shortest decimal text that reads back as the same number; `single`: as the same 32-bit number. */
export function numberText(value: number, single: boolean): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (single && !Number.isInteger(value)) return singleText(value);
  if (single && Math.abs(value) > 0xffffff) return singleText(value);
  // V8 writes whole numbers beyond 31 bits with the algorithm for fractions, at thrice the cost of two small ones.
  if (value > 0x7fffffff && value <= Number.MAX_SAFE_INTEGER && Number.isInteger(value)) return wholeText(value);
  return String(value);
}

function wholeText(value: number): string {
  const low = value % HALF;
  return String((value - low) / HALF) + String(low + HALF).slice(1);
}

function singleText(value: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}
