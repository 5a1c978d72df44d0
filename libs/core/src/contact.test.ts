import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Contact, longest } from './contact.ts';

test('an outage lasts from the first failure since contact was made, with what the last attempt said', () => {
  const contact = new Contact();
  assert.equal(contact.outage, null);
  contact.lost('no answer', 5);
  contact.lost('refused', 9);
  assert.deepEqual(contact.outage, { sinceMs: 5, cause: 'refused' });
  assert.equal(contact.made(), true);
  assert.equal(contact.made(), false);
  assert.equal(contact.outage, null);
  contact.lost('again', 12);
  assert.deepEqual(contact.outage, { sinceMs: 12, cause: 'again' });
});

test('of several outages the one that began first counts', () => {
  assert.equal(longest([null, null]), null);
  const [older, newer] = [
    { sinceMs: 1, cause: 'a' },
    { sinceMs: 2, cause: 'b' },
  ];
  assert.equal(longest([null, newer, older]), older);
});
