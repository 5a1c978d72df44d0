import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Dice } from './dice.ts';
import { judgeSlope, medianSlope, type Sample } from './slope.ts';

const MEMORY = { absolute: 10, relative: 0.1 };

/** Every five seconds for ten minutes. */
function series(valueAt: (seconds: number, dice: Dice) => number, seed = 1, count = 121): Sample[] {
  const dice = new Dice(seed);
  return Array.from({ length: count }, (_, i) => ({ at: 900 + i * 5, value: valueAt(i * 5, dice) }));
}

/** Rises by 40 until it is collected, every 47 s. */
const sawtooth = (seconds: number, dice: Dice): number => 100 + ((seconds % 47) / 47) * 40 + dice.next() * 5;

test('what goes up and down, and a spike, is flat', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const verdict = judgeSlope(series(sawtooth, seed), MEMORY);
    assert.ok(verdict.flat, `${verdict.growth}`);
    assert.ok(Math.abs(verdict.growth) < 8, `${verdict.growth}`);
  }
  assert.ok(
    judgeSlope(
      series((t) => (t > 560 ? 500 : 100)),
      MEMORY,
    ).flat,
    'a spike at the very end',
  );
  assert.ok(
    judgeSlope(
      series((t) => (t < 60 ? 500 : 100)),
      MEMORY,
    ).flat,
    'one at the beginning',
  );
});

test('what creeps up under all of that is not', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const verdict = judgeSlope(
      series((t, dice) => sawtooth(t, dice) + t / 20, seed),
      MEMORY,
    );
    assert.ok(!verdict.flat, `${verdict.growth}`);
    assert.ok(verdict.growth > 20 && verdict.growth < 40, `${verdict.growth}`);
  }
});

test('the bound is the larger of a number and of a part of the median', () => {
  const rising = series((t) => 1000 + t / 10);
  assert.deepEqual(judgeSlope(rising, { absolute: 1, relative: 0.1 }), {
    median: 1030,
    most: 1060,
    growth: 60,
    allowed: 103,
    flat: true,
  });
  assert.ok(!judgeSlope(rising, { absolute: 50, relative: 0.01 }).flat);
  assert.ok(
    judgeSlope(
      series((t) => 1000 - t),
      { absolute: 0, relative: 0 },
    ).flat,
    'less is flat',
  );
});

test('few samples say nothing, many are thinned without losing the slope', () => {
  assert.equal(medianSlope([]), 0);
  assert.equal(medianSlope([{ at: 1, value: 5 }]), 0);
  const many = series((t, dice) => t / 100 + dice.next(), 3, 20_000);
  assert.ok(Math.abs(medianSlope(many) - 0.01) < 0.0001, `${medianSlope(many)}`);
});
