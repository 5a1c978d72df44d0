import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SilenceLimit } from './silence-limit.ts';

/** The limits of connections that are given up after so long each; null: could not be opened. */
function limits(heartbeatMs: number, lives: readonly (number | null)[]): number[] {
  const limit = new SilenceLimit(heartbeatMs);
  let now = 5;
  return lives.map((life) => {
    if (life !== null) limit.opened(now);
    now += life ?? 9;
    limit.ended(now);
    return limit.ms;
  });
}

test('three heartbeats; doubled while connections are given up as soon as they may be, up to a minute', () => {
  assert.equal(new SilenceLimit(2000).ms, 6000);
  assert.deepEqual(limits(2000, [6000, 12_100, 24_500, 48_000, 60_000]), [12_000, 24_000, 48_000, 60_000, 60_000]);
});

test('one that lasted sets it back; one that could not be opened changes nothing', () => {
  assert.deepEqual(limits(2000, [6000, null, 30_000, 100]), [12_000, 12_000, 6000, 12_000]);
});

test('longer heartbeats are never cut', () => {
  assert.deepEqual(limits(30_000, [100, 1e6]), [90_000, 90_000]);
});
