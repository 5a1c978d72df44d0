import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blindSpots, type Sight } from './blind-spots.ts';

const SEEN: Sight = {
  sinks: { redis: { tried: 400, done: 300, trouble: 'away for a moment' } },
  books: { tried: 80, done: 60, trouble: '' },
  checkpoints: 60,
  held: 9000,
  commits: { redis: 200 },
  parts: [
    { end: 700, read: 700 },
    { end: 0, read: 0 },
  ],
  peaks: [120, 0],
};

test('a run that was looked at has no blind spot', () => {
  assert.deepEqual(blindSpots(SEEN), []);
});

test('each thing that was not looked at is named', () => {
  const spots: readonly (readonly [Partial<Sight>, RegExp])[] = [
    [{ sinks: { redis: { tried: 3, done: 3, trouble: '' } } }, /^redis seen in 3 of 3 looks$/],
    [{ sinks: { redis: { tried: 4000, done: 20, trouble: 'away' } } }, /redis seen in 20 of 4000 looks \(away\)/],
    [{ books: { tried: 90, done: 1, trouble: 'no log' } }, /commits, .* seen in 1 of 90 looks \(no log\)/],
    [{ checkpoints: 0 }, /0 checkpoints/],
    [{ held: 0 }, /no message of the log lies before/],
    [{ commits: { redis: 10, elasticsearch: 0 } }, /no commit .* elasticsearch/],
    [{ parts: [{ end: 700, read: 350 }] }, /partition 0 of the log read up to 350 of 700/],
    [{ parts: [{ end: 0, read: 0 }] }, /the log held nothing/],
    [{ peaks: [0, 0] }, /memory/],
  ];
  for (const [change, pattern] of spots) {
    const found = blindSpots({ ...SEEN, ...change });
    assert.equal(found.length, 1, found.join());
    assert.match(found[0] ?? '', pattern);
  }
});
