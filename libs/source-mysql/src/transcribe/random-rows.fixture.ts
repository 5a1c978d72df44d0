/** For tests: random tables of all types, and rows of them as bytes of a rows event. */
import { deflateSync } from 'node:zlib';
import { compileTable, makeTableSchema } from '@mysync/wire';
import fc from 'fast-check';
import { TYPE } from '../binlog/column-types.ts';
import type { ColumnReader } from '../binlog/row-reader.ts';
import type { RowsEvent } from '../binlog/rows-event.ts';
import type { TextDecode } from '../schema/charsets.ts';
import { type BaseType, type ColumnShape, toColumn } from '../schema/column-shape.ts';
import { binaryJson, type JsonPart } from './binary-json.fixture.ts';
import { compileTranscription, type TranscribedTable } from './compile-table.ts';

interface ColumnCase {
  readonly reader: ColumnReader;
  /** Values as they stand in an image, lengths in front. */
  readonly bytes: fc.Arbitrary<Buffer>;
}

export interface TableCase {
  readonly table: TranscribedTable;
  readonly columns: readonly ColumnCase[];
  /** What a failing test prints. */
  [fc.toStringMethod](): string;
}

type Kind = (name: string) => fc.Arbitrary<ColumnCase>;

function reader(
  name: string,
  type: number,
  base: BaseType,
  more: Partial<Pick<ColumnReader, 'size' | 'precision' | 'scale' | 'unsigned' | 'decode' | 'isSingleByte'>> &
    Partial<Pick<ColumnShape, 'charset' | 'members'>> = {},
): ColumnReader {
  const { size = 0, precision = 0, scale = 0, unsigned = false, decode, isSingleByte = false } = more;
  const { charset = '', members = [] } = more;
  const shape = { name, base, unsigned, length: size, precision, scale, nullable: true, charset, members };
  return { type, size, precision, scale, unsigned, shape, decode, isSingleByte };
}

const raw = (length: number): fc.Arbitrary<Buffer> =>
  fc.oneof(
    fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(0, 0xff, 0x80, 0x7f).map((byte) => Buffer.alloc(length, byte)),
    fc.integer({ min: 0, max: 255 }).map((low) => Buffer.concat([Buffer.of(low), Buffer.alloc(length - 1)])),
  );

function prefixed(content: fc.Arbitrary<Uint8Array>, lengthBytes: number): fc.Arbitrary<Buffer> {
  return content.map((bytes) => {
    const length = Buffer.alloc(lengthBytes);
    length.writeUIntLE(bytes.length, 0, lengthBytes);
    return Buffer.concat([length, bytes]);
  });
}

const INTEGERS = [
  [TYPE.TINY, 'tinyint', 1],
  [TYPE.SHORT, 'smallint', 2],
  [TYPE.INT24, 'mediumint', 3],
  [TYPE.LONG, 'int', 4],
  [TYPE.LONGLONG, 'bigint', 8],
] as const;

const integer: Kind = (name) =>
  fc.record({ which: fc.constantFrom(...INTEGERS), unsigned: fc.boolean() }).map(({ which, unsigned }) => {
    const [type, base, size] = which;
    const borders = fc
      .tuple(fc.constantFrom(31n, 32n, 33n, 53n, 63n), fc.integer({ min: -1, max: 1 }), fc.constantFrom(1n, -1n))
      .map(([bits, by, sign]) => sign * 2n ** bits + BigInt(by));
    const edges = fc.oneof(borders, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n })).map((value) => {
      const buffer = Buffer.alloc(8);
      buffer.writeBigUInt64LE(BigInt.asUintN(64, value));
      return buffer.subarray(0, size);
    });
    return { reader: reader(name, type, base, { unsigned }), bytes: fc.oneof(raw(size), edges) };
  });

