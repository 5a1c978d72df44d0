import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, MysyncError } from '@mysync/core';
import { Again } from './again.ts';

const lost = new MysyncError('LOST', { remedy: '', retriable: true }, { message: 'the connection is gone' });
const wrong = new MysyncError('WRONG', { remedy: '', retriable: false }, { message: 'that never works' });

/** Time passes while somebody sleeps, and only then. */
function make(patienceMs: number): { again: Again; said: unknown[]; stop: AbortController; clock: Clock } {
  let now = 0;
  const said: unknown[] = [];
  const stop = new AbortController();
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms, signal) => {
      now += ms;
      return signal?.aborted === true ? Promise.reject(signal.reason) : Promise.resolve();
    },
  };
  const again = new Again({ clock, signal: stop.signal, patienceMs, onRetry: (error) => said.push(error) });
  return { again, said, stop, clock };
}

/** Fails with these, then gives 'done'. */
function failing(...errors: readonly Error[]): () => Promise<string> {
  const left = [...errors];
  return () => {
    const error = left.shift();
    return error === undefined ? Promise.resolve('done') : Promise.reject(error);
  };
}

test('what fails in passing is asked again, and somebody is told; all else ends it', async () => {
  const { again, said } = make(1000);
  assert.equal(await again.call(failing(lost, lost)), 'done');
  assert.deepEqual(said, [lost, lost]);
  await assert.rejects(again.call(failing(wrong)), wrong);
  assert.equal(said.length, 2);
});

test('a call that goes on failing ends with its error when patience is at an end, and at a stop at once', async () => {
  const { again, stop, clock } = make(1000);
  await assert.rejects(
    again.call(() => Promise.reject(lost)),
    lost,
  );
  assert.ok(clock.monotonic() >= 1000);
  stop.abort();
  await assert.rejects(again.call(failing(lost)), (error) => error === stop.signal.reason);
});

test('a list that breaks off begins anew, so often and no more; patience begins with each item that came', async () => {
  const { again } = make(150);
  let begun = 0;
  async function* list(): AsyncGenerator<number> {
    begun += 1;
    await Promise.resolve();
    yield begun;
    if (begun < 20) throw lost;
    yield 0;
  }
  const seen: number[] = [];
  for await (const item of again.iterate(list)) seen.push(item);
  assert.deepEqual(seen, [...Array.from({ length: 20 }, (_, at) => at + 1), 0]);
  begun = 0;
  await assert.rejects(async () => {
    for await (const _ of again.iterate(list, 3));
  }, lost);
  assert.equal(begun, 4);
});
