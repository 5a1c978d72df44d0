import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Column, KeyRule } from '@mysync/core';
import fc from 'fast-check';
import { table } from './arbitraries.fixture.ts';
import {
  compileTable,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
  schemaFingerprint,
} from './index.ts';
import { TableSchemaType } from './protobufjs-codec.fixture.ts';
import { fingerprintOf } from './table-schema.ts';

const id: Column = { name: 'id', type: 'int', kind: 'int', keyPosition: 1, nullable: false, charset: '', members: [] };
const a: Column = {
  name: 'a',
  type: "enum('x','')",
  kind: 'text',
  keyPosition: 0,
  nullable: true,
  charset: 'latin1',
  members: ['x', ''],
};
const base = { database: 'd', table: 't', columns: [id, a], keyRule: 'primary' as KeyRule };

test('the fingerprint is the hash of the bytes behind it, as protobufjs cuts them', () => {
  fc.assert(
    fc.property(table, ({ schema }) => {
      const { block } = compileTable({ schema });
      const length = TableSchemaType.decode(
        block.subarray(1 + (block.length > 16_387 ? 3 : block.length > 129 ? 2 : 1)),
      );
      const { fingerprint } = length as unknown as { fingerprint: { toString(): string } };
      assert.equal(BigInt(`0x${schema.fingerprint}`), BigInt(fingerprint.toString()) & (2n ** 64n - 1n));
    }),
  );
  assert.match(schemaFingerprint(base), /^[0-9a-f]{16}$/);
});

test('everything in a schema is in its fingerprint', () => {
  const variants = [
    base,
    { ...base, database: 'e' },
    { ...base, table: 'u' },
    { ...base, keyRule: 'unique' as KeyRule },
    { ...base, columns: [id] },
    { ...base, columns: [a, id] },
    ...[
      { name: 'b' },
      { type: 'text' },
      { kind: 'bytes' as const },
      { keyPosition: 2 },
      { nullable: false },
      { charset: 'utf8mb4' },
      { members: ['x'] },
      { members: ['', 'x'] },
      { members: ['x', '', ''] },
    ].map((change) => ({ ...base, columns: [id, { ...a, ...change }] })),
  ];
  assert.equal(new Set(variants.map(schemaFingerprint)).size, variants.length);
  assert.equal(makeTableSchema(base).fingerprint, makeTableSchema(structuredClone(base)).fingerprint);
});

test('a schema that contradicts itself is refused with its table', () => {
  const bad: [string, Parameters<typeof makeTableSchema>[0]][] = [
    ['no columns', { ...base, columns: [] }],
    ['a column without a name', { ...base, columns: [id, { ...a, name: '' }] }],
    ['two columns of one name', { ...base, columns: [id, { ...a, name: 'id' }] }],
    ['a gap in the key', { ...base, columns: [id, { ...a, keyPosition: 3 }] }],
    ['a key position twice', { ...base, columns: [id, { ...a, keyPosition: 1 }] }],
    ['a key rule without key columns', { ...base, columns: [a] }],
    ['a row hash with key columns', { ...base, keyRule: 'row-hash' }],
    ['an unknown kind', { ...base, columns: [id, { ...a, kind: 'date' as 'text' }] }],
    ['an unknown key rule', { ...base, keyRule: 'none' as 'primary' }],
    ['a name that is not Unicode', { ...base, table: '\ud800' }],
  ];
  for (const [why, options] of bad) {
    assert.throws(
      () => makeTableSchema(options),
      { code: 'WIRE_SCHEMA_INVALID', where: { table: `d.${options.table}` } },
      why,
    );
  }
  const schema = makeTableSchema(base);
  assert.throws(() => compileTable({ schema: { ...schema, fingerprint: '0000000000000000' } }), {
    code: 'WIRE_SCHEMA_INVALID',
  });
  assert.throws(() => compileTable({ schema, partitionBy: ['region'] }), { code: 'WIRE_SCHEMA_INVALID' });
});

test('the hash is the first eight bytes of SHA-256', () => {
  // FIPS 180-2, appendix B.1: "abc".
  assert.equal(fingerprintOf(Buffer.from('abc')), 'ba7816bf8f01cfea');
});

test('two schemas whose fingerprints share their low half are not mixed up', () => {
  // Found by trying names.
  const pair = ['t32024', 't33506'].map((name) => makeTableSchema({ ...base, table: name, columns: [{ ...id }] }));
  assert.equal(pair[0]?.fingerprint.slice(8), pair[1]?.fingerprint.slice(8));
  assert.notEqual(pair[0]?.fingerprint, pair[1]?.fingerprint);
  const decoder = new MessageDecoder();
  const encoder = new RowEncoder();
  const transaction = encodeTransaction({
    source: 's',
    serverUuid: '',
    id: { file: '', offset: 0, gtid: '', ordinal: 0 },
    commitTimeMicros: 0,
  });
  const change = { operation: 'insert', eventFile: '', eventOffset: 0, ordinal: 1, before: null, after: [1] } as const;
  const other = makeTableSchema(base);
  for (const schema of [...pair, ...pair, other, ...pair, other, ...pair.toReversed()]) {
    const after = schema === other ? [1, null] : [1];
    const { payload } = encoder.encode(compileTable({ schema }), transaction, { ...change, after });
    const message = decoder.decode(payload);
    assert.ok('schema' in message);
    assert.deepStrictEqual(message.schema, schema);
  }
});
