import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Column, ColumnKind, ColumnValue, KeyRule } from '@mysync/core';
import fc from 'fast-check';
import { bytes, int64, plain, rowOf, type Table, table, text, uint64, valueFor } from './arbitraries.fixture.ts';
import {
  compileTable,
  controlKey,
  decodeKey,
  encodeTransaction,
  keyKind,
  makeTableSchema,
  partitionOf,
  ROW_HASH_COLUMN,
  RowEncoder,
} from './index.ts';
import { finishHash, HASH_SEED, hashBytes } from './partition.ts';

const encoder = new RowEncoder();
const tx = encodeTransaction({
  source: 's',
  serverUuid: 'u',
  id: { file: 'b.1', offset: 4, gtid: '', ordinal: 0 },
  commitTimeMicros: 0,
});

function keyOf(
  schema: Table['schema'],
  values: readonly ColumnValue[],
  partitionBy: readonly string[] = [],
): { key: Uint8Array; partitionHash: number } {
  const plan = compileTable({ schema, partitionBy });
  const change = { eventFile: '', eventOffset: 0, ordinal: 1, before: null, after: values };
  const { key, partitionHash } = encoder.encode(plan, tx, { operation: 'insert', ...change });
  return { key, partitionHash };
}

const column = (name: string, kind: ColumnKind, keyPosition: number): Column => ({
  name,
  type: kind,
  kind,
  keyPosition,
  nullable: false,
  charset: '',
  members: [],
});

type Cell = readonly [name: string, kind: ColumnKind, value: ColumnValue];

/** A table whose columns are all its key, in this order, and one row of it. */
function single(
  database: string,
  tableName: string,
  cells: readonly Cell[],
  rule: KeyRule = 'primary',
  more: Cell[] = [],
) {
  const keyed = cells.map(([name, kind], at) => column(name, kind, rule === 'row-hash' ? 0 : at + 1));
  const rest = more.map(([name, kind]) => column(name, kind, 0));
  const schema = makeTableSchema({ database, table: tableName, columns: [...keyed, ...rest], keyRule: rule });
  return { schema, values: [...cells, ...more].map(([, , value]) => value) };
}

const hex = (key: Uint8Array): string => Buffer.from(key).toString('hex');

test('the test vectors of the specification', () => {
  const page = readFileSync(new URL('../../../docs/spec/keys.md', import.meta.url), 'utf8');
  const lines = page.split('\n').map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  const wanted = lines.filter((cells) => cells.length === 7 && /^\d+$/.test(cells[5] ?? ''));
  const uuid = Buffer.from('00112233445566778899AABBCCDD0000', 'hex');
  const rows = [
    single('shop', 'orders', [['id', 'int', 5]]),
    single('shop', 'orders', [['id', 'uint', 18446744073709551615n]]),
    single('shop', 'orders', [['id', 'int', -9223372036854775808n]]),
    single('shop', 'pair', [
      ['a', 'text', 'x:y'],
      ['b', 'text', 'z'],
    ]),
    single('shop', 'pair', [
      ['a', 'text', 'x'],
      ['b', 'text', 'y:z'],
    ]),
    single('shop', 'codes', [['code', 'text', '5']]),
    single('shop', 'codes', [['code', 'bytes', Buffer.from('5')]]),
    single('shop', 'codes', [['name', 'text', 'null']]),
    single('shop', 'codes', [['name', 'text', '']]),
    single('my-db.v1', '表', [['name', 'text', 'größe 表']]),
    single('shop', 'prices', [['amount', 'text', '1.50']]),
    single('shop', 'prices', [['ratio', 'double', 0.5]]),
    single('shop', 'prices', [['ratio', 'float', 0.1]]),
    single('shop', 'uuids', [['id', 'bytes', uuid]]),
    single('shop', 'orders', [['id', 'int', 5]], 'primary', [['tenant', 'int', 7]]),
    single(
      'shop',
      'log',
      [
        ['a', 'int', 1],
        ['b', 'text', 'x'],
        ['c', 'text', null],
      ],
      'row-hash',
    ),
  ];
  assert.equal(wanted.length, rows.length);
  for (const [index, { schema, values }] of rows.entries()) {
    const { key, partitionHash } = keyOf(schema, values, wanted[index]?.[3]?.includes('partitionBy') ? ['tenant'] : []);
    assert.deepEqual([hex(key), String(partitionHash)], wanted[index]?.slice(4, 6), wanted[index]?.[3]);
  }
  const ref = { database: 'shop', table: 'orders' };
  const control = Object.fromEntries(lines.filter((cells) => cells.length === 4).map((cells) => [cells[1], cells[2]]));
  assert.equal(hex(controlKey('heartbeat')), control['heartbeat']);
  assert.equal(hex(controlKey('fence')), control['fence']);
  for (const kind of ['truncate', 'ddl', 'sweep'] as const) {
    assert.equal(hex(controlKey(kind, ref)), control[`${kind} of shop.orders`]);
    assert.deepEqual(decodeKey(controlKey(kind, ref)), { kind, table: ref });
  }
  assert.deepEqual(decodeKey(controlKey('heartbeat')), { kind: 'heartbeat', table: null });
  assert.throws(() => controlKey('truncate'), { code: 'INTERNAL' });
  assert.throws(() => controlKey('fence', ref), { code: 'INTERNAL' });
});

