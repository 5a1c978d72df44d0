/** Values at the edges of every type, as SQL expressions that mean the same in every session. */
import type { CatalogueColumn, Flavor } from './catalogue.ts';
import { jsonValue } from './json-values.ts';
import type { Random } from './random.ts';
import { quoteText } from './sql-text.ts';
import { randomText } from './texts.ts';

const BITS: Readonly<Record<string, number>> = { tinyint: 8, smallint: 16, mediumint: 24, int: 32, bigint: 64 };
const FLOATS = [
  '0',
  '-0e0',
  '0.1',
  '-3.4028234e38',
  '1.17549435e-38',
  '1.4e-45',
  '16777216',
  '16777217',
  '123456.789',
  '1e10',
  '-1e-10',
];
const DOUBLES = [
  '0',
  '-0e0',
  '0.1',
  '-2.2250738585072014e-308',
  '5e-324',
  '1.7976931348623157e308',
  '-0.12345678901234567',
  '1e15',
  '1e16',
  '9007199254740993',
  '123456789012345680000',
  '1e22',
  '1e23',
  '1e-7',
];
const YEARS = [0, 1, 99, 100, 999, 1000, 1582, 1900, 1969, 1970, 2000, 2024, 2037, 2038, 2155, 9999];
/** Charsets in which the server takes halves of surrogate pairs, which are no text. */
const HALF_PAIRS = new Set(['ucs2', 'utf16', 'utf16le', 'utf32', 'utf8', 'utf8mb3', 'utf8mb4']);

export function randomValue(random: Random, column: CatalogueColumn, flavor: Flavor): string {
  if (column.nullable && random.chance(0.12)) return 'NULL';
  if (random.chance(0.03)) return 'DEFAULT';
  const bits = BITS[column.base];
  if (bits !== undefined) return integer(random, bits, column.unsigned);
  switch (column.base) {
    case 'decimal':
      return decimal(random, column);
    case 'float':
      return real(random, FLOATS, 38, column.unsigned);
    case 'double':
      return real(random, DOUBLES, 307, column.unsigned);
    case 'bit':
      return `b'${Array.from({ length: random.between(1, column.precision) }, () => random.below(2)).join('')}'`;
    case 'year':
      return random.pick(["'0000'", '1901', '2155', '2024', String(random.between(1901, 2155))]);
    case 'date':
      return `'${date(random)}'`;
    case 'time':
      return `'${time(random, column.scale)}'`;
    case 'datetime':
      return random.chance(0.1) ? '0' : `'${date(random)} ${clock(random, column.scale)}'`;
    case 'timestamp':
      return timestamp(random, column.scale);
    case 'enum':
      return String(random.below(memberCount(column.type) + 1));
    case 'set':
      return String(random.bigBelow(2n ** BigInt(memberCount(column.type))));
    case 'json':
      return jsonValue(random, flavor);
    case 'uuid':
      return `'${uuid(random)}'`;
    case 'inet4':
      return `'${random.pick(['0.0.0.0', '255.255.255.255', '1.2.3.4', Array.from({ length: 4 }, () => random.below(256)).join('.')])}'`;
    case 'inet6':
      return `'${inet6(random)}'`;
    case 'vector':
      return vector(random, column.type);
    case 'binary':
    case 'varbinary':
    case 'tinyblob':
    case 'blob':
    case 'mediumblob':
    case 'longblob':
      return bytes(random, column.length);
    case 'char':
    case 'varchar':
    case 'tinytext':
    case 'text':
    case 'mediumtext':
    case 'longtext':
      return column.comment === 'json' ? jsonValue(random, flavor) : text(random, column);
    default:
      return geometry(random, column);
  }
}

