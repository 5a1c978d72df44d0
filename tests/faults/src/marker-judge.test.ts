import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MarkerJudge } from './marker-judge.ts';

const at = (nextOffset: number, holders = '', copied = holders !== '') =>
  new Map([[0, { nextOffset, holders, copied }]]);

test('commits stay behind the marker, and the marker only grows', () => {
  const judge = new MarkerJudge();
  judge.look([-1], new Map());
  for (const offset of [0, 5, 9]) judge.look([offset], at(offset + 1));
  assert.deepEqual(judge.wrong, []);
  judge.look([11], at(10));
  judge.look([10], at(10));
  judge.look([4], at(4));
  judge.look([4], at(4));
  assert.deepEqual(judge.wrong, [
    '11 committed in partition 0, applied up to 10',
    'the marker of partition 0 went back from 10 to 4',
  ]);
});

test('what was put back on purpose is no fault, until it has caught up', () => {
  const judge = new MarkerJudge();
  judge.look([95], at(100));
  judge.putBack(1);
  judge.look([95], at(50));
  // further than the commits, and not as far as it was
  judge.look([95], at(97));
  assert.deepEqual(judge.wrong, []);
  judge.look([99], at(98));
  assert.equal(judge.wrong.length, 1);
});

test('markers that were removed begin anew', () => {
  const judge = new MarkerJudge();
  judge.look([95], at(100));
  judge.removed();
  judge.look([-1], at(3));
  assert.deepEqual(judge.wrong, []);
});

test('a writer that finds other holders goes back; copies that are looked at one after the other say nothing', () => {
  const judge = new MarkerJudge();
  judge.look([95], at(100, 'a'));
  judge.look([95], at(97, 'a'));
  judge.look([100], at(99, 'a'));
  judge.look([100], at(40, 'b'));
  assert.deepEqual(judge.wrong, []);
  judge.look([101], at(100, 'b'));
  judge.look([101], at(102, 'b'));
  judge.look([103], at(102, 'b'));
  assert.deepEqual(judge.wrong, ['103 committed in partition 0, applied up to 102']);
});

test('one marker that goes back with the same holders is a fault; with others it is none', () => {
  const judge = new MarkerJudge();
  judge.look([95], at(100, 'a', false));
  judge.look([30], at(40, 'b', false));
  assert.deepEqual(judge.wrong, []);
  judge.look([30], at(35, 'b', false));
  assert.deepEqual(judge.wrong, ['the marker of partition 0 went back from 40 to 35']);
});