const real: Kind = (name) =>
  fc.boolean().map((isDouble) => ({
    reader: isDouble
      ? reader(name, TYPE.DOUBLE, 'double', { size: 8 })
      : reader(name, TYPE.FLOAT, 'float', { size: 4 }),
    bytes: (isDouble
      ? fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(0, -0))
      : fc.oneof(fc.float({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(0, -0))
    ).map((value) => {
      const buffer = Buffer.alloc(isDouble ? 8 : 4);
      if (isDouble) buffer.writeDoubleLE(value);
      else buffer.writeFloatLE(value);
      return buffer;
    }),
  }));

const SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/** Groups of nine digits around the point, the first bit inverted, all bits of a negative number. */
export function decimalBytes(digits: readonly number[], values: readonly number[], negative: boolean): Buffer {
  const bytes = Buffer.concat(
    digits.map((count, i) => {
      const size = SIZES[count] ?? 0;
      const group = Buffer.alloc(size);
      group.writeUIntBE((values[i] ?? 0) % 10 ** count, 0, size);
      return group;
    }),
  );
  if (negative) for (const [i, byte] of bytes.entries()) bytes[i] = ~byte;
  bytes[0] = (bytes[0] ?? 0) ^ 0x80;
  return bytes;
}

const decimal: Kind = (name) =>
  fc
    .integer({ min: 1, max: 65 })
    .chain((precision) =>
      fc.record({ precision: fc.constant(precision), scale: fc.integer({ min: 0, max: Math.min(30, precision) }) }),
    )
    .map(({ precision, scale }) => {
      const whole = precision - scale;
      const nines = (count: number): number[] => Array.from({ length: Math.floor(count / 9) }, () => 9);
      const digits = [whole % 9, ...nines(whole), ...nines(scale), scale % 9].filter((count) => count > 0);
      const group = fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 1000 }),
        fc.integer({ min: 0, max: 999_999_999 }),
      );
      const values = fc.array(group, { minLength: digits.length, maxLength: digits.length });
      return {
        reader: reader(name, TYPE.NEWDECIMAL, 'decimal', { precision, scale }),
        bytes: fc.tuple(values, fc.boolean()).map(([groups, negative]) => decimalBytes(digits, groups, negative)),
      };
    });

const TEMPORALS = [
  [TYPE.TIME2, 'time', 3],
  [TYPE.DATETIME2, 'datetime', 5],
  [TYPE.TIMESTAMP2, 'timestamp', 4],
] as const;

const small = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });

const temporal: Kind = (name) =>
  fc.record({ which: fc.constantFrom(...TEMPORALS), digits: small(6) }).map(({ which, digits }) => {
    const [type, base, size] = which;
    const fraction = (digits + 1) >> 1;
    const part = small(100 ** fraction - 1);
    const written = (whole: bigint, micros: number, sign: bigint): Buffer => {
      const all = sign * ((whole << BigInt(8 * fraction)) + BigInt(micros));
      const offset = type === TYPE.TIMESTAMP2 ? 0n : 1n << BigInt(8 * (size + fraction) - 1);
      const hex = (all + offset).toString(16).padStart(2 * (size + fraction), '0');
      return Buffer.from(hex, 'hex');
    };
    const clock = fc.tuple(small(23), small(59), small(59)).map(([h, m, s]) => BigInt((h << 12) | (m << 6) | s));
    let bytes: fc.Arbitrary<Buffer>;
    if (type === TYPE.TIMESTAMP2) {
      const seconds = fc.oneof(fc.constantFrom(0, 1, 951_782_400, 951_868_799, 4_294_967_295), small(4_294_967_295));
      bytes = fc.tuple(seconds, part).map(([whole, micros]) => written(BigInt(whole), micros, 1n));
    } else if (type === TYPE.TIME2) {
      const long = fc.tuple(small(838), small(59), small(59)).map(([h, m, s]) => BigInt((h << 12) | (m << 6) | s));
      bytes = fc
        .tuple(fc.oneof(clock, long), part, fc.constantFrom(1n, -1n))
        .map(([whole, micros, sign]) => written(whole, micros, sign));
    } else {
      const date = fc.tuple(small(9999), small(12), small(31)).map(([y, m, d]) => BigInt(((y * 13 + m) << 5) | d));
      bytes = fc.tuple(date, clock, part).map(([day, time, micros]) => written((day << 17n) | time, micros, 1n));
    }
    return { reader: reader(name, type, base, { size: digits }), bytes };
  });

const day: Kind = (name) =>
  fc.boolean().map((isYear) =>
    isYear
      ? { reader: reader(name, TYPE.YEAR, 'year'), bytes: raw(1) }
      : {
          reader: reader(name, TYPE.DATE, 'date'),
          bytes: fc.tuple(small(9999), small(12), small(31)).map(([y, m, d]) => {
            const buffer = Buffer.alloc(3);
            buffer.writeUIntLE((y << 9) | (m << 5) | d, 0, 3);
            return buffer;
          }),
        },
  );

