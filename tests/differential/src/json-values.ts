/** JSON documents as SQL expressions. */
import type { Flavor } from './catalogue.ts';
import type { Random } from './random.ts';
import { quoteText } from './sql-text.ts';
import { randomText } from './texts.ts';

const NUMBERS = [
  '0',
  '-0',
  '1',
  '-1',
  '1.0',
  '0.1',
  '-0.0',
  '1e0',
  '1e2',
  '1.5e300',
  '1e-20',
  '5e-324',
  '32767',
  '32768',
  '-32768',
  '-32769',
  '65535',
  '65536',
  '2147483647',
  '2147483648',
  '-2147483649',
  '4294967295',
  '4294967296',
  '9007199254740993',
  '9223372036854775807',
  '-9223372036854775808',
  '18446744073709551615',
  '18446744073709551616',
  '123456789012345.6',
  '1234567890123456.7',
  '0.30000000000000004',
  '1e15',
  '1e16',
  '1e17',
  '123456789.123456789123456789',
];

/** Values that MySQL keeps in a form of their own inside of a document. */
const OPAQUE = [
  "CAST('2024-02-29 01:02:03.000004' AS DATETIME(6))",
  "CAST('0000-00-00 00:00:00' AS DATETIME)",
  "CAST('2024-02-29' AS DATE)",
  "CAST('-838:59:58.5' AS TIME(1))",
  "CAST('-00:00:00.000001' AS TIME(6))",
  "TIMESTAMP'2024-01-02 03:04:05.6'",
  '1.10',
  '-0.00',
  'CAST(-12345678901234567890.123 AS DECIMAL(30,3))',
  'CAST(99999999999999999999999999999999999 AS DECIMAL(65,30))',
  "CAST(REPEAT(x'00FF',40) AS BINARY)",
  "x''",
  "b'101'",
  'CAST(2024 AS YEAR)',
  'true',
  'NULL',
  'CAST(18446744073709551615 AS UNSIGNED)',
  '1e0',
  '0e0',
];

export function jsonText(random: Random, depth = 0): string {
  const kind = random.below(depth > 3 ? 4 : 6);
  if (kind === 0) return random.pick(['true', 'false', 'null']);
  if (kind <= 2) return random.chance(0.7) ? random.pick(NUMBERS) : String(random.bits() / 10 ** random.below(12));
  if (kind === 3) return JSON.stringify(randomText(random, 40));
  const count = random.chance(0.05) ? 60 : random.below(5);
  if (kind === 4) return `[${Array.from({ length: count }, () => jsonText(random, depth + 1)).join(',')}]`;
  const members = Array.from({ length: count }, (_, i) => {
    const name = random.chance(0.6) ? (['a', 'b', 'c', 'd', 'e'][i % 5] ?? '') : `${randomText(random, 8)}${i}`;
    return `${JSON.stringify(name)}:${jsonText(random, depth + 1)}`;
  });
  return `{${members.join(', ')}}`;
}

export function jsonValue(random: Random, flavor: Flavor): string {
  if (flavor === 'mysql' && random.chance(0.25)) {
    const parts = Array.from({ length: random.between(1, 5) }, () => random.pick(OPAQUE));
    return random.chance(0.5)
      ? `JSON_ARRAY(${parts.join(', ')})`
      : `JSON_OBJECT(${parts.map((part, i) => `'k${i}', ${part}`).join(', ')})`;
  }
  if (random.chance(0.02))
    return `CONCAT('["', REPEAT('long ', ${random.between(13_000, 30_000)}), '", ', ${quoteText(jsonText(random))}, ']')`;
  if (random.chance(0.5)) {
    // an object whose members the partial updates touch
    const long = random.chance(0.5) ? `, "long": "${'x'.repeat(random.between(50, 400))}"` : '';
    return quoteText(
      `{"a": ${jsonText(random, 2)}, "b": {"c": [${jsonText(random, 3)}, ${jsonText(random, 3)}]}${long}}`,
    );
  }
  return quoteText(jsonText(random));
}

const PATHS = ['$.a', '$.b', '$.b.c', '$.b.c[0]', '$.b.c[1]', '$.b.c[last]', '$.long', '$.new', '$[0]', '$'];

/** What partial updates are logged of. */
export function jsonChange(random: Random, column: string): string {
  const path = (): string => `'${random.pick(PATHS)}'`;
  const value = (): string => {
    const kind = random.below(4);
    if (kind === 0) return random.pick(NUMBERS);
    if (kind === 1) return `'${'y'.repeat(random.below(60))}'`;
    if (kind === 2) return `CAST(${quoteText(jsonText(random, 2))} AS JSON)`;
    return random.pick(OPAQUE);
  };
  const pairs = Array.from({ length: random.between(1, 3) }, () => `${path()}, ${value()}`).join(', ');
  switch (random.below(4)) {
    case 0:
      return `JSON_SET(${column}, ${pairs})`;
    case 1:
      return `JSON_REPLACE(${column}, ${pairs})`;
    case 2:
      return `JSON_REMOVE(${column}, ${random.pick(["'$.a'", "'$.b.c[0]'", "'$.long'", "'$.b'"])})`;
    default:
      return `JSON_REMOVE(JSON_SET(${column}, ${pairs}), '$.b.c[0]')`;
  }
}