test('the kind of a key without decoding it', () => {
  const ref = { database: 'd', table: 't' };
  for (const kind of ['truncate', 'ddl', 'sweep'] as const) assert.equal(keyKind(controlKey(kind, ref)), kind);
  for (const kind of ['heartbeat', 'fence'] as const) assert.equal(keyKind(controlKey(kind)), kind);
  const { schema, values } = single('d', 't', [['id', 'int', 1]]);
  assert.equal(keyKind(keyOf(schema, values).key), 'row');
  for (const foreign of ['', '01', '0106', '01ff', '0000', '7b22']) {
    assert.throws(() => keyKind(Buffer.from(foreign, 'hex')), { code: 'WIRE_KEY_INVALID' });
  }
});

test('FNV-1a and the finaliser give the published values', () => {
  // FNV reference page, "Test vectors" (32-bit FNV-1a).
  for (const [input, wanted] of [
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['foobar', 0xbf9cf968],
  ] as const) {
    assert.equal(hashBytes(HASH_SEED, Buffer.from(input), 0, input.length) >>> 0, wanted);
  }
  // MurmurHash3 x86_32 of nothing is the finaliser of the seed (vectors of its reference implementation).
  assert.deepEqual([0, 1, 0xffffffff].map(finishHash), [0, 0x514e28b7, 0x81f16f39]);
});

const rowsOfOneTable = table.chain((made) => fc.tuple(fc.constant(made), rowOf(made)));

test('a decoded key says what was put in', () => {
  fc.assert(
    fc.property(rowsOfOneTable, ([made, values]) => {
      const { schema, keyed } = made;
      const { key } = keyOf(schema, values);
      const decoded = decodeKey(key);
      assert.ok(decoded.kind === 'row');
      const { row } = decoded;
      assert.deepEqual([row.database, row.table], [schema.database, schema.table]);
      if (keyed.length === 0) {
        assert.deepEqual(row.columns, [ROW_HASH_COLUMN]);
        assert.equal((row.values[0] as Uint8Array).length, 16);
        return;
      }
      assert.deepEqual(
        row.columns,
        keyed.map((at) => schema.columns[at]?.name),
      );
      const wanted = keyed.map((at) => plain(values[at]));
      assert.deepStrictEqual(
        row.values,
        wanted.map((value) => (value === 0 ? 0 : value)),
      );
    }),
    { numRuns: 500 },
  );
});

/** What a key must tell apart: everything but the width and JavaScript type of integers and the sign of zero. */
function identity(cells: readonly Cell[]): string {
  return JSON.stringify(
    cells.map(([name, kind, value]) => {
      if (value instanceof Uint8Array) return [name, 'bytes', hex(value)];
      if (kind === 'int' || kind === 'uint') return [name, 'integer', String(value)];
      if (kind === 'text') return [name, 'text', value];
      return [name, 'real', String((value as number) + 0)];
    }),
  );
}