const bit: Kind = (name) =>
  fc.integer({ min: 1, max: 64 }).map((size) => ({
    reader: reader(name, TYPE.BIT, 'bit', { size }),
    bytes: raw((size + 7) >> 3),
  }));

/** A made-up charset of single bytes: some become one byte of UTF-8, some two, some three, some are none at all. */
const table =
  (plain: boolean): TextDecode =>
  (buffer, start, end) =>
    Array.from(buffer.subarray(start, end), (byte) => {
      if (byte < 0x80) return plain || byte !== 0x5b ? String.fromCharCode(byte) : 'Ä';
      if (byte < 0x90) return '?';
      return byte < 0xc0 ? String.fromCharCode(0x2000 + byte) : String.fromCharCode(byte);
    }).join('');
const gb18030 = new TextDecoder('gb18030', { ignoreBOM: true });

const CHARSETS: readonly { charset: string; decode: TextDecode; isSingleByte: boolean }[] = [
  { charset: 'utf8mb4', decode: (buffer, start, end) => buffer.toString('utf8', start, end), isSingleByte: false },
  { charset: 'ascii', decode: (buffer, start, end) => buffer.toString('latin1', start, end), isSingleByte: true },
  { charset: 'latin1', decode: table(true), isSingleByte: true },
  { charset: 'swe7', decode: table(false), isSingleByte: true },
  {
    charset: 'gb18030',
    decode: (buffer, start, end) => gb18030.decode(buffer.subarray(start, end)),
    isSingleByte: false,
  },
  { charset: 'utf16le', decode: (buffer, start, end) => buffer.toString('utf16le', start, end), isSingleByte: false },
];

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const ascii = fc.stringMatching(/^[ -~]*$/);
/** What looks like UTF-8 and is none: overlong forms, surrogates, numbers too high, characters cut off. */
const malformed = fc
  .constantFrom('c080', 'c1bf', 'e09fbf', 'eda080', 'edbfbf', 'f08fbfbf', 'f4908080', 'f5808080', 'e282', 'ff')
  .map((hex) => Buffer.from(hex, 'hex'));
const textBytes = (maxLength: number): fc.Arbitrary<Uint8Array> =>
  fc
    .oneof(
      {
        weight: 1,
        arbitrary: fc.tuple(ascii, malformed, ascii).map(([a, b, c]) => Buffer.concat([utf8(a), b, utf8(c)])),
      },
      { weight: 4, arbitrary: ascii.map(utf8) },
      { weight: 4, arbitrary: fc.string({ unit: 'binary' }).map(utf8) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }) },
      {
        weight: 1,
        arbitrary: fc
          .tuple(fc.string({ unit: 'grapheme' }), small(200))
          .map(([text, times]) => utf8(text.repeat(times))),
      },
    )
    .map((bytes) => bytes.subarray(0, maxLength));

const text: Kind = (name) =>
  fc
    .record({
      charset: fc.constantFrom(...CHARSETS),
      which: fc.constantFrom('char', 'varchar', 'long', 'text1', 'text2', 'text3', 'text4'),
      isBytes: fc.boolean(),
    })
    .map(({ charset, which, isBytes }) => {
      const more = isBytes && which !== 'char' ? {} : charset;
      const based = (textBase: BaseType, bytesBase: BaseType): BaseType => (more === charset ? textBase : bytesBase);
      switch (which) {
        case 'char':
          return {
            reader: reader(name, TYPE.STRING, 'char', { ...more, size: 200 }),
            bytes: prefixed(textBytes(200), 1),
          };
        case 'varchar':
          return {
            reader: reader(name, TYPE.VARCHAR, based('varchar', 'varbinary'), { ...more, size: 255 }),
            bytes: prefixed(textBytes(255), 1),
          };
        case 'long':
          return {
            reader: reader(name, TYPE.VARCHAR, based('varchar', 'varbinary'), { ...more, size: 3000 }),
            bytes: prefixed(textBytes(3000), 2),
          };
        default: {
          const size = Number(which.slice(4));
          return {
            reader: reader(name, TYPE.BLOB, based('text', 'blob'), { ...more, size }),
            bytes: prefixed(textBytes(size === 1 ? 255 : 20_000), size),
          };
        }
      }
    });

