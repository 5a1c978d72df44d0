import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeMessage } from './message.fixture.ts';
import { comparePlaces, readChange } from './source-place.ts';

test('operation, file and offset are read, whatever lies around them', () => {
  const place = { operation: 3, file: 'binlog.000007', offset: 5_000_000_000 };
  assert.deepEqual(readChange(changeMessage({ ...place, epoch: 1, sequence: 1 })), place);
  // a fence has no transaction
  assert.equal(readChange(changeMessage({ operation: 9, file: '', offset: 0, epoch: 0, sequence: 0 })), null);
});

test('a message that is cut off is an error', () => {
  const whole = changeMessage({ operation: 1, file: 'binlog.000007', offset: 300, epoch: 1, sequence: 1 });
  assert.throws(() => readChange(whole.subarray(0, 50)));
});

test('places are ordered by file number, then by offset', () => {
  const at = (file: string, offset: number) => ({ file, offset });
  assert.ok(comparePlaces(at('b.000002', 4), at('b.000002', 900)) < 0);
  assert.ok(comparePlaces(at('b.999999', 900), at('b.1000000', 4)) < 0);
  assert.equal(comparePlaces(at('b.000002', 4), at('b.000002', 4)), 0);
});
