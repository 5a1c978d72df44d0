import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LookCount } from './look-count.ts';

test('an outage counts by its length, however often somebody looked', () => {
  const looks = new LookCount();
  for (let i = 0; i < 5; i += 1) looks.succeeded();
  for (let ms = 0; ms < 10_000; ms += 40) looks.failed('away', ms);
  assert.deepEqual([looks.done, looks.tried, looks.trouble], [5, 15, 'away']);
});
