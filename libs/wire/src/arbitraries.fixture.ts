/** Random tables, rows and values for the tests of this package. */
import type { Column, ColumnKind, ColumnValue, KeyRule } from '@mysync/core';
import fc from 'fast-check';
import { makeTableSchema, type TablePlan, type TransactionOptions } from './index.ts';

const INT64 = [
  -(2n ** 63n),
  2n ** 63n - 1n,
  -(2n ** 53n),
  2n ** 53n,
  -(2n ** 53n) + 1n,
  2n ** 53n - 1n,
  -(2n ** 53n) - 1n,
];
const UINT64 = [2n ** 64n - 1n, 2n ** 63n, 2n ** 53n, 2n ** 53n - 1n, 2n ** 53n + 1n, 2n ** 32n, 2n ** 32n - 1n];
const SMALL = [0n, 1n, -1n, 127n, 128n, -128n, 2n ** 31n, 2n ** 31n - 1n, -(2n ** 31n), -(2n ** 31n) - 1n, 2n ** 32n];

/** A 64-bit integer as a reader may give it: a bigint, or a number where that is exact. */
const asRead = (integers: fc.Arbitrary<bigint>): fc.Arbitrary<number | bigint> =>
  fc.tuple(integers, fc.boolean()).map(([value, wide]) => {
    const number = Number(value);
    return wide || !Number.isSafeInteger(number) ? value : number;
  });

export const int64 = asRead(
  fc.oneof(fc.constantFrom(...INT64, ...SMALL), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
);
export const uint64 = asRead(
  fc.oneof(fc.constantFrom(...UINT64, ...SMALL.filter((n) => n >= 0n)), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
);
/** Also long enough for every width of length, and characters of one to four bytes. */
export const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
  fc.constantFrom('', 'null', 'NULL', '\0', '\ufffd', ':', 'x:y', 'é'.repeat(41), '表'.repeat(40), 'a'.repeat(20_000)),
);
export const bytes = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 120, maxLength: 300 }));

const KINDS: readonly ColumnKind[] = ['int', 'uint', 'float', 'double', 'text', 'bytes'];
const byKind: Record<ColumnKind, fc.Arbitrary<ColumnValue>> = {
  int: int64,
  uint: uint64,
  float: fc.float({ noNaN: true, noDefaultInfinity: true }),
  double: fc.double({ noNaN: true, noDefaultInfinity: true }),
  text,
  bytes,
};

export const valueFor = (kind: ColumnKind): fc.Arbitrary<ColumnValue> => byKind[kind];

const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }),
  fc.constantFrom('a.b', 'q"x', '表'),
);

export interface Table {
  readonly schema: TablePlan['schema'];
  readonly keyed: readonly number[];
}

export const table: fc.Arbitrary<Table> = fc
  .tuple(
    name,
    name,
    fc.uniqueArray(fc.tuple(name, fc.constantFrom(...KINDS)), { selector: ([n]) => n, minLength: 1, maxLength: 14 }),
    fc.array(text, { maxLength: 3 }),
    fc.constantFrom<KeyRule>('primary', 'unique', 'row-hash'),
    fc.integer({ min: 1, max: 3 }),
    fc.boolean(),
  )
  .map(([database, tableName, named, members, keyRule, keyLength, backwards]) => {
    const keyed = keyRule === 'row-hash' ? [] : named.slice(0, keyLength).map((_, index) => index);
    if (backwards) keyed.reverse();
    const columns = named.map(
      ([columnName, kind], index): Column => ({
        name: columnName,
        type: `type of ${kind}`,
        kind,
        keyPosition: keyed.indexOf(index) + 1,
        nullable: !keyed.includes(index),
        charset: kind === 'text' ? 'utf8mb4' : '',
        members: kind === 'text' ? members : [],
      }),
    );
    return { schema: makeTableSchema({ database, table: tableName, columns, keyRule }), keyed };
  });

/** A row image: key columns (all, for a row hash) have values, the rest may be NULL or absent. */
export const rowOf = ({ schema }: Table): fc.Arbitrary<ColumnValue[]> =>
  fc.tuple(
    ...schema.columns.map((column) => {
      const value = valueFor(column.kind);
      if (column.keyPosition > 0) return value;
      const orNull = fc.oneof({ weight: 4, arbitrary: value }, fc.constant(null));
      return schema.keyRule === 'row-hash'
        ? orNull
        : fc.oneof({ weight: 8, arbitrary: orNull }, fc.constant(undefined));
    }),
  ) as unknown as fc.Arbitrary<ColumnValue[]>;

export const transaction: fc.Arbitrary<TransactionOptions> = fc.record({
  source: name,
  serverUuid: fc.oneof(fc.uuid(), fc.constant('')),
  id: fc.record({
    file: fc.constantFrom('binlog.000001', 'bin.1000000', ''),
    offset: fc.oneof(fc.nat(), fc.maxSafeNat()),
    gtid: fc.constantFrom('', '0-1-42', '3f1c2a44-9d1b-11ee-8c90-0242ac120002:1'),
    ordinal: fc.constant(0),
  }),
  commitTimeMicros: fc.oneof(fc.constant(0), fc.maxSafeNat()),
});

/** A value as the decoder gives it: integers a number when safe. */
export function plain(value: ColumnValue): ColumnValue {
  if (typeof value === 'bigint' && Number.isSafeInteger(Number(value)) && BigInt(Number(value)) === value) {
    return Number(value);
  }
  return value instanceof Uint8Array ? Uint8Array.from(value) : value;
}
