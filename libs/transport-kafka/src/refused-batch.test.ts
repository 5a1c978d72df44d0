import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { BatchLimit } from './refused-batch.ts';

const record = (value: string) => ({ key: Buffer.from('k'), value: Buffer.from(value), headers: [] });
const place = { topic: 't', partition: 0 };

test('what a broker shows by refusing one record is the limit, until it is asked again or the topic has another', () => {
  const limit = new BatchLimit(8_000);
  assert.equal(limit.recordBytes(0), 8_000);
  const refusal = limit.refused([record('v'.repeat(4_000))], 4_100, place, 1_000);
  assert.ok(isMysyncError(refusal, 'TRANSPORT_RECORD_TOO_LARGE'));
  assert.equal(refusal.where['record'], 0);
  limit.refused([record('v'.repeat(5_000))], 5_100, place, 2_000);
  assert.equal(limit.recordBytes(62_000), 4_099);
  assert.equal(limit.recordBytes(62_001), 8_000, 'the broker may take more by now');
  limit.refused([record('v'.repeat(4_000))], 4_100, place, 70_000);
  limit.topicBytes = 8_000;
  assert.equal(limit.recordBytes(70_000), 4_099);
  limit.topicBytes = 16_000;
  assert.equal(limit.recordBytes(70_000), 16_000);
});

test('the topic is asked for its limit once a minute', () => {
  const limit = new BatchLimit(8_000);
  assert.deepEqual(
    [0, 1, 60_000, 60_001, 60_002].map((nowMs) => limit.isToBeAsked(nowMs)),
    [true, false, false, true, false],
  );
});

test('several records together are asked for in smaller batches; none of them is named', () => {
  const limit = new BatchLimit(8_000);
  const refusal = limit.refused([record('a'), record('b')], 3_000, place, 0);
  assert.ok(isMysyncError(refusal, 'TRANSPORT_RECORD_TOO_LARGE'));
  assert.ok(!('record' in refusal.where));
  assert.deepEqual([limit.batchBytes, limit.recordBytes(0)], [1_500, 8_000]);
});
