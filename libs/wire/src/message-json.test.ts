import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Column, ColumnKind } from '@mysync/core';
import {
  compileTable,
  encodeControl,
  encodeTableMessage,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  messageToJson,
  payloadOf,
  RowEncoder,
  stampDelivery,
  toRecord,
} from './index.ts';

const column = (name: string, kind: ColumnKind, keyPosition = 0): Column => ({
  name,
  type: kind,
  kind,
  keyPosition,
  nullable: true,
  charset: '',
  members: [],
});
const schema = makeTableSchema({
  database: 'shop',
  table: 'orders',
  keyRule: 'primary',
  columns: [
    column('id', 'uint', 1),
    column('__proto__', 'int'),
    column('raw', 'bytes'),
    column('a', 'text'),
    column('b', 'text'),
  ],
});
const transaction = encodeTransaction({
  source: 'shop',
  serverUuid: 'uuid',
  id: { file: 'binlog.000004', offset: 1234, gtid: '0-1-7', ordinal: 0 },
  commitTimeMicros: 1_709_294_400_000_007,
});

function updated() {
  return new RowEncoder().encode(compileTable({ schema }), transaction, {
    operation: 'update',
    eventFile: '',
    eventOffset: 1500,
    ordinal: 2,
    before: [18446744073709551615n, null, new Uint8Array(0), undefined, ''],
    after: [18446744073709551615n, -5, Uint8Array.of(0, 255), 'é', undefined],
  });
}

test('a row message as JSON keeps every digit and byte', () => {
  const { payload } = updated();
  const numbers = { epoch: 3, generation: 1, base: 10, sequence: 11 };
  stampDelivery(payload, { ...numbers, transactionCounter: 2 ** 42, ordinal: 2 });
  const json = JSON.parse(JSON.stringify(messageToJson(new MessageDecoder().decode(payload))));
  assert.deepEqual(json.delivery, { ...numbers, version: '4611686018427387906', versionHex: '4000000000000002' });
  assert.deepEqual(json.source, {
    name: 'shop',
    serverUuid: 'uuid',
    gtid: '0-1-7',
    transaction: 'binlog.000004:1234',
    ordinal: 2,
    event: 'binlog.000004:1500',
    commitTime: '2024-03-01T12:00:00.000007Z',
    lastInTransaction: false,
  });
  assert.deepEqual(Object.entries(json.before), [
    ['id', '18446744073709551615'],
    ['__proto__', null],
    ['raw', { base64: '' }],
    ['b', ''],
  ]);
  assert.deepEqual(Object.entries(json.after), [
    ['id', '18446744073709551615'],
    ['__proto__', -5],
    ['raw', { base64: 'AP8=' }],
    ['a', 'é'],
  ]);
  assert.deepEqual([json.operation, json.database, json.table], ['update', 'shop', 'orders']);
});

test('the other messages as JSON', () => {
  const decoder = new MessageDecoder();
  const table = { database: 'd.x', table: 't' };
  const { payload } = encodeTableMessage({
    operation: 'truncate',
    transaction,
    ordinal: 1,
    table,
    statement: 'TRUNCATE t',
  });
  const json = messageToJson(decoder.decode(payload));
  assert.deepEqual(
    [json['operation'], json['database'], json['table'], json['statement']],
    ['truncate', 'd.x', 't', 'TRUNCATE t'],
  );
  const beat = messageToJson(
    decoder.decode(encodeControl({ operation: 'heartbeat', transaction, ordinal: 1 }).payload),
  );
  assert.deepEqual(Object.keys(beat), ['operation', 'delivery', 'source']);
});

test('a delete is a record with a null value that carries its message in a header', () => {
  const { key, payload } = updated();
  const kept = toRecord(key, payload, false);
  assert.deepEqual(kept, { key, value: payload, headers: [] });
  const gone = toRecord(key, payload, true);
  assert.deepEqual(gone, { key, value: null, headers: [{ name: 'mysync', value: payload }] });
  assert.equal(payloadOf(kept), payload);
  assert.equal(payloadOf(gone), payload);
  const other = { name: 'traceparent', value: Uint8Array.of(1) };
  assert.equal(payloadOf({ value: null, headers: [other, ...gone.headers] }), payload);
  assert.equal(payloadOf({ value: null, headers: [other] }), null);
});

test('a FLOAT reads as the shortest number of its 32 bits, a DOUBLE as it is', () => {
  const columns = [column('id', 'uint', 1), column('f', 'float'), column('d', 'double')];
  const floats = makeTableSchema({ database: 'shop', table: 'floats', keyRule: 'primary', columns });
  const change = { operation: 'insert', eventFile: '', eventOffset: 0, ordinal: 1, before: null } as const;
  const after = [1, Math.fround(0.1), 0.1 + 0.2];
  const { payload } = new RowEncoder().encode(compileTable({ schema: floats }), transaction, { ...change, after });
  const json = messageToJson(new MessageDecoder().decode(payload));
  assert.deepEqual(json['after'], { id: 1, f: 0.1, d: 0.30000000000000004 });
});