function integer(random: Random, bits: number, unsigned: boolean): string {
  const min = unsigned ? 0n : -(2n ** BigInt(bits - 1));
  const max = 2n ** BigInt(unsigned ? bits : bits - 1) - 1n;
  const edges = [
    0n,
    1n,
    min,
    max,
    min + 1n,
    max - 1n,
    9n,
    10n,
    127n,
    128n,
    255n,
    256n,
    2n ** 53n - 1n,
    2n ** 53n,
    2n ** 53n + 1n,
  ];
  if (!unsigned) edges.push(-1n, -128n, -129n, -(2n ** 53n) - 1n);
  const value = random.chance(0.6) ? random.pick(edges) : min + random.bigBelow(max - min + 1n);
  return String(value < min ? min : value > max ? max : value);
}

function decimal(random: Random, { precision, scale, unsigned }: CatalogueColumn): string {
  const whole = precision - scale;
  const sign = !unsigned && random.chance(0.4) ? '-' : '';
  const kind = random.below(5);
  if (kind === 0) return `${sign}0`;
  if (kind === 1) return `${sign}${'9'.repeat(Math.max(whole, 1))}${scale > 0 ? `.${'9'.repeat(scale)}` : ''}`;
  if (kind === 2 && scale > 0) return `${sign}0.${'0'.repeat(scale - 1)}1`;
  const left = whole === 0 ? '0' : random.digits(random.between(1, whole));
  return `${sign}${left}${scale > 0 && random.chance(0.8) ? `.${random.digits(random.between(1, scale))}` : ''}`;
}

