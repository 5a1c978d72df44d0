import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '@mysync/core';
import { Watchdog } from './watchdog.ts';

test('replaces a client that waits and does not move, and no other', () => {
  let now = 0;
  let waiting = false;
  let replaced = 0;
  const clock: Clock = { now: () => now, monotonic: () => now, sleep: () => Promise.reject(new Error('unused')) };
  const watchdog = new Watchdog({ stallMs: 100, waiting: () => waiting, replace: () => replaced++, clock });
  try {
    now = 1000;
    watchdog.look();
    assert.equal(replaced, 0, 'idle is no stall');
    waiting = true;
    now = 1099;
    watchdog.look();
    watchdog.moved();
    now = 1198;
    watchdog.look();
    assert.equal(replaced, 0, 'it moved');
    now = 1200;
    watchdog.look();
    assert.equal(replaced, 1);
    watchdog.look();
    assert.equal(replaced, 1, 'the new client has its own time');
  } finally {
    watchdog.stop();
  }
});
