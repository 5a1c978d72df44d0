import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endedReplaced, endingCode, errorsTold } from './ending.ts';

const STARTED = '{"level":30,"msg":"reader started"}\n';
const FENCED = 'TRANSPORT_FENCED: the embedded log: a successor is active\n  where: topic t\n  what to do: Nothing.\n';

test('a process that was replaced says so as the last thing', () => {
  assert.equal(endedReplaced(`${STARTED}${FENCED}`), true);
  assert.equal(endedReplaced(`${STARTED}CHECKPOINT_FENCED: another owner\n`), true);
});

test('one that ended otherwise was not told, whatever it printed before', () => {
  assert.equal(endedReplaced(STARTED), false);
  assert.equal(endedReplaced(`${STARTED}${FENCED}INTERNAL: there is no partition 7\n`), false);
  assert.equal(endedReplaced(`{"level":40,"code":"TRANSPORT_FENCED"}\nINTERNAL: TRANSPORT_FENCED: no\n`), false);
  assert.equal(endingCode('TypeError: x is not a function\n'), '');
});

test('errors are told from what else is logged', () => {
  const error = '{"level":"error","code":"SINK_REFUSED","message":"no"}';
  const warning = '{"level":"warn","error":{"code":"SINK_UNREACHABLE"}}';
  assert.deepEqual(errorsTold(`${STARTED}${warning}\n${error}\n${FENCED}`), [error, FENCED.split('\n')[0]]);
  assert.deepEqual(errorsTold(`${STARTED}${warning}\n`), []);
});
