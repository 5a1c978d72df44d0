import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newLane, type OpenBatch, takeNumbers } from './lane.ts';

const before = { producerId: 7n, producerEpoch: 3 };
const raised = { producerId: 7n, producerEpoch: 4 };

function open(firstSequence: number, count: number): OpenBatch {
  const bytes = { buffer: Buffer.alloc(0), frame: Buffer.alloc(0), records: [] };
  return { ...bytes, firstSequence, count, baseOffset: null, attempts: 0, resolve: () => {}, reject: () => {} };
}

test('a partition takes a raised epoch over, at sequence 0, when nothing of it is open', () => {
  const lane = newLane(0, before);
  assert.deepEqual(takeNumbers(lane, before, 2), { ...before, firstSequence: 0 });
  const batch = open(0, 2);
  lane.queue.add(batch);
  assert.equal(lane.queue.next(0), batch);
  // What is open may have to go again, before what follows.
  assert.deepEqual(takeNumbers(lane, raised, 3), { ...before, firstSequence: 2 });
  const next = open(2, 3);
  lane.queue.add(next);
  assert.equal(lane.queue.stored(batch, 10, lane.queue.attempt, 0).kind, 'settled');
  assert.equal(lane.queue.next(0), next);
  assert.deepEqual(lane.queue.stored(next, 12, lane.queue.attempt, 0), {
    kind: 'settled',
    batches: [next],
    foreign: 0,
  });
  assert.deepEqual(takeNumbers(lane, raised, 1), { ...raised, firstSequence: 0 });
  assert.deepEqual(takeNumbers(lane, raised, 1), { ...raised, firstSequence: 1 });
  const [first, second] = [open(0, 1), open(1, 1)];
  lane.queue.add(first);
  lane.queue.add(second);
  // The new epoch has to prove itself: one batch alone.
  assert.equal(lane.queue.next(0), first);
  assert.equal(lane.queue.next(0), null);
  // Records of others are noticed across the change.
  assert.deepEqual(lane.queue.stored(first, 17, lane.queue.attempt, 0), {
    kind: 'settled',
    batches: [first],
    foreign: 2,
  });
});
