import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Column, ColumnKind, ColumnValue } from '@mysync/core';
import fc from 'fast-check';
import {
  compileTable,
  decodeKey,
  type EncodedRow,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
  type RowMessage,
  type RowOperation,
  type RowValues,
  type TablePlan,
} from './index.ts';
import { toPlain } from './protobufjs-codec.fixture.ts';

const tx = encodeTransaction({
  source: 's',
  serverUuid: 'u',
  id: { file: 'b.1', offset: 4, gtid: '', ordinal: 0 },
  commitTimeMicros: 1,
});
const decoder = new MessageDecoder();

const column = (name: string, kind: ColumnKind, keyPosition = 0): Column => ({
  name,
  type: kind,
  kind,
  keyPosition,
  nullable: keyPosition === 0,
  charset: '',
  members: [],
});

function planOf(columns: readonly Column[], partitionBy: readonly string[] = []): TablePlan {
  const keyRule = columns.some((one) => one.keyPosition > 0) ? 'primary' : 'row-hash';
  const schema = makeTableSchema({ database: 'shop', table: 'orders', columns, keyRule });
  return compileTable({ schema, partitionBy });
}

function run(
  plan: TablePlan,
  operation: RowOperation,
  before: RowValues | null,
  after: RowValues | null,
  encoder = new RowEncoder(),
): EncodedRow[] {
  const out: EncodedRow[] = [];
  const used = encoder.rowChange(
    plan,
    tx,
    { operation, eventFile: '', eventOffset: 9, ordinal: 5, before, after },
    out,
  );
  assert.equal(used, out.length);
  return out;
}

function read(record: EncodedRow | undefined): RowMessage {
  assert.ok(record);
  const message = decoder.decode(record.payload);
  assert.ok('schema' in message);
  return message;
}

const keyValues = (record: EncodedRow | undefined): readonly ColumnValue[] => {
  assert.ok(record);
  const key = decodeKey(record.key);
  assert.ok(key.kind === 'row');
  return key.row.values;
};

const people = planOf([column('id', 'int', 1), column('name', 'text'), column('region', 'text')]);

test('an update that changes the key becomes a delete of the old and an insert of the new', () => {
  const [gone, come] = run(people, 'update', [1, 'a', 'eu'], [2, 'b', 'eu']);
  assert.deepEqual([gone?.deletes, come?.deletes], [true, false]);
  assert.deepEqual([gone?.ordinal, come?.ordinal], [5, 6]);
  assert.deepEqual([keyValues(gone), keyValues(come)], [[1], [2]]);
  const [one, two] = [read(gone), read(come)];
  assert.deepEqual([one.operation, one.before, one.after], ['delete', [1, 'a', 'eu'], null]);
  assert.deepEqual([two.operation, two.before, two.after], ['insert', null, [2, 'b', 'eu']]);
  assert.deepEqual([one.source.change.ordinal, two.source.change.ordinal], [5, 6]);
});

test('an update that keeps the key stays one record, whatever JavaScript type says the key', () => {
  for (const [before, after] of [
    [1, 1],
    [1, 1n],
    [1n, 1],
    [2n ** 63n - 1n, 2n ** 63n - 1n],
  ] as const) {
    const records = run(people, 'update', [before, 'a', 'eu'], [after, 'b', 'us']);
    assert.deepEqual(
      records.map((record) => record.deletes),
      [false],
    );
    const message = read(records[0]);
    assert.deepEqual([message.before?.[1], message.after?.[1]], ['a', 'b']);
  }
  const binary = planOf([column('id', 'bytes', 1)]);
  assert.equal(run(binary, 'update', [Buffer.from('x')], [Uint8Array.of(120)]).length, 1);
  assert.equal(run(binary, 'update', [Buffer.from('x')], [Buffer.from('y')]).length, 2);
  const real = planOf([column('id', 'float', 1)]);
  assert.equal(run(real, 'update', [0.1], [Math.fround(0.1)]).length, 1);
  assert.equal(run(real, 'update', [0], [-0]).length, 1);
});

test('letters that differ in case only are another key', () => {
  const plan = planOf([column('name', 'text', 1)]);
  const [gone, come] = run(plan, 'update', ['a'], ['A']);
  assert.deepEqual([keyValues(gone), keyValues(come)], [['a'], ['A']]);
});