function real(random: Random, edges: readonly string[], exponent: number, unsigned: boolean): string {
  const value = random.chance(0.5)
    ? random.pick(edges)
    : `${random.chance(0.5) ? '-' : ''}${random.below(10)}.${random.digits(random.between(1, 17))}e${random.chance(0.6) ? random.between(-6, 6) : random.between(-exponent, exponent)}`;
  return unsigned ? value.replace(/^-/, '') : value;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

function date(random: Random): string {
  if (random.chance(0.1))
    return random.pick(['0000-00-00', '2024-00-00', '2024-02-00', '1000-01-01', '9999-12-31', '2024-02-31']);
  const year = random.chance(0.5) ? random.pick(YEARS) : random.between(1000, 9999);
  const month = random.chance(0.05) ? 0 : random.between(1, 12);
  const day = month === 0 || random.chance(0.05) ? 0 : random.between(1, 28);
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`;
}

function fraction(random: Random, digits: number): string {
  if (random.chance(0.2)) return '';
  if (random.chance(0.2)) return `.${'0'.repeat(Math.max(digits - 1, 0))}1`;
  return `.${random.digits(random.chance(0.2) ? 6 : Math.max(digits, 1))}`;
}

function clock(random: Random, digits: number): string {
  const edge = random.chance(0.2);
  const text = edge
    ? random.pick(['00:00:00', '23:59:59', '02:30:00'])
    : [random.below(24), random.below(60), random.below(60)].map(two).join(':');
  return `${text}${fraction(random, digits)}`;
}

function time(random: Random, digits: number): string {
  const sign = random.chance(0.4) ? '-' : '';
  if (random.chance(0.1)) return `${sign}838:59:59`;
  const hours = random.chance(0.3) ? 0 : random.below(839);
  return `${sign}${two(hours)}:${two(random.below(60))}:${two(random.below(60))}${fraction(random, digits)}`;
}

function timestamp(random: Random, digits: number): string {
  if (random.chance(0.1)) return '0';
  if (random.chance(0.5)) {
    const seconds = random.pick([
      1,
      86_400,
      1_710_052_200,
      1_730_595_600,
      2_147_483_646,
      random.between(1, 2_147_483_646),
    ]);
    return `FROM_UNIXTIME(${seconds}${fraction(random, digits)})`;
  }
  return `'${random.between(1971, 2037)}-${two(random.between(1, 12))}-${two(random.between(1, 28))} ${clock(random, digits)}'`;
}

function memberCount(type: string): number {
  // quotes inside of a member are doubled, so what is between pairs of quotes are members
  return (type.match(/'(?:[^']|'')*'/g) ?? []).length;
}

function uuid(random: Random): string {
  const edge = random.pick(['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '']);
  if (edge !== '' && random.chance(0.2)) return edge;
  const hex = random.hex(16);
  const version = random.pick(['1', '4', '7', hex.slice(12, 13)]);
  const variant = random.pick(['8', 'b', hex.slice(16, 17)]);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function inet6(random: Random): string {
  if (random.chance(0.2)) return random.pick(['::', '::1', '::ffff:1.2.3.4', '::1.2.3.4', '2001:db8::ff00:42:8329']);
  return Array.from({ length: 8 }, () => (random.chance(0.5) ? '0' : random.below(65_536).toString(16))).join(':');
}

function vector(random: Random, type: string): string {
  const dimensions = Number(/\((\d+)\)/.exec(type)?.[1] ?? 1);
  const count = random.chance(0.8) ? dimensions : random.between(1, dimensions);
  const parts = Array.from({ length: count }, () =>
    random.pick(['0', '-1', '2.5', '1e-30', String(random.bits() / 1000)]),
  );
  return `STRING_TO_VECTOR('[${parts.join(',')}]')`;
}

function bytes(random: Random, length: number): string {
  const kind = random.below(6);
  if (kind === 0) return "x''";
  if (kind === 1) return `REPEAT(x'00', ${Math.min(length, 300)})`;
  if (kind === 2) return `x'${random.hex(Math.min(length, 20))}0000'`;
  if (kind === 3 && length > 70_000 && random.chance(0.05)) return `REPEAT(x'${random.hex(7)}', 11000)`;
  return `x'${random.hex(random.chance(0.2) ? Math.min(length, 700) : random.below(Math.min(length, 30) + 1))}'`;
}

function text(random: Random, { charset, length, inKey }: CatalogueColumn): string {
  if (length > 70_000 && random.chance(0.01)) return `REPEAT(${quoteText(randomText(random, 20))}, 5000)`;
  if (length > 255 && random.chance(0.1))
    return `REPEAT(${quoteText(randomText(random, 10))}, ${random.between(20, 200)})`;
  // bytes in the charset itself: also those that no text in Unicode leads to, but in keys, where several would be one question mark
  if (!inKey && !HALF_PAIRS.has(charset) && random.chance(0.25)) {
    return `CONVERT(x'${random.hex(random.below(Math.min(length, 16) + 1))}' USING ${charset})`;
  }
  return quoteText(randomText(random, length));
}

function geometry(random: Random, { base, srid }: CatalogueColumn): string {
  const number = (): string =>
    random.chance(0.5) ? String(random.between(-80, 80)) : (random.bits() / 2 ** 26).toFixed(9);
  const point = (): string => `${number()} ${number()}`;
  const line = (): string => `(${Array.from({ length: random.between(2, 5) }, point).join(',')})`;
  const ring = (): string => {
    const [x, y] = [random.between(-50, 50), random.between(-50, 50)];
    return `((${x} ${y},${x} ${y + 1},${x + 1} ${y + 1},${x} ${y}))`;
  };
  const of: Readonly<Record<string, () => string>> = {
    point: () => `POINT(${point()})`,
    linestring: () => `LINESTRING${line()}`,
    polygon: () => `POLYGON${ring()}`,
    multipoint: () => `MULTIPOINT(${point()},${point()})`,
    multilinestring: () => `MULTILINESTRING(${line()},${line()})`,
    multipolygon: () => `MULTIPOLYGON(${ring()},${ring()})`,
    geomcollection: () => `GEOMETRYCOLLECTION(POINT(${point()}),LINESTRING${line()})`,
  };
  const kind = base === 'geometrycollection' ? 'geomcollection' : base;
  const make = of[kind] ?? of[random.pick(Object.keys(of))];
  const wanted = srid !== '' ? srid : random.pick(['0', '0', '4326']);
  return `ST_GeomFromText('${make?.()}'${wanted === '0' ? '' : `, ${wanted}`})`;
}
