import assert from 'node:assert/strict';
import { test } from 'node:test';
import { causeText, errorCatalogue } from './errors.ts';

const errors = errorCatalogue({ TEST_BROKEN: { remedy: 'Mend it.', retriable: false } });

test('a cause is told once, also where the message names it', () => {
  const cause = new Error('access denied');
  const twice = errors.TEST_BROKEN({ message: `the table cannot be used: ${causeText(cause)}`, cause });
  assert.equal(String(twice), 'TEST_BROKEN: the table cannot be used: access denied\n  what to do: Mend it.');
  assert.equal(twice.toJSON()['cause'], undefined);
  assert.equal(causeText(twice), 'TEST_BROKEN: the table cannot be used: access denied');
  const once = errors.TEST_BROKEN({ message: 'the table cannot be used', cause });
  assert.equal(String(once), 'TEST_BROKEN: the table cannot be used\n  cause: access denied\n  what to do: Mend it.');
  assert.equal(once.toJSON()['cause'], 'access denied');
  assert.equal(causeText(once), 'TEST_BROKEN: the table cannot be used <- access denied');
});
