import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from './plan.ts';
import type { Abilities } from './setting.ts';

const ALL: Abilities = { clock: true, disk: true };

test('a kind that takes half a minute by itself has its seed for itself', () => {
  const plans = Array.from({ length: 2000 }, (_, seed) =>
    planOf(seed, { transport: 'kafka', can: ALL, rate: 1000, focus: [] }),
  );
  const patient = plans.filter(({ steps }) => steps.some(({ kind }) => kind.patient));
  assert.ok(patient.length > 10);
  for (const { seed, steps } of patient) assert.equal(steps.length, 1, `seed ${seed}`);
});