const binary: Kind = (name) =>
  fc.integer({ min: 1, max: 400 }).map((size) => ({
    reader: reader(name, TYPE.STRING, 'binary', { size }),
    bytes: prefixed(fc.uint8Array({ maxLength: size }), size > 255 ? 2 : 1),
  }));

const logical: Kind = (name) =>
  fc.constantFrom('uuid' as const, 'inet6' as const, 'inet4' as const).map((base) => {
    const size = base === 'inet4' ? 4 : 16;
    const more = { size, charset: 'ascii', decode: CHARSETS[1]?.decode, isSingleByte: true };
    return { reader: reader(name, TYPE.STRING, base, more), bytes: prefixed(fc.uint8Array({ maxLength: size }), 1) };
  });

const compressed: Kind = (name) =>
  fc.constantFrom(...CHARSETS).map((charset) => ({
    reader: reader(name, TYPE.VARCHAR_COMPRESSED, 'varchar', { ...charset, size: 3000 }),
    bytes: prefixed(
      fc.tuple(textBytes(1000), fc.boolean()).map(([bytes, stored]) => {
        if (bytes.length === 0) return Buffer.alloc(0);
        if (stored) return Buffer.concat([Buffer.of(0), bytes]);
        return Buffer.concat([Buffer.of(0x82, bytes.length >> 8, bytes.length), deflateSync(bytes)]);
      }),
      2,
    ),
  }));

const member: Kind = (name) =>
  fc
    .record({
      members: fc.uniqueArray(fc.oneof(ascii, fc.string({ unit: 'grapheme' })), { minLength: 1, maxLength: 64 }),
      isSet: fc.boolean(),
    })
    .map(({ members, isSet }) => {
      const size = isSet ? ([1, 2, 3, 4, 8].find((bytes) => members.length <= bytes * 8) ?? 8) : 1;
      const last = isSet ? 2n ** BigInt(members.length) - 1n : BigInt(members.length);
      return {
        reader: reader(name, isSet ? TYPE.SET : TYPE.ENUM, isSet ? 'set' : 'enum', { size, members, ...CHARSETS[0] }),
        bytes: fc.bigInt({ min: 0n, max: last }).map((value) => {
          const buffer = Buffer.alloc(8);
          buffer.writeBigUInt64LE(value);
          return buffer.subarray(0, size);
        }),
      };
    });

const jsonText = fc.oneof(
  ascii.map(utf8),
  fc.string({ unit: 'binary' }).map(utf8),
  fc.uint8Array({ maxLength: 20 }),
  malformed,
);
const eight = (value: bigint): Buffer => {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64LE(value);
  return buffer;
};
const jsonDouble = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.tuple(fc.integer(), small(9)).map(([digits, scale]) => digits / 10 ** scale),
  fc.tuple(fc.maxSafeInteger(), small(9)).map(([digits, scale]) => digits / 10 ** scale),
  fc.constantFrom(0, -0, 1e15, 999_999_999_999_999, 1e16, 1e-6, 1e-7, 5e-324, 0.1 + 0.2, 123_456_789.000_001),
);

const jsonPart = fc.letrec<{ part: JsonPart }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record({ kind: fc.constant('literal' as const), code: small(2) }),
    fc.record({ kind: fc.constant('int16' as const), value: fc.integer({ min: -32_768, max: 32_767 }) }),
    fc.record({ kind: fc.constant('uint16' as const), value: small(65_535) }),
    fc.record({ kind: fc.constant('int32' as const), value: fc.integer() }),
    fc.record({ kind: fc.constant('uint32' as const), value: small(4_294_967_295) }),
    fc.record({ kind: fc.constant('int64' as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
    fc.record({ kind: fc.constant('uint64' as const), value: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) }),
    fc.record({ kind: fc.constant('double' as const), value: jsonDouble }),
    fc.record({ kind: fc.constant('string' as const), bytes: jsonText }),
    fc.record({
      kind: fc.constant('opaque' as const),
      type: fc.constantFrom(7, 10, 11, 12),
      bytes: fc.bigInt({ min: -(2n ** 55n), max: 2n ** 55n }).map(eight),
    }),
    fc.record({
      kind: fc.constant('opaque' as const),
      type: fc.constantFrom(15, 252),
      bytes: fc.uint8Array({ maxLength: 200 }),
    }),
    fc.tuple(small(999_999_999), fc.boolean()).map(
      ([value, negative]): JsonPart => ({
        kind: 'opaque',
        type: TYPE.NEWDECIMAL,
        bytes: Buffer.concat([Buffer.of(11, 2), decimalBytes([9, 2], [value, value], negative)]),
      }),
    ),
    fc.record({
      kind: fc.constant('array' as const),
      large: fc.boolean(),
      items: fc.array(tie('part'), { maxLength: 8 }),
    }),
    fc.record({
      kind: fc.constant('object' as const),
      large: fc.boolean(),
      members: fc.array(fc.tuple(jsonText, tie('part')), { maxLength: 8 }),
    }),
  ),
})).part;

