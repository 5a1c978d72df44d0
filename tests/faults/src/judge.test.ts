import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Judge } from './judge.ts';

test('a key that rises, goes, and comes back newer is right', () => {
  const judge = new Judge(new Set());
  for (const n of [null, 1, 1, 4, null, null, 6, 9]) judge.look('k', n);
  assert.deepEqual(judge.backward, []);
  assert.deepEqual(judge.wrong, []);
});

test('a key that falls, is revived, or shows what was rolled back is not', () => {
  const judge = new Judge(new Set([7]));
  for (const n of [5, 4]) judge.look('falls', n);
  for (const n of [5, null, 5]) judge.look('revived', n);
  for (const n of [5, null, 3]) judge.look('older', n);
  judge.look('never', 7);
  assert.equal(judge.backward.length, 3);
  assert.match(judge.backward.join('\n'), /falls went from 5 to 4\nrevived came back with 5.*\nolder went/);
  assert.deepEqual(judge.wrong, ['never shows 7, which was rolled back']);
});

test('after a restore an older value is no fault', () => {
  const judge = new Judge(new Set());
  judge.look('k', 5);
  judge.forget();
  judge.look('k', 3);
  assert.deepEqual(judge.backward, []);
});
