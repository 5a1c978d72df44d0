import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULT_KINDS } from './fault-kinds.ts';
import { longPlans } from './long-outages.ts';
import { MUTATIONS } from './mutations.ts';
import { focused, parseOptions } from './options.ts';
import { againFlags } from './suite.ts';

test('a focus that nothing answers to is refused: a run of nothing would look like a proof', () => {
  assert.throws(() => focused(MUTATIONS, ['typo']), /nothing holds 'typo'/);
  assert.throws(() => focused(FAULT_KINDS, ['kill reader', 'typo']), /nothing holds 'typo'/);
  assert.throws(() => longPlans(10, 1000, ['kill reader']), /nothing holds 'kill reader'; there is: kill all brokers/);
  assert.deepEqual(focused(MUTATIONS, []), MUTATIONS);
});

test('all texts of a focus count', () => {
  const names = focused(MUTATIONS, ['a commit before', 'a rewind that']).map(({ name }) => name);
  assert.deepEqual(names, ['a commit before the apply', 'a rewind that skips one']);
  assert.equal(longPlans(10, 1000, ['redis', 'source']).length, 3);
});

test('minutes are a number, and of long outages', () => {
  const parse = (...args: string[]): number => parseOptions(args, '/cache').longMinutes;
  assert.deepEqual([parse(), parse('--long'), parse('--long', '--minutes', '2')], [0, 10, 2]);
  for (const minutes of ['ten', '0', '', 'NaN', '1e9']) {
    assert.throws(() => parse('--long', '--minutes', minutes), /--minutes is a number above 0/);
  }
  assert.throws(() => parse('--minutes', '2'), /--minutes is of --long/);
  assert.throws(() => parse('--long', '--mutations'), /two runs/);
});

test('the line that runs an outage again says how long it lasts', () => {
  const plans = longPlans(2, 1000, ['redis']);
  const [plan] = plans;
  assert.ok(plan !== undefined);
  const options = { plans, focus: ['redis'], rate: 1000 };
  assert.equal(againFlags(2, plan, { ...options, longMinutes: 2 }), "--long --minutes 2 --focus 'kill redis'");
  assert.equal(againFlags(2, plan, { ...options, longMinutes: 10 }), "--long --focus 'kill redis'");
});
