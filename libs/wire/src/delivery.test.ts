import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeVersion } from '@mysync/core';
import fc from 'fast-check';
import { setLastInTransaction } from './delivery.ts';
import {
  type DeliveryStamp,
  encodeControl,
  encodeTransaction,
  MessageDecoder,
  readDelivery,
  readNumbers,
  readOperation,
  stampDelivery,
} from './index.ts';
import { toPlain } from './protobufjs-codec.fixture.ts';

const transaction = encodeTransaction({
  source: 's',
  serverUuid: 'u',
  id: { file: 'b.1', offset: 4, gtid: '', ordinal: 0 },
  commitTimeMicros: 1,
});
const fresh = (): Uint8Array =>
  Uint8Array.from(encodeControl({ operation: 'heartbeat', transaction, ordinal: 1 }).payload);

const edge = (most: number) => fc.oneof(fc.constantFrom(0, 1, most - 1, most), fc.integer({ min: 0, max: most }));
const stamps: fc.Arbitrary<DeliveryStamp> = fc.record({
  epoch: edge(2 ** 32 - 1),
  generation: edge(2 ** 32 - 1),
  base: edge(Number.MAX_SAFE_INTEGER),
  sequence: edge(Number.MAX_SAFE_INTEGER),
  transactionCounter: fc.oneof(edge(2 ** 43 - 2 ** 14), edge(4096), edge(2 ** 32)),
  ordinal: fc.oneof(edge(2 ** 20), edge(2 ** 33)),
});

test('protobufjs and we read the numbers that were stamped', () => {
  fc.assert(
    fc.property(stamps, (stamp) => {
      const payload = fresh();
      stampDelivery(payload, stamp);
      const { transactionCounter, ordinal, ...numbers } = stamp;
      const version = changeVersion(transactionCounter, ordinal);
      assert.deepStrictEqual(readDelivery(payload), { ...numbers, version });
      const out = { epoch: 0, generation: 0, base: 0, sequence: 0 };
      readNumbers(payload, out);
      assert.deepStrictEqual(out, numbers);
      assert.deepStrictEqual(toPlain(payload)['delivery'], {
        epoch: stamp.epoch,
        generation: stamp.generation,
        base: String(stamp.base),
        sequence: String(stamp.sequence),
        version: String(version),
      });
    }),
    { numRuns: 2000 },
  );
});

test('stamping again changes the delivery and nothing else, marking the last changes the last byte', () => {
  fc.assert(
    fc.property(stamps, stamps, fc.boolean(), (one, other, last) => {
      const payload = fresh();
      const before = Uint8Array.from(payload);
      stampDelivery(payload, one);
      stampDelivery(payload, other);
      assert.deepEqual(payload.subarray(39), before.subarray(39));
      const once = fresh();
      stampDelivery(once, other);
      assert.deepEqual(Buffer.from(payload), Buffer.from(once));
      setLastInTransaction(payload, last);
      assert.deepEqual(payload.subarray(0, -1), once.subarray(0, -1));
      const message = new MessageDecoder().decode(payload);
      assert.equal(message.lastInTransaction, last);
      assert.equal(toPlain(payload)['lastInTransaction'], last);
      setLastInTransaction(payload, false);
      assert.deepEqual(Buffer.from(payload), Buffer.from(once));
    }),
  );
});

test('the highest version is 2^63 - 1, and nothing beyond is written', () => {
  const payload = fresh();
  const stamp = {
    epoch: 1,
    generation: 0,
    base: 1,
    sequence: 1,
    transactionCounter: 2 ** 43 - 1,
    ordinal: 2 ** 20 - 1,
  };
  stampDelivery(payload, stamp);
  assert.equal(readDelivery(payload).version, 2n ** 63n - 1n);
  const before = Uint8Array.from(payload);
  for (const wrong of [
    { ordinal: 2 ** 20 },
    { transactionCounter: 2 ** 43 },
    { epoch: 2 ** 32 },
    { generation: -1 },
    { base: 1.5 },
    { sequence: 2 ** 53 },
    { ordinal: Number.NaN },
  ]) {
    assert.throws(() => stampDelivery(payload, { ...stamp, ...wrong }), { code: 'INTERNAL' }, JSON.stringify(wrong));
    assert.deepEqual(payload, before);
  }
});

test('what does not have the layout is neither stamped nor read', () => {
  const numbers = { epoch: 0, generation: 0, base: 0, sequence: 0 };
  const stamp = { epoch: 1, generation: 0, base: 1, sequence: 1, transactionCounter: 1, ordinal: 1 };
  const whole = fresh();
  const broken = [0, 1, 2, 7, 12, 21, 30].map((at) => {
    const payload = Uint8Array.from(whole);
    payload[at] = 0;
    return payload;
  });
  for (const payload of [...broken, whole.subarray(0, 38), new Uint8Array(0)]) {
    const before = Uint8Array.from(payload);
    assert.throws(() => readDelivery(payload), { code: 'WIRE_MESSAGE_INVALID' });
    assert.throws(() => readNumbers(payload, numbers), { code: 'WIRE_MESSAGE_INVALID' });
    assert.throws(() => stampDelivery(payload, stamp), { code: 'WIRE_MESSAGE_INVALID' });
    assert.deepEqual(payload, before);
  }
  for (const payload of [whole.subarray(0, -1), whole.subarray(0, 39), new Uint8Array(0)]) {
    assert.throws(() => setLastInTransaction(payload, true), { code: 'WIRE_MESSAGE_INVALID' });
  }
  const huge = Uint8Array.from(whole);
  huge.fill(0xff, 13, 21);
  assert.throws(() => readDelivery(huge), { code: 'WIRE_MESSAGE_INVALID', where: { byte: 13 } });
});

test('the operation is read without decoding', () => {
  for (const operation of ['heartbeat', 'fence'] as const) {
    assert.equal(readOperation(encodeControl({ operation, transaction, ordinal: 1 }).payload), operation);
  }
  const payload = fresh();
  assert.equal(toPlain(payload)['operation'], 'OPERATION_HEARTBEAT');
  for (const [at, byte] of [
    [39, 0x18],
    [40, 0],
    [40, 11],
    [0, 1],
  ] as const) {
    const damaged = Uint8Array.from(payload);
    damaged[at] = byte;
    assert.throws(() => readOperation(damaged), { code: 'WIRE_MESSAGE_INVALID' });
  }
  assert.throws(() => readOperation(payload.subarray(0, 39)), { code: 'WIRE_MESSAGE_INVALID' });
});