test('different names and values never share a key, equal ones always do', () => {
  // Few and similar: separators, digits, lengths as characters, so that collisions would be found.
  const tricky = fc.string({ unit: fc.constantFrom('\0', '\x01', '\x03', ':', 'a', '5'), maxLength: 4 });
  const cell: fc.Arbitrary<Cell> = fc.oneof(
    tricky.map((value): Cell => ['a', 'text', value]),
    tricky.map((value): Cell => ['a', 'bytes', Buffer.from(value)]),
    fc.integer({ min: -6, max: 55 }).map((value): Cell => ['a', 'int', value]),
    fc.nat({ max: 55 }).map((value): Cell => ['a', 'uint', BigInt(value)]),
    fc.nat({ max: 5 }).map((value): Cell => ['a', 'double', value]),
  );
  const cells = fc
    .tuple(fc.constantFrom('a', 'a\x03', 'aa'), fc.array(cell, { minLength: 1, maxLength: 3 }))
    .map(([prefix, list]) => list.map(([, kind, value], at): Cell => [`${prefix}${at}`, kind, value]));
  const owners = new Map<string, string>();
  const keys = new Map<string, string>();
  fc.assert(
    fc.property(fc.constantFrom('d', 'd\x01'), fc.constantFrom('t', 't\x03:'), cells, (database, name, row) => {
      const { schema, values } = single(database, name, row);
      const key = hex(keyOf(schema, values).key);
      const id = JSON.stringify([database, name, identity(row)]);
      assert.equal(owners.get(key) ?? id, id);
      assert.equal(keys.get(id) ?? key, key);
      owners.set(key, id);
      keys.set(id, key);
    }),
    { numRuns: 5000 },
  );
});

test('a key column keeps key and partition through other widths, and the partition through another name', () => {
  const of = (name: string, kind: ColumnKind, value: ColumnValue) => {
    const { schema, values } = single('d', 't', [[name, kind, value]]);
    return keyOf(schema, values);
  };
  for (const value of [0, 1, 127, 2 ** 31, 2 ** 53 - 1]) {
    const one = of('id', 'int', value);
    for (const other of [of('id', 'uint', value), of('id', 'int', BigInt(value)), of('id', 'uint', BigInt(value))]) {
      assert.deepEqual([hex(other.key), other.partitionHash], [hex(one.key), one.partitionHash]);
    }
    const renamed = of('pk', 'int', value);
    assert.notEqual(hex(renamed.key), hex(one.key));
    assert.equal(renamed.partitionHash, one.partitionHash);
  }
  assert.deepEqual(of('id', 'double', -0), of('id', 'double', 0));
  assert.deepEqual(of('id', 'float', 0.1), of('id', 'double', Math.fround(0.1)));
  assert.notEqual(hex(of('id', 'text', 'a').key), hex(of('id', 'text', 'A').key));
});

test('NULL in a row hash is not the text NULL, and absent is an error', () => {
  const of = (value: ColumnValue) => {
    const { schema, values } = single('d', 't', [['a', 'text', value]], 'row-hash');
    return hex(keyOf(schema, values).key);
  };
  assert.equal(new Set([of(null), of('null'), of('NULL'), of(''), of('\0')]).size, 5);
  assert.throws(() => of(undefined), { code: 'WIRE_KEY_INCOMPLETE' });
});

test('partitions are even for keys that differ in little', () => {
  for (const partitions of [2, 3, 4, 7, 12, 64]) {
    for (const form of [
      (i: number) => i,
      (i: number) => i * partitions,
      (i: number) => i * 256,
      (i: number) => 10 ** 9 - i,
    ]) {
      const { schema } = single('shop', 'orders', [['id', 'int', 0]]);
      const plan = compileTable({ schema });
      const counts = new Array<number>(partitions).fill(0);
      const rows = 1000 * partitions;
      for (let i = 0; i < rows; i++) {
        const change = { eventFile: '', eventOffset: 0, ordinal: 1, before: null, after: [form(i)] };
        const { partitionHash } = encoder.encode(plan, tx, { operation: 'read', ...change });
        const at = partitionOf(partitionHash, partitions);
        counts[at] = (counts[at] ?? 0) + 1;
      }
      // Binomial: a standard deviation is about 32 of 1000; five of them would be chance once in a million partitions.
      for (const count of counts)
        assert.ok(Math.abs(count - 1000) < 160, `${partitions} partitions: ${counts.join(' ')}`);
    }
  }
});