test('a change of a partition column moves the row to another key, also within its partition', () => {
  const plan = planOf([column('id', 'int', 1), column('name', 'text'), column('region', 'text')], ['region']);
  const [gone, come] = run(plan, 'update', [1, 'a', 'eu'], [1, 'a', 'us']);
  assert.deepEqual([gone?.deletes, come?.deletes], [true, false]);
  // one key for both would let a log, and a batch, forget the deletion for the insert
  assert.deepEqual(
    [keyValues(gone), keyValues(come)],
    [
      [1, 'eu'],
      [1, 'us'],
    ],
  );
  assert.notEqual(gone?.partitionHash, come?.partitionHash);
  assert.equal(run(plan, 'update', [1, 'a', 'eu'], [1, 'b', 'eu']).length, 1);
  assert.equal(run(plan, 'update', [1, 'a', null], [1, 'b', null]).length, 1);
  assert.equal(run(plan, 'update', [1, 'a', null], [1, 'b', 'null']).length, 2);
  const inserted = run(plan, 'insert', null, [1, 'a', 'eu'])[0];
  assert.equal(inserted?.partitionHash, gone?.partitionHash);
  const deleted = run(plan, 'delete', [1, 'a', 'us'], null)[0];
  assert.equal(deleted?.partitionHash, come?.partitionHash);
});

test('a row without a key moves with every change, and stays when nothing changed', () => {
  const plan = planOf([column('a', 'int'), column('b', 'text')]);
  assert.equal(run(plan, 'update', [1, 'x'], [1, 'y']).length, 2);
  assert.equal(run(plan, 'update', [1, null], [1n, null]).length, 1);
  assert.equal(run(plan, 'update', [1, null], [1, 'NULL']).length, 2);
});

test('a column that is absent after an update is unchanged', () => {
  const [record, ...more] = run(people, 'update', [1, 'a', 'eu'], [undefined, 'b', undefined]);
  assert.equal(more.length, 0);
  assert.deepEqual(keyValues(record), [1]);
  assert.deepEqual(read(record).after, [undefined, 'b', undefined]);
  const [gone, come] = run(people, 'update', [1, 'a', undefined], [2, undefined, undefined]);
  assert.deepEqual(
    [read(gone).before, read(come).after],
    [
      [1, 'a', undefined],
      [2, 'a', undefined],
    ],
  );
  for (const [before, after] of [
    [
      [undefined, 'a', 'eu'],
      [1, 'a', 'eu'],
    ],
    [
      [undefined, 'a', 'eu'],
      [undefined, 'b', 'eu'],
    ],
  ] as const) {
    assert.throws(() => run(people, 'update', before, after), { code: 'WIRE_KEY_INCOMPLETE' });
  }
  assert.throws(() => run(people, 'insert', null, [undefined, 'a', 'eu']), { code: 'WIRE_KEY_INCOMPLETE' });
  assert.throws(() => run(people, 'delete', [undefined, 'a', 'eu'], null), { code: 'WIRE_KEY_INCOMPLETE' });
});

test('NULL, absent, the empty text and the text NULL stay apart', () => {
  const plan = planOf([column('id', 'int', 1), column('a', 'text'), column('b', 'bytes')]);
  for (const [a, b] of [
    [null, null],
    [undefined, undefined],
    ['', new Uint8Array(0)],
    ['NULL', Buffer.from('NULL')],
  ] as const) {
    const [record] = run(plan, 'insert', null, [1, a, b]);
    const message = read(record);
    const bytes = message.after?.[2];
    assert.deepStrictEqual(message.after?.[1], a);
    assert.deepStrictEqual(bytes instanceof Uint8Array ? Uint8Array.from(bytes) : bytes, b && Uint8Array.from(b));
  }
});

test('every 64-bit integer is read by protobufjs with the digits that were put in', () => {
  const plan = planOf([column('id', 'uint', 1), column('a', 'int')]);
  const around = (n: bigint) => [n - 1n, n, n + 1n];
  const powers = Array.from({ length: 64 }, (_, bit) => around(2n ** BigInt(bit))).flat();
  const signed = [...powers, ...powers.map((n) => -n)].filter((n) => n >= -(2n ** 63n) && n < 2n ** 63n);
  for (const exact of new Set([...powers, 2n ** 64n - 1n, ...signed])) {
    const id = exact < 0n ? 0n : exact;
    const a = exact >= 2n ** 63n ? 0n : exact;
    const forms = Number.isSafeInteger(Number(exact)) ? [(n: bigint) => n, Number] : [(n: bigint) => n];
    for (const form of forms) {
      const [record] = run(plan, 'insert', null, [form(id), form(a)]);
      assert.ok(record);
      const row = toPlain(record.payload)['after'] as { values: { uint?: string; int?: string }[] };
      assert.deepEqual([row.values[0]?.uint, row.values[1]?.int], [String(id), String(a)]);
      const { after } = read(record);
      assert.deepEqual(after?.map(String), [String(id), String(a)]);
      assert.equal(typeof after?.[0], Number.isSafeInteger(Number(id)) ? 'number' : 'bigint');
      assert.equal(typeof after?.[1], Number.isSafeInteger(Number(a)) ? 'number' : 'bigint');
    }
  }
});

