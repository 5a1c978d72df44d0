import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MAX_OPEN, PartitionQueue, PROOF_MS, type QueuedBatch } from './partition-queue.ts';

interface TestBatch extends QueuedBatch {
  readonly id: number;
}

function queueOf(count: number, size = 1): { queue: PartitionQueue<TestBatch>; batches: TestBatch[] } {
  const queue = new PartitionQueue<TestBatch>();
  const batches = Array.from({ length: count }, (_, id) => {
    const batch = { id, firstSequence: queue.takeSequence(size), count: size, baseOffset: null, attempts: 0 };
    queue.add(batch);
    return batch;
  });
  return { queue, batches };
}

function sendable(queue: PartitionQueue<TestBatch>, now = 0): number[] {
  const ids: number[] = [];
  for (let batch = queue.next(now); batch !== null; batch = queue.next(now)) ids.push(batch.id);
  return ids;
}

test('one batch alone proves the numbers, then five are on their way', () => {
  const { queue, batches } = queueOf(8);
  assert.deepEqual(sendable(queue), [0]);
  queue.stored(batches[0]!, 0, queue.attempt, 0);
  assert.deepEqual(sendable(queue), [1, 2, 3, 4, 5]);
  queue.stored(batches[1]!, 1, queue.attempt, 0);
  assert.deepEqual(sendable(queue), [6]);
});

test('after an idle time the proof is given again, but not in the middle of traffic', () => {
  const { queue, batches } = queueOf(5);
  sendable(queue);
  queue.stored(batches[0]!, 0, queue.attempt, 0);
  assert.deepEqual(sendable(queue, PROOF_MS), [1]);
  queue.stored(batches[1]!, 1, queue.attempt, PROOF_MS);
  assert.deepEqual(sendable(queue, PROOF_MS), [2, 3, 4]);
});

test('an answer to an older attempt settles its batch and proves nothing', () => {
  const { queue, batches } = queueOf(4);
  sendable(queue);
  const before = queue.attempt;
  assert.equal(queue.restart(), 1);
  assert.equal(queue.stored(batches[0]!, 10, before, 0).kind, 'settled');
  assert.deepEqual(sendable(queue), [1], 'still one alone');
});

test('what is stored behind an open batch waits for it and is not sent again', () => {
  const { queue, batches } = queueOf(4);
  sendable(queue);
  queue.stored(batches[0]!, 0, queue.attempt, 0);
  assert.deepEqual(sendable(queue), [1, 2, 3]);
  assert.deepEqual(queue.stored(batches[2]!, 2, queue.attempt, 0), { kind: 'waits' });
  queue.restart();
  assert.deepEqual(sendable(queue), [1]);
  const outcome = queue.stored(batches[1]!, 1, queue.attempt, 0);
  assert.deepEqual(outcome.kind === 'settled' && outcome.batches.map(({ id }) => id), [1, 2]);
  assert.deepEqual(sendable(queue), [3]);
});

test('foreign records are counted, a log that was cut is told', () => {
  const { queue, batches } = queueOf(4, 10);
  queue.stored(batches[0]!, 100, 0, 0);
  const gap = queue.stored(batches[1]!, 113, 0, 0);
  assert.equal(gap.kind === 'settled' && gap.foreign, 3);
  assert.deepEqual(queue.stored(batches[2]!, 50, 0, 0), { kind: 'log-cut', expected: 123 });
});

test('sequences wrap to 0 behind 2^31 - 1, as Kafka counts', () => {
  const queue = new PartitionQueue<TestBatch>();
  assert.equal(queue.takeSequence(2 ** 31 - 2), 0);
  assert.equal(queue.takeSequence(5), 2 ** 31 - 2);
  assert.equal(queue.takeSequence(1), 3);
});

test('renumber gives everything back and begins at sequence 0', () => {
  const { queue } = queueOf(3);
  sendable(queue);
  assert.deepEqual(
    queue.renumber().map(({ id }) => id),
    [0, 1, 2],
  );
  assert.equal(queue.openCount, 0);
  assert.equal(queue.takeSequence(1), 0);
});

/**
 * A broker that knows the last sequence of the producer, takes a batch only in order (or any, while it knows nothing), and
 * may forget or refuse at any moment; answers may be lost. The log must hold what was settled, in order, once.
 */
test('model: whatever is lost, refused or repeated, what settles is in the log once and in order', () => {
  type Step = 'publish' | 'send' | 'answer' | 'lose' | 'refuse';
  const steps = fc.array(
    fc.constantFrom<Step>('publish', 'publish', 'send', 'send', 'answer', 'answer', 'lose', 'refuse'),
    { minLength: 20, maxLength: 300 },
  );
  fc.assert(
    fc.property(steps, (script) => {
      const queue = new PartitionQueue<TestBatch>();
      const log: number[] = [];
      const settled: number[] = [];
      let made = 0;
      /** Requests that the broker has not worked at yet, and answers under way, of the present connection. */
      let wire: { batch: TestBatch; attempt: number }[] = [];
      let answers: { batch: TestBatch; attempt: number; offset: number | null }[] = [];
      let refusing = 0;
      const work = (): void => {
        for (const { batch, attempt } of wire) {
          const at = log.indexOf(batch.id);
          let offset: number | null = null;
          if (refusing > 0) refusing--;
          else if (at >= 0) offset = at;
          else if (log.length === 0 || batch.firstSequence === log.length) {
            log.push(batch.id);
            offset = log.length - 1;
          }
          answers.push({ batch, attempt, offset });
        }
        wire = [];
      };
      const restart = (): void => {
        queue.restart();
        work();
        answers = [];
      };
      for (const step of script) {
        if (step === 'publish') {
          queue.add({ id: made++, firstSequence: queue.takeSequence(1), count: 1, baseOffset: null, attempts: 0 });
        } else if (step === 'send') {
          for (let batch = queue.next(0); batch !== null; batch = queue.next(0)) {
            wire.push({ batch, attempt: queue.attempt });
          }
          assert.ok(wire.length + answers.length <= MAX_OPEN * 2);
        } else if (step === 'lose') {
          restart();
        } else if (step === 'refuse') {
          refusing = 1;
        } else {
          work();
          const answer = answers.shift();
          if (answer === undefined) continue;
          if (answer.offset === null) {
            if (answer.attempt === queue.attempt) queue.restart();
          } else if (answer.batch.baseOffset === null) {
            const outcome = queue.stored(answer.batch, answer.offset, answer.attempt, 0);
            assert.notEqual(outcome.kind, 'log-cut');
            if (outcome.kind === 'settled') settled.push(...outcome.batches.map(({ id }) => id));
          }
        }
      }
      assert.deepEqual(
        log,
        log.map((_, index) => index),
        'the log is in order and without repetition',
      );
      assert.deepEqual(
        settled,
        settled.map((_, index) => index),
      );
      assert.ok(settled.length <= log.length, 'nothing settles that is not stored');
    }),
    { numRuns: 500 },
  );
});
