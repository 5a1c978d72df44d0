import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeySet } from './key-set.ts';

test('has what was added and nothing else, over many growths', () => {
  const set = new KeySet();
  for (let id = 0; id < 50_000; id++) {
    set.add(`shop:orders:${id}`);
    if (id % 3 === 0) set.add(`shop:orders:${id}`);
  }
  assert.equal(set.size, 50_000);
  for (let id = 0; id < 50_000; id++) assert.ok(set.has(`shop:orders:${id}`), String(id));
  for (let id = 50_000; id < 100_000; id++) assert.ok(!set.has(`shop:orders:${id}`), String(id));
});
