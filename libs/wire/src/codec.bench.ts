/**
 * What the codec costs in CPU seconds, beside protobufjs reading and writing the same messages.
 * Run: `node libs/wire/dist/codec.bench.js [messages]`. Twelve mixed columns, about 250 bytes a row.
 */
import { fileURLToPath } from 'node:url';
import type { Column, ColumnKind, ColumnValue } from '@mysync/core';
import protobuf from 'protobufjs';
import {
  compileTable,
  type EncodedRow,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
  readNumbers,
  stampDelivery,
} from './index.ts';

const MESSAGES = Number(process.argv[2] ?? 300_000);
const POOL = 5000;

const column = (name: string, type: string, kind: ColumnKind, keyPosition = 0): Column => ({
  name,
  type,
  kind,
  keyPosition,
  nullable: keyPosition === 0,
  charset: kind === 'text' ? 'utf8mb4' : '',
  members: kind === 'text' && type.startsWith('enum') ? ['a', 'b', 'c'] : [],
});

const schema = makeTableSchema({
  database: 'bench',
  table: 'orders',
  keyRule: 'primary',
  columns: [
    column('id', 'bigint unsigned', 'uint', 1),
    column('sent_us', 'bigint', 'int'),
    column('tenant', 'int', 'int'),
    column('name', 'varchar(64)', 'text'),
    column('email', 'varchar(96)', 'text'),
    column('amount', 'decimal(12,2)', 'text'),
    column('ratio', 'double', 'double'),
    column('flag', 'tinyint', 'int'),
    column('kind', "enum('a','b','c')", 'text'),
    column('created', 'datetime(3)', 'text'),
    column('note', 'text', 'text'),
    column('raw', 'varbinary(32)', 'bytes'),
  ],
});
const plan = compileTable({ schema });
const transaction = encodeTransaction({
  source: 'shop',
  serverUuid: '3f1c2a44-9d1b-11ee-8c90-0242ac120002',
  id: { file: 'binlog.000042', offset: 1234567, gtid: '3f1c2a44-9d1b-11ee-8c90-0242ac120002:123456', ordinal: 0 },
  commitTimeMicros: 1_700_000_000_123_456,
});

function row(i: number): ColumnValue[] {
  const note = `note ${i} ${'the quick brown fox jumps over the lazy dog '.repeat(2)}${i % 8 === 0 ? 'größer als 表' : ''}`;
  return [
    1_000_000 + i,
    1_700_000_000_000_000 + i * 977,
    i % 1000,
    i % 16 === 0 ? `Łukasz Ørsted ${i}` : `Customer Name ${i}`,
    `customer.${i}@mail.example.com`,
    `${i}.${String(i % 100).padStart(2, '0')}`,
    i / 7,
    i % 2,
    ['a', 'b', 'c'][i % 3],
    `2024-03-${String((i % 28) + 1).padStart(2, '0')} 12:34:56.789`,
    i % 10 === 0 ? null : note,
    Buffer.alloc(32, i & 255),
  ];
}

const rows = Array.from({ length: POOL }, (_, i) => row(i));

function measure(name: string, bytes: number, work: (count: number) => void): void {
  work(POOL * 4);
  globalThis.gc?.();
  const before = process.cpuUsage();
  const started = performance.now();
  work(MESSAGES);
  const wall = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(before);
  const cpu = (user + system) / 1e6;
  const rate = Math.round(MESSAGES / cpu / 1000);
  process.stdout.write(
    `${name.padEnd(28)} ${cpu.toFixed(2)} CPU s  ${wall.toFixed(2)} s  ${rate}k/CPU s  ${bytes} bytes/message\n`,
  );
}

const encoder = new RowEncoder();
function encode(i: number, out: EncodedRow[]): void {
  encoder.rowChange(
    plan,
    transaction,
    {
      operation: 'insert',
      eventFile: '',
      eventOffset: 1_300_000,
      ordinal: i + 1,
      before: null,
      after: rows[i % POOL] as ColumnValue[],
    },
    out,
  );
}

const encoded: EncodedRow[] = [];
for (let i = 0; i < POOL; i++) encode(i, encoded);
const payloads = encoded.map((record) => record.payload);
const size = Math.round(payloads.reduce((sum, payload) => sum + payload.length, 0) / POOL);

measure('encode (key, hash, payload)', size, (count) => {
  let out: EncodedRow[] = [];
  for (let i = 0; i < count; i++) {
    encode(i, out);
    if (out.length === 500) out = [];
  }
});

measure('encode update, same key', size, (count) => {
  let out: EncodedRow[] = [];
  for (let i = 0; i < count; i++) {
    const image = rows[i % POOL] as ColumnValue[];
    encoder.rowChange(
      plan,
      transaction,
      { operation: 'update', eventFile: '', eventOffset: 1_300_000, ordinal: i + 1, before: image, after: image },
      out,
    );
    if (out.length === 500) out = [];
  }
});

measure('stamp', size, (count) => {
  for (let i = 0; i < count; i++) {
    const payload = payloads[i % POOL] as Uint8Array;
    stampDelivery(payload, { epoch: 1, generation: 0, base: 1, sequence: i, transactionCounter: i, ordinal: 1 });
  }
});

measure('peek numbers', size, (count) => {
  const numbers = { epoch: 0, generation: 0, base: 0, sequence: 0 };
  for (let i = 0; i < count; i++) readNumbers(payloads[i % POOL] as Uint8Array, numbers);
});

measure('decode', size, (count) => {
  const decoder = new MessageDecoder();
  for (let i = 0; i < count; i++) decoder.decode(payloads[i % POOL] as Uint8Array);
});

const file = fileURLToPath(new URL('../../../proto/mysync/v1/message.proto', import.meta.url));
const type = protobuf.loadSync(file).lookupType('mysync.v1.BaseMessage');
const decoded = payloads.map((payload) => type.decode(payload));

measure('protobufjs encode', size, (count) => {
  for (let i = 0; i < count; i++) type.encode(decoded[i % POOL] as protobuf.Message).finish();
});

measure('protobufjs decode', size, (count) => {
  for (let i = 0; i < count; i++) type.decode(payloads[i % POOL] as Uint8Array);
});

// As ours is used: fresh values in, plain values out.
measure('protobufjs rows to bytes', size, (count) => {
  for (let i = 0; i < count; i++) {
    const values = (rows[i % POOL] as ColumnValue[]).map((value, at) => {
      if (value === null) return { null: true };
      return { [schema.columns[at]?.kind ?? 'text']: typeof value === 'number' && at < 3 ? String(value) : value };
    });
    const base = decoded[i % POOL] as unknown as Record<string, unknown>;
    type.encode(type.fromObject({ ...base, after: { values } })).finish();
  }
});
