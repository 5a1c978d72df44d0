import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Dice } from './dice.ts';
import { burstKey } from './load.ts';
import { chooseTarget } from './targets.ts';

test('rows of all sessions, of bursts and of pairs are looked at; of a burst few, and those often', () => {
  const dice = new Dice(7);
  const targets = Array.from({ length: 20_000 }, () => chooseTarget(dice));
  const bulk = targets.filter(({ table }) => table === 'bulk').map(({ key }) => Number(key));
  assert.deepEqual([...new Set(bulk.map((key) => Math.floor(key / 1_000_000)))].sort(), [0, 1, 2, 3]);
  assert.ok(targets.some(({ table }) => table === 'pair'));
  const ofBursts = bulk.filter((key) => key >= burstKey(0));
  assert.ok(ofBursts.every((key) => key < burstKey(20_000)));
  assert.ok(new Set(ofBursts).size <= ofBursts.length / 10);
});
