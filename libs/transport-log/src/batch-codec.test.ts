import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutgoingRecord } from '@mysync/transport';
import fc from 'fast-check';
import {
  BATCH_HEADER_BYTES,
  bodyIsIntact,
  encodeBody,
  encodedBytes,
  joinBatches,
  readBatchHeader,
  recordDelta,
  recordLength,
  StoredRecord,
  stampBatch,
} from './batch-codec.ts';

const bytes = fc.uint8Array({ maxLength: 40 });
const header = fc.record({ name: fc.string({ maxLength: 8, unit: 'grapheme' }), value: bytes });
const record: fc.Arbitrary<OutgoingRecord> = fc.record({
  key: bytes,
  value: fc.option(bytes, { nil: null }),
  headers: fc.array(header, { maxLength: 3 }),
});
const batch = fc.array(record, { minLength: 1, maxLength: 20 });
const offset = fc.integer({ min: 0, max: 2 ** 52 });

function encode(records: readonly OutgoingRecord[], base: number, appendedMs = 1): Buffer {
  const target = Buffer.alloc(encodedBytes(records));
  encodeBody(target, records);
  stampBatch(target, base, appendedMs);
  return target;
}

function decode(source: Buffer, at = 0, length = source.length) {
  const header = readBatchHeader(source, at, length);
  assert.ok(header !== null && bodyIsIntact(source, at, length));
  const records: StoredRecord[] = [];
  const places: number[] = [];
  let place = at + BATCH_HEADER_BYTES;
  for (let left = header.count; left > 0; left--) {
    records.push(new StoredRecord(source, place, header.baseOffset + recordDelta(source, place)));
    places.push(place);
    place += recordLength(source, place);
  }
  assert.equal(place, at + length);
  return { header, records, places };
}

function plain({ key, value, headers }: OutgoingRecord) {
  return {
    key: Buffer.from(key),
    value: value === null ? null : Buffer.from(value),
    headers: headers.map((each) => [each.name, Buffer.from(each.value)]),
  };
}

test('a batch comes back as it was written, at any place of a buffer', () => {
  fc.assert(
    fc.property(batch, offset, fc.nat(50), (records, base, shift) => {
      const encoded = encode(records, base, 12345.5);
      const source = Buffer.concat([Buffer.alloc(shift, 0xff), encoded, Buffer.alloc(7, 0xff)]);
      const { header, records: got } = decode(source, shift, encoded.length);
      assert.deepEqual(
        got.map((each) => each.offset),
        records.map((_, index) => base + index),
      );
      assert.deepEqual(got.map(plain), records.map(plain));
      assert.equal(header.lastOffset, base + records.length - 1);
      assert.equal(header.appendedMs, 12345.5);
      assert.equal(header.bytes, encoded.length);
    }),
  );
});

test('any changed byte is noticed', () => {
  fc.assert(
    fc.property(batch, offset, fc.nat(), fc.integer({ min: 1, max: 255 }), (records, base, where, change) => {
      const encoded = encode(records, base);
      const at = where % encoded.length;
      encoded[at] = (encoded[at] ?? 0) ^ change;
      const header = readBatchHeader(encoded, 0, encoded.length);
      assert.ok(header === null || !bodyIsIntact(encoded, 0, encoded.length));
    }),
  );
});

test('a cut batch is noticed', () => {
  fc.assert(
    fc.property(batch, fc.nat(), (records, cut) => {
      const encoded = encode(records, 0);
      assert.equal(readBatchHeader(encoded, 0, cut % encoded.length), null);
    }),
  );
});

test('joining keeps the chosen records at their offsets and covers the whole stretch', () => {
  const part = fc.tuple(batch, fc.infiniteStream(fc.boolean()), fc.nat(3));
  fc.assert(
    fc.property(offset, fc.array(part, { minLength: 1, maxLength: 4 }), (base, parts) => {
      let next = base;
      const want: [number, ReturnType<typeof plain>][] = [];
      const kept = parts.map(([records, choice, gap], index) => {
        const source = encode(records, next, index);
        const { header, records: all, places } = decode(source);
        const chosen = places.filter(() => choice.next().value);
        for (const [at, each] of all.entries()) {
          if (chosen.includes(places[at] ?? -1)) want.push([each.offset, plain(each)]);
        }
        next += records.length + gap;
        return { source, header, places: chosen };
      });
      const joined = joinBatches(kept, 77);
      if (joined === null) {
        assert.equal(want.length, 0);
        return;
      }
      const { header, records } = decode(joined);
      assert.deepEqual(
        records.map((each) => [each.offset, plain(each)]),
        want,
      );
      assert.equal(header.baseOffset, base);
      assert.equal(header.lastOffset, kept.at(-1)?.header.lastOffset);
      assert.equal(header.appendedMs, parts.length - 1);
      assert.equal(header.deleteHorizonMs, 77);
    }),
  );
});
