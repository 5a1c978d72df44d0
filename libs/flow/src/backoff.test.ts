import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, errorCatalogue } from '@mysync/core';
import { Backoff, type Retry, retryForever } from './backoff.ts';

const errors = errorCatalogue({
  TEST_AGAIN: { remedy: 'Wait.', retriable: true },
  TEST_NEVER: { remedy: 'Give up.', retriable: false },
});

/** Sleeps take no time and are written down. */
class RecordingClock implements Clock {
  readonly slept: number[] = [];
  now(): number {
    return 0;
  }
  monotonic(): number {
    return 0;
  }
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.slept.push(ms);
    return Promise.resolve();
  }
}

test('pauses double up to the cap and are drawn from the upper half', () => {
  const lowest = new Backoff({ minMs: 100, maxMs: 1000, random: () => 0 });
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6].map(() => lowest.next()),
    [50, 100, 200, 400, 500, 500],
  );
  const highest = new Backoff({ minMs: 100, maxMs: 1000, random: () => 0.999 });
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6].map(() => Math.round(highest.next())),
    [100, 200, 400, 800, 1000, 1000],
  );
  highest.reset();
  assert.equal(Math.round(highest.next()), 100);
  const capped = new Backoff({ minMs: 100, maxMs: 10, random: () => 0 });
  assert.equal(capped.next(), 5);
});

test('what ends without notice is looked for again soon, however long it has been away; what is overloaded is left alone for longer', async () => {
  const clock = new RecordingClock();
  const flaky = async (attempt: number): Promise<void> => {
    if (attempt < 6) throw errors.TEST_AGAIN({ message: attempt === 4 ? 'overloaded' : 'away' });
  };
  const mostMs = (error: unknown): number => ((error as Error).message === 'away' ? 40 : 1000);
  await retryForever(flaky, { clock, signal: new AbortController().signal, minMs: 20, random: () => 0, mostMs });
  assert.deepEqual(clock.slept, [10, 20, 20, 80, 20]);
});

test('calls until it succeeds and tells of each retry', async () => {
  const clock = new RecordingClock();
  const retries: Retry[] = [];
  const result = await retryForever(
    async (attempt) => {
      if (attempt < 4) throw errors.TEST_AGAIN({ message: `failure ${attempt}` });
      return `call ${attempt}`;
    },
    {
      clock,
      signal: new AbortController().signal,
      minMs: 10,
      random: () => 0,
      onRetry: (retry) => retries.push(retry),
    },
  );
  assert.equal(result, 'call 4');
  assert.deepEqual(clock.slept, [5, 10, 20]);
  assert.deepEqual(
    retries.map(({ attempt, delayMs, error }) => [attempt, delayMs, (error as Error).message]),
    [
      [1, 5, 'failure 1'],
      [2, 10, 'failure 2'],
      [3, 20, 'failure 3'],
    ],
  );
});

test('throws at once what is not retriable: by code, or by the rule given', async () => {
  const clock = new RecordingClock();
  const { signal } = new AbortController();
  const never = async (): Promise<void> => {
    throw errors.TEST_NEVER({ message: 'no' });
  };
  await assert.rejects(retryForever(never, { clock, signal }), { code: 'TEST_NEVER' });
  const foreign = async (): Promise<void> => {
    throw new Error('ECONNREFUSED please retry');
  };
  await assert.rejects(retryForever(foreign, { clock, signal }), /ECONNREFUSED/);
  assert.deepEqual(clock.slept, []);
  let calls = 0;
  const flaky = async (): Promise<number> => {
    if (++calls < 3) throw new Error('x');
    return calls;
  };
  assert.equal(await retryForever(flaky, { clock, signal, isRetriable: () => true }), 3);
});

test('an abort ends it: before a call, after a failed one and in the pause', async () => {
  const clock = new RecordingClock();
  const again = (): Promise<never> => Promise.reject(errors.TEST_AGAIN({ message: 'no' }));
  const before = new AbortController();
  before.abort(new Error('stop'));
  let called = false;
  const note = async (): Promise<void> => {
    called = true;
  };
  await assert.rejects(retryForever(note, { clock, signal: before.signal }), /stop/);
  assert.equal(called, false);

  const during = new AbortController();
  const abortThenFail = (): Promise<never> => {
    during.abort(new Error('stop'));
    return again();
  };
  const told: Retry[] = [];
  await assert.rejects(
    retryForever(abortThenFail, { clock, signal: during.signal, onRetry: (retry) => told.push(retry) }),
    /stop/,
  );
  assert.deepEqual(told, []);

  const pausing = new AbortController();
  const onRetry = (): void => pausing.abort(new Error('stop'));
  await assert.rejects(retryForever(again, { clock, signal: pausing.signal, onRetry }), /stop/);
  assert.deepEqual(clock.slept, []);
});