test('keys that nobody of us wrote are refused', () => {
  const bad: readonly [string, string][] = [
    ['', 'nothing'],
    ['02', 'another version'],
    ['01', 'no kind'],
    ['0106', 'an unknown kind'],
    ['010100', 'a heartbeat that goes on'],
    ['0103', 'a truncate without a table'],
    ['010301640174ff', 'a truncate that goes on'],
    ['010001640174', 'a row without columns'],
    ['01000164017401690135', 'an integer without its length'],
    ['010001640174016901023035', 'an integer with a leading zero'],
    ['010001640174016901022d30', 'minus zero'],
    ['010001640174016901022b35', 'a plus'],
    ['010001640174016901143138343436373434303733373039353531363136', 'an integer of more than 64 bits'],
    ['010001640174016901142d39323233333732303336383534373735383039', 'a negative integer of more than 64 bits'],
    ['01000164017401690907', 'an unknown type'],
    ['0100016401740169020800000000000000', 'a double cut off'],
    ['010001640174016902087ff8000000000000', 'not a number'],
    ['010001640174016902088000000000000000', 'minus zero'],
    ['01000164017401690301ff', 'text that is not UTF-8'],
    ['01000164017401698003', 'a length in too many bytes'],
    ['010001640174016903810061', 'a length in too many bytes'],
    ['0100016401740169047f', 'a length beyond the end'],
    ['010001640174000135', 'a column without a name'],
    ['01000164017400050100', 'a hash of one byte'],
    [`010001640174016900000510${'00'.repeat(16)}`, 'a hash beside a column'],
    ['0100016401740005100000000000000000000000000000000000', 'bytes behind a hash'],
  ];
  for (const [key, why] of bad) {
    assert.throws(() => decodeKey(Buffer.from(key, 'hex')), { code: 'WIRE_KEY_INVALID' }, why);
  }
});

test('whatever decodes is a key in its one form', () => {
  const damaged = fc
    .tuple(rowsOfOneTable, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 3 }))
    .map(([[made, values], edits]) => {
      const key = Uint8Array.from(keyOf(made.schema, values).key);
      for (const [at, byte] of edits) key[at % key.length] = byte;
      return key;
    });
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 40 })), (key) => {
      let decoded: ReturnType<typeof decodeKey>;
      try {
        decoded = decodeKey(key);
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'WIRE_KEY_INVALID');
        return;
      }
      if (decoded.kind !== 'row' || decoded.row.columns[0] === ROW_HASH_COLUMN) return;
      const { row } = decoded;
      if (new Set(row.columns).size !== row.columns.length) return;
      const cells = row.columns.map((name, at): Cell => [name, kindOf(row.values[at]), row.values[at]]);
      const { schema, values } = single(row.database, row.table, cells);
      // Reals without a fraction decode as integers do; their type byte tells them apart.
      if (values.some((value) => typeof value === 'number')) return;
      assert.equal(hex(keyOf(schema, values).key), hex(key));
    }),
    { numRuns: 3000 },
  );
});

function kindOf(value: ColumnValue): ColumnKind {
  if (typeof value === 'string') return 'text';
  if (typeof value === 'bigint') return value < 0n ? 'int' : 'uint';
  return value instanceof Uint8Array ? 'bytes' : 'double';
}

test('values that do not fit the key column are refused by name', () => {
  const wrong: readonly [ColumnKind, ColumnValue][] = [
    ['int', '5'],
    ['int', 1.5],
    ['int', 2 ** 53],
    ['int', 2n ** 63n],
    ['uint', -1],
    ['uint', -1n],
    ['uint', 2n ** 64n],
    ['double', Number.NaN],
    ['float', 1e300],
    ['double', 5n],
    ['text', 5],
    ['text', '\ud800'],
    ['text', Buffer.from('x')],
    ['bytes', 'x'],
  ];
  for (const [kind, value] of wrong) {
    const { schema, values } = single('shop', 'orders', [['id', kind, value]]);
    assert.throws(
      () => keyOf(schema, values),
      (error: { code?: string; message?: string; where?: unknown }) => {
        assert.equal(error.code, 'WIRE_VALUE_INVALID');
        assert.match(error.message ?? '', /column 'id'/);
        assert.deepEqual(error.where, { table: 'shop.orders', column: 'id' });
        return true;
      },
      `${kind} ${String(value)}`,
    );
  }
});

test('random values of every kind keep their identity in keys', () => {
  const pair = fc.oneof(
    fc.tuple(fc.constant<ColumnKind>('int'), int64, int64),
    fc.tuple(fc.constant<ColumnKind>('uint'), uint64, uint64),
    fc.tuple(fc.constant<ColumnKind>('text'), text, text),
    fc.tuple(fc.constant<ColumnKind>('bytes'), bytes, bytes),
    fc.tuple(fc.constant<ColumnKind>('double'), valueFor('double'), valueFor('double')),
  );
  fc.assert(
    fc.property(pair, ([kind, one, other]) => {
      const of = (value: ColumnValue) => {
        const { schema, values } = single('d', 't', [['k', kind, value]]);
        return hex(keyOf(schema, values).key);
      };
      assert.equal(of(one) === of(other), identity([['k', kind, one]]) === identity([['k', kind, other]]));
    }),
    { numRuns: 1000 },
  );
});