test('a value of another type or out of range is refused with its column and table, never changed', () => {
  const wrong: readonly [ColumnKind, unknown][] = [
    ['int', '5'],
    ['int', true],
    ['int', 0.5],
    ['int', Number.NaN],
    ['int', Number.POSITIVE_INFINITY],
    ['int', 2 ** 53],
    ['int', 2n ** 63n],
    ['int', -(2n ** 63n) - 1n],
    ['uint', -1],
    ['uint', -1n],
    ['uint', 2n ** 64n],
    ['uint', 2 ** 53],
    ['uint', 0.5],
    ['uint', new Date(0)],
    ['float', 1n],
    ['float', '1'],
    ['float', 1e300],
    ['float', Number.NaN],
    ['double', Number.POSITIVE_INFINITY],
    ['double', 1n],
    ['double', Buffer.from('1')],
    ['text', 1],
    ['text', 1n],
    ['text', Buffer.from('x')],
    ['text', { toString: () => 'x' }],
    ['text', '\ud800'],
    ['text', `${'a'.repeat(100)}\udfff`],
    ['bytes', 'x'],
    ['bytes', 1],
    ['bytes', [1, 2]],
    ['bytes', new ArrayBuffer(2)],
  ];
  const encoder = new RowEncoder();
  for (const [kind, value] of wrong) {
    const plan = planOf([column('id', 'int', 1), column('bad', kind)]);
    assert.throws(
      () => run(plan, 'insert', null, [1, value as ColumnValue], encoder),
      (error: { code?: string; message?: string; where?: unknown }) => {
        assert.equal(error.code, 'WIRE_VALUE_INVALID');
        assert.match(error.message ?? '', /column 'bad'/);
        assert.deepEqual(error.where, { table: 'shop.orders', column: 'bad' });
        return true;
      },
      `${kind} ${String(value)}`,
    );
    // The encoder is clean afterwards.
    const [next] = run(people, 'insert', null, [7, 'ok', ''], encoder);
    assert.deepEqual(read(next).after, [7, 'ok', '']);
    assert.deepEqual(keyValues(next), [7]);
  }
  assert.throws(() => run(people, 'insert', null, [1, 'a']), { code: 'WIRE_VALUE_INVALID' });
  assert.throws(() => run(people, 'insert', null, [1, 'a', 'b', 'c']), { code: 'WIRE_VALUE_INVALID' });
  assert.throws(() => run(people, 'insert', [1, 'a', 'b'], [1, 'a', 'b']), { code: 'INTERNAL' });
  assert.throws(() => run(people, 'delete', null, null), { code: 'INTERNAL' });
  assert.throws(() => run(people, 'update', null, [1, 'a', 'b']), { code: 'INTERNAL' });
});

test('an update that fails in its second half leaves nothing in the output', () => {
  const out: EncodedRow[] = [];
  const change = { operation: 'update', eventFile: '', eventOffset: 9, ordinal: 5 } as const;
  const images = { before: [1, 'a', 'eu'], after: [2, 5 as unknown as string, 'eu'] };
  assert.throws(() => new RowEncoder().rowChange(people, tx, { ...change, ...images }, out), {
    code: 'WIRE_VALUE_INVALID',
  });
  assert.equal(out.length, 0);
});

test('records stay as they were, however many are encoded after them', () => {
  const plan = planOf([column('id', 'int', 1), column('note', 'text'), column('raw', 'bytes')]);
  const sizes = fc.constantFrom(0, 1, 39, 40, 41, 42, 100, 127, 128, 5000, 16_383, 16_384, 40_000, 66_000, 300_000);
  fc.assert(
    fc.property(fc.array(fc.tuple(sizes, sizes, fc.constantFrom('a', 'é', '表', '😀')), { maxLength: 25 }), (rows) => {
      const encoder = new RowEncoder();
      const out: EncodedRow[] = [];
      const copies: [Buffer, Buffer][] = [];
      for (const [id, [length, raw, letter]] of rows.entries()) {
        const after = [id, letter.repeat(length), Buffer.alloc(raw, id)];
        encoder.rowChange(
          plan,
          tx,
          { operation: 'insert', eventFile: '', eventOffset: 1, ordinal: id, before: null, after },
          out,
        );
        const record = out.at(-1);
        assert.ok(record);
        copies.push([Buffer.from(record.key), Buffer.from(record.payload)]);
      }
      for (const [id, record] of out.entries()) {
        const [length, raw, letter] = rows[id] ?? [0, 0, ''];
        assert.ok(copies[id]?.[0].equals(record.key) && copies[id][1].equals(record.payload));
        const message = read(record);
        assert.deepEqual(keyValues(record), [id]);
        assert.ok(message.after?.[1] === letter.repeat(length));
        assert.ok(Buffer.alloc(raw, id).equals(message.after?.[2] as Uint8Array));
      }
    }),
    { numRuns: 60 },
  );
});
