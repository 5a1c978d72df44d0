import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recoveryText } from './recover.ts';

const position = { file: 'bin.000007', offset: 5_000, gtidSet: '' };
const plan = { source: 'shop', checkpoint: position, position, transactionCounter: 1, floors: [], lagging: [] };

test('a recovery that finishes one which was broken off does not say that no sink lags: it did not look', () => {
  assert.match(
    recoveryText({ ...plan, begun: false, done: false }),
    /^No sink lags behind the checkpoint\.\nNothing was changed yet/m,
  );
  for (const done of [false, true]) {
    const text = recoveryText({ ...plan, begun: true, done });
    assert.match(text, /^An earlier recovery was broken off/m);
    assert.doesNotMatch(text, /No sink lags|changed yet/);
  }
});
