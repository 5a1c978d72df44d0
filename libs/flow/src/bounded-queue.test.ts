import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BoundedQueue } from './bounded-queue.ts';

const LIMITS = { maxItems: 3, maxBytes: 100 };

async function drain<T>(queue: BoundedQueue<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

/** True when the promise has not settled although everything that was ready to run has run. */
async function pending(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => {
    settled = true;
  };
  promise.then(note, note);
  await new Promise((resolve) => setImmediate(resolve));
  return !settled;
}

test('a full queue makes the producer wait, in items and in bytes', async () => {
  for (const [bytes, fits] of [
    [1, 3],
    [50, 2],
    [1000, 1],
  ] as const) {
    const queue = new BoundedQueue<number>(LIMITS);
    for (let i = 0; i < fits; i++) assert.equal(queue.tryPut(i, bytes), true);
    assert.equal(queue.tryPut(9, 1), false);
    const waiting = queue.put(9, 1);
    assert.equal(await pending(waiting), true);
    const iterator = queue[Symbol.asyncIterator]();
    assert.deepEqual(await iterator.next(), { done: false, value: 0 });
    await waiting;
    assert.equal(queue.length, fits);
    await iterator.return();
  }
});

test('items come out in the order of the puts, also of those that waited', async () => {
  const queue = new BoundedQueue<number>({ maxItems: 1, maxBytes: 10 });
  const puts = [1, 2, 3, 4].map((item) => queue.put(item, 1));
  const iterator = queue[Symbol.asyncIterator]();
  assert.deepEqual((await iterator.next()).value, 1);
  assert.equal(queue.tryPut(99, 1), false, 'nobody overtakes a put that waits');
  const rest = Promise.all(puts).then(() => queue.end());
  const items: number[] = [];
  for await (const item of { [Symbol.asyncIterator]: () => iterator }) items.push(item);
  assert.deepEqual(items, [2, 3, 4]);
  await rest;
});

test("a producer's failure reaches the consumer after what was put before it", async () => {
  const queue = new BoundedQueue<number>(LIMITS);
  queue.tryPut(1, 1);
  queue.fail(new Error('source lost'));
  const items: number[] = [];
  await assert.rejects(async () => {
    for await (const item of queue) items.push(item);
  }, /source lost/);
  assert.deepEqual(items, [1]);
});

test('a failure or an end wakes a consumer that waits', async () => {
  const failing = new BoundedQueue<number>(LIMITS);
  const rejected = assert.rejects(drain(failing), /gone/);
  await new Promise((resolve) => setImmediate(resolve));
  failing.fail(new Error('gone'));
  await rejected;
  const ending = new BoundedQueue<number>(LIMITS);
  const drained = drain(ending);
  await new Promise((resolve) => setImmediate(resolve));
  ending.tryPut(5, 1);
  ending.end();
  assert.deepEqual(await drained, [5]);
});

test('a consumer that leaves ends the waiting of the producers', async () => {
  const queue = new BoundedQueue<number>({ maxItems: 1, maxBytes: 10 });
  queue.tryPut(1, 1);
  const [second, third] = [queue.put(2, 1), queue.put(3, 1)];
  const refused = assert.rejects(third, { code: 'FLOW_QUEUE_CLOSED' });
  for await (const item of queue) {
    assert.equal(item, 1);
    break;
  }
  await second;
  await refused;
  await assert.rejects(queue.put(4, 1), { code: 'FLOW_QUEUE_CLOSED' });
  assert.deepEqual([queue.length, queue.bytes, queue.canPut()], [0, 0, false]);
});

test('an abort ends both sides at once with its reason, also before the start and after the end', async () => {
  const controller = new AbortController();
  const queue = new BoundedQueue<number>({ maxItems: 1, maxBytes: 10, signal: controller.signal });
  queue.tryPut(1, 1);
  const put = assert.rejects(queue.put(2, 1), /stop now/);
  controller.abort(new Error('stop now'));
  await put;
  await assert.rejects(drain(queue), /stop now/);

  const aborted = new BoundedQueue<number>({ ...LIMITS, signal: controller.signal });
  await assert.rejects(aborted.put(1, 1), /stop now/);
  await assert.rejects(drain(aborted), /stop now/);

  const late = new AbortController();
  const ended = new BoundedQueue<number>({ ...LIMITS, signal: late.signal });
  ended.tryPut(1, 1);
  ended.end();
  late.abort(new Error('too late'));
  await assert.rejects(drain(ended), /too late/);
});

test('a second consumer is refused', async () => {
  const queue = new BoundedQueue<number>(LIMITS);
  queue.end();
  await drain(queue);
  await assert.rejects(drain(queue), { code: 'INTERNAL' });
});

test('hands everything over in order within its bounds, whatever the pace', async () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(fc.boolean(), { minLength: 1 }), async (bytes, pauses) => {
      const queue = new BoundedQueue<number>(LIMITS);
      const produce = async (): Promise<void> => {
        for (const [i, size] of bytes.entries()) await queue.put(i, size);
        queue.end();
      };
      const producer = produce();
      const items: number[] = [];
      for await (const item of queue) {
        assert.ok(queue.length <= LIMITS.maxItems);
        assert.ok(queue.bytes < LIMITS.maxBytes + 40);
        items.push(item);
        if (pauses[item % pauses.length]) await new Promise((resolve) => setImmediate(resolve));
      }
      await producer;
      assert.deepEqual(items, [...bytes.keys()]);
    }),
    { numRuns: 100 },
  );
});
