import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WakeUp } from './wake-up.ts';

test('one call wakes everybody who waits', async () => {
  const wakeUp = new WakeUp();
  const both = Promise.all([wakeUp.wait(), wakeUp.wait()]);
  wakeUp.notify();
  await both;
});

test('a call that nobody waited for is remembered, once', async () => {
  const wakeUp = new WakeUp();
  wakeUp.notify();
  wakeUp.notify();
  await wakeUp.wait();
  let woken = false;
  const second = wakeUp.wait().then(() => {
    woken = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(woken, false);
  wakeUp.notify();
  await second;
});
