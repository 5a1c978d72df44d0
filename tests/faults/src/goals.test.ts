import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULT_KINDS } from './fault-kinds.ts';
import { missedGoals, RECOVERY_GOALS } from './goals.ts';

test('every goal is one of a kind of fault', () => {
  for (const kind of Object.keys(RECOVERY_GOALS)) {
    assert.ok(
      FAULT_KINDS.some(({ name }) => name === kind),
      kind,
    );
  }
});

test('what took too long is missed, and kinds without a goal are not', () => {
  const times = { 'kill reader': 15, 'kill writer': 14.9, 'kill a leader': 31, 'kill redis': 500 };
  const figures = Object.fromEntries(Object.entries(times).map(([kind, p99]) => [kind, { p99, count: 2 }]));
  assert.deepEqual(missedGoals(figures), [
    { kind: 'kill reader', p99: 15, goal: 15, count: 2 },
    { kind: 'kill a leader', p99: 31, goal: 30, count: 2 },
  ]);
});