const json: Kind = (name) =>
  fc.constant({
    reader: reader(name, TYPE.JSON, 'json', { ...CHARSETS[0], size: 4 }),
    bytes: prefixed(fc.oneof(jsonPart.map(binaryJson), fc.constant(Buffer.alloc(0))), 4),
  });

const KINDS: readonly Kind[] = [
  integer,
  real,
  decimal,
  temporal,
  day,
  bit,
  text,
  binary,
  logical,
  compressed,
  member,
  json,
];

export const tables: fc.Arbitrary<TableCase> = fc
  .array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 18 })
  .chain((kinds) => fc.tuple(...kinds.map((kind, i) => kind(`column ${i}`))))
  .chain((columns) => {
    const indexes = columns.map((_, i) => i);
    const some = fc.shuffledSubarray(indexes, { maxLength: Math.min(4, indexes.length) });
    return fc.record({ columns: fc.constant(columns), key: some, partitionBy: fc.option(some, { nil: undefined }) });
  })
  .map(({ columns, key, partitionBy }) => {
    const schema = makeTableSchema({
      database: 'shop',
      table: 'größe',
      columns: columns.map(({ reader: { shape } }, i) => toColumn(shape, key.indexOf(i) + 1)),
      keyRule: key.length === 0 ? 'row-hash' : 'primary',
    });
    const names = partitionBy?.map((i) => `column ${i}`);
    const plan = compileTable({ schema, ...(names === undefined ? {} : { partitionBy: names }) });
    const readers = columns.map((column) => column.reader);
    const types = schema.columns.map(({ type, charset, keyPosition }) => `${type} ${charset} ${keyPosition}`);
    return {
      table: compileTranscription(plan, readers),
      columns,
      [fc.toStringMethod]: () => `${types.join(', ')}; partitionBy ${names}`,
    };
  });

type Image = readonly (Buffer | null)[];

function image(columns: readonly ColumnCase[]): fc.Arbitrary<Image> {
  return fc.tuple(...columns.map(({ bytes }) => fc.option(bytes, { freq: 6 })));
}

function imageBytes(values: Image): Buffer {
  const nulls = Buffer.alloc((values.length + 7) >> 3);
  for (const [i, value] of values.entries()) if (value === null) nulls[i >> 3] = (nulls[i >> 3] ?? 0) | (1 << (i & 7));
  return Buffer.concat([nulls, ...values.flatMap((value) => value ?? [])]);
}

/** An update of some columns only; often of none. */
function pair(columns: readonly ColumnCase[]): fc.Arbitrary<Buffer> {
  const changed = fc.array(fc.boolean(), { minLength: columns.length, maxLength: columns.length });
  return fc
    .tuple(image(columns), image(columns), fc.oneof(changed, fc.constant<boolean[]>([])))
    .map(([before, other, which]) =>
      Buffer.concat([
        imageBytes(before),
        imageBytes(before.map((value, i) => (which[i] === true ? (other[i] ?? null) : value))),
      ]),
    );
}

/** Rows of a table, somewhere in a buffer. */
export function rowsOf({ columns }: TableCase): fc.Arbitrary<RowsEvent> {
  const operation = fc.constantFrom('insert' as const, 'update' as const, 'delete' as const);
  return fc
    .tuple(operation, small(30))
    .chain(([which, before]) => {
      const one = which === 'update' ? pair(columns) : image(columns).map(imageBytes);
      return fc.tuple(fc.constant(which), fc.constant(before), fc.array(one, { minLength: 1, maxLength: 5 }));
    })
    .map(([which, before, images]) => {
      const data = Buffer.concat(images);
      const buffer = Buffer.concat([Buffer.alloc(before, 0x5a), data, Buffer.alloc(7, 0xa5)]);
      return { operation: which, isWhole: true, buffer, start: before, end: before + data.length };
    });
}
