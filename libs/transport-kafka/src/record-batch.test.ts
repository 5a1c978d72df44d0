/** Our batches read by kafkajs's decoder, and kafkajs's batches read by ours: neither side is held against itself. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import type { IncomingRecord, OutgoingRecord } from '@mysync/transport';
import fc from 'fast-check';
import { BatchReader, wholeBatches } from './protocol/record-batch-decode.ts';
import { ProduceEncoder } from './protocol/record-batch-encode.ts';

interface KafkajsRecord {
  offset: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: Record<string, Buffer | Buffer[]>;
}

const require = createRequire(import.meta.url);
const KafkajsDecoder = require('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => object;
const decodeByKafkajs = require('kafkajs/src/protocol/recordBatch/v0/decoder') as (
  decoder: object,
) => Promise<{ producerId: string; producerEpoch: number; firstSequence: number; records: KafkajsRecord[] }>;
const kafkajsRecord = require('kafkajs/src/protocol/recordBatch/record/v0') as (fields: object) => object;
const { RecordBatch: kafkajsBatch } = require('kafkajs/src/protocol/recordBatch/v0') as {
  RecordBatch: (fields: object) => Promise<{ buffer: Buffer }>;
};
const Long = require('kafkajs/src/utils/long') as { fromValue(value: number | string): object };

const PLACE = { topic: 't', partition: 3 };
const NUMBERS = { producerId: 2n ** 40n + 5n, producerEpoch: 12, firstSequence: 2 ** 31 - 3 };

function batchOf(records: readonly OutgoingRecord[], compression: 'none' | 'gzip' = 'none'): Buffer {
  const encoder = new ProduceEncoder({ clientId: 'c', topic: 't', timeoutMs: 1000, compression });
  const buffer = Buffer.alloc(encoder.room(records));
  const length = encoder.encode(buffer, 3, records, NUMBERS, 1_700_000_000_000);
  assert.equal(buffer.readInt32BE(0), length - 4, 'the frame says its size');
  return buffer.subarray(length - encoder.batchBytes(length), length);
}

function readBack(bytes: Buffer, from = 0, maxBytes = 2 ** 20): IncomingRecord[] {
  const reader = new BatchReader(bytes, from, PLACE);
  const records: IncomingRecord[] = [];
  for (let next = reader.next(maxBytes); next !== null; next = reader.next(maxBytes)) records.push(...next.records);
  return records;
}

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.uint8Array({ minLength: 60, maxLength: 70 }),
  fc.constant(new Uint8Array(8191)),
  fc.constant(new Uint8Array(8193).fill(7)),
);
// kafkajs keeps headers in a plain object, where names such as `toString` or `1` have a life of their own.
const headerName = fc.string({ maxLength: 12, unit: 'grapheme' }).map((name) => `h${name}`);
const outgoing: fc.Arbitrary<OutgoingRecord> = fc.record({
  key: bytes,
  value: fc.option(bytes),
  headers: fc.uniqueArray(fc.record({ name: headerName, value: bytes }), {
    maxLength: 3,
    selector: ({ name }) => name,
  }),
});

test('kafkajs reads our batches as they were given', async () => {
  const property = fc.asyncProperty(fc.array(outgoing, { minLength: 1, maxLength: 80 }), async (records) => {
    for (const compression of ['none', 'gzip'] as const) {
      const read = await decodeByKafkajs(new KafkajsDecoder(batchOf(records, compression)));
      assert.equal(read.producerId, `${NUMBERS.producerId}`);
      assert.equal(read.producerEpoch, NUMBERS.producerEpoch);
      assert.equal(read.firstSequence, NUMBERS.firstSequence);
      assert.equal(read.records.length, records.length);
      read.records.forEach((got, index) => {
        const want = records[index]!;
        assert.equal(got.offset, `${index}`);
        assert.deepEqual(Buffer.from(got.key ?? []), Buffer.from(want.key));
        assert.deepEqual(got.value === null, want.value === null);
        assert.deepEqual(Buffer.from(got.value ?? []), Buffer.from(want.value ?? []));
        assert.deepEqual(
          Object.entries(got.headers).map(([name, value]) => [name, Buffer.from(value as Buffer)]),
          Object.entries(Object.fromEntries(want.headers.map(({ name, value }) => [name, Buffer.from(value)]))),
        );
      });
    }
  });
  await fc.assert(property, { numRuns: 60 });
});

test('we read batches of kafkajs as they were given, from any offset, in pieces of any size', async () => {
  const property = fc.asyncProperty(
    fc.array(outgoing, { minLength: 1, maxLength: 40 }),
    fc.nat(60),
    fc.integer({ min: 1, max: 10_000 }),
    fc.boolean(),
    async (records, from, maxBytes, gzip) => {
      const batches: Buffer[] = [];
      for (const base of [10, 10 + records.length + 5]) {
        const encoded = await kafkajsBatch({
          compression: gzip ? 1 : 0,
          firstOffset: Long.fromValue(base),
          lastOffsetDelta: records.length - 1,
          records: records.map(({ key, value, headers }, index) =>
            kafkajsRecord({
              offsetDelta: index,
              timestampDelta: index * 1_000_000,
              key: Buffer.from(key),
              value: value === null ? null : Buffer.from(value),
              headers: Object.fromEntries(headers.map((header) => [header.name, Buffer.from(header.value)])),
            }),
          ),
        });
        batches.push(encoded.buffer);
      }
      const all = Buffer.concat(batches);
      const cut = Buffer.concat([all, all.subarray(0, Math.min(all.length - 1, from))]);
      assert.deepEqual(wholeBatches(cut), { length: all.length, nextOffset: 10 + 2 * records.length + 5 });
      const want = [10, 10 + records.length + 5].flatMap((base) =>
        records.map((each, index) => ({ offset: base + index, each })),
      );
      const expected = want.filter(({ offset }) => offset >= from);
      const got = readBack(all, from, maxBytes);
      assert.deepEqual(
        got.map(({ offset, key, value }) => [offset, Buffer.from(key), value === null ? null : Buffer.from(value)]),
        expected.map(({ offset, each }) => [
          offset,
          Buffer.from(each.key),
          each.value === null ? null : Buffer.from(each.value),
        ]),
      );
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('a piece holds about maxBytes, and at least one record', () => {
  const records = Array.from({ length: 10 }, (_, index) => ({
    key: Buffer.of(index),
    value: Buffer.alloc(1000),
    headers: [],
  }));
  const reader = new BatchReader(batchOf(records), 0, PLACE);
  const first = reader.next(1);
  assert.equal(first?.records.length, 1);
  assert.equal(first?.nextOffset, 1);
  assert.equal(reader.next(3500)?.records.length, 4);
  const rest = reader.next(10 ** 6);
  assert.equal(rest?.records.length, 5);
  assert.equal(rest?.nextOffset, 10);
  assert.equal(reader.next(10 ** 6), null);
});

test('one flipped bit anywhere behind the checksum is found', () => {
  const batch = batchOf([{ key: Buffer.from('key'), value: Buffer.from('value'), headers: [] }]);
  for (let at = 21; at < batch.length; at++) {
    const broken = Buffer.from(batch);
    broken[at] = (broken[at] as number) ^ 0x10;
    assert.throws(
      () => readBack(broken),
      (error) => isMysyncError(error, 'KAFKA_RECORD_CORRUPT'),
      `byte ${at}`,
    );
  }
});

test('a codec that we do not read is named', async () => {
  const { crc32c } = await import('@node-rs/crc32');
  for (const [codec, name] of [
    [2, 'snappy'],
    [3, 'lz4'],
    [4, 'zstd'],
  ] as const) {
    const batch = Buffer.from(batchOf([{ key: Buffer.from('k'), value: null, headers: [] }]));
    batch.writeInt16BE(codec, 21);
    batch.writeUInt32BE(crc32c(batch.subarray(21)), 17);
    assert.throws(
      () => readBack(batch),
      (error: unknown) => isMysyncError(error, 'KAFKA_CODEC_UNSUPPORTED') && error.message.includes(name),
    );
  }
});

test('control batches are passed over, and the offset goes on', async () => {
  const { crc32c } = await import('@node-rs/crc32');
  const batch = Buffer.from(batchOf([{ key: Buffer.from('k'), value: null, headers: [] }]));
  batch.writeInt16BE(0x30, 21);
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17);
  const reader = new BatchReader(batch, 0, PLACE);
  assert.deepEqual(reader.next(1000), { records: [], nextOffset: 1, bytes: 0 });
});
