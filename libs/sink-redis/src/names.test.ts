import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { recordId, redisNames } from './names.ts';
import { keySlot, slotTag } from './slot.ts';

test('slots as the Redis cluster specification gives them', () => {
  // CRC16 (XMODEM) of "123456789" is 0x31C3; the rest: CLUSTER KEYSLOT of Redis 7.
  assert.equal(keySlot('123456789'), 0x31c3);
  assert.equal(keySlot('foo'), 12182);
  assert.equal(keySlot('{user1000}.following'), keySlot('user1000'));
  assert.equal(keySlot('foo{}{bar}'), 8363);
  assert.equal(keySlot('foo{{bar}}zap'), keySlot('{bar'));
  assert.equal(keySlot('foo{bar}{zap}'), keySlot('bar'));
  assert.equal(keySlot(''), 0);
});

test('every slot has a tag of its own', () => {
  for (let slot = 0; slot < 16384; slot++) assert.equal(keySlot(slotTag(slot)), slot);
});

test('property: a companion lies in the slot of its key, leads back to it, and is its alone', () => {
  const names = redisNames('mysync');
  const unit = fc.constantFrom('{', '}', 'a', ':', '日', '😀', 'v', 'mysync:v:{');
  const key = fc.oneof(fc.string({ unit, maxLength: 8 }), fc.string({ unit: 'grapheme', maxLength: 12 }));
  fc.assert(
    fc.property(key, key, (one, two) => {
      const companion = names.companion(one);
      assert.equal(keySlot(companion), keySlot(one));
      assert.equal(names.rowKey(companion), one);
      assert.equal(companion === names.companion(two), one === two);
    }),
    { numRuns: 5000 },
  );
});

test('markers and records have names of their own', () => {
  const names = redisNames('mysync');
  for (const slot of [0, 1, 16383]) assert.equal(keySlot(names.marker({ topic: '{x}', partition: 3 }, slot)), slot);
  assert.equal(names.rowKey(names.marker({ topic: 't', partition: 0 }, 0)), null);
  const ids = [
    recordId({ topic: 't', partition: 1 }, { database: 'a', table: 'b' }),
    recordId({ topic: 't', partition: 11 }, { database: 'a', table: 'b' }),
    recordId({ topic: 't', partition: 1 }, { database: 'a', table: 'c' }),
    recordId({ topic: 't', partition: 1 }, { database: 'c', table: 'b' }),
  ];
  assert.equal(new Set(ids).size, 4);
  for (const id of ids) assert.match(id, /^[0-9a-f]{12}$/);
});
