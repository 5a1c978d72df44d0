import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CHANGE } from '@mysync/core';
import { initialGuardState } from '@mysync/flow';
import { EarlierPlaces } from './earlier-places.ts';

const SPAN_MS = 1_000;

const place = (nextOffset: number) => ({
  nextOffset,
  guard: initialGuardState(0),
  version: '0',
  change: NO_CHANGE,
  unreadSinceMs: 0,
});

test('it goes back by a span at least, and by two at most', () => {
  const places = new EarlierPlaces(SPAN_MS);
  for (let ms = 0; ms <= 10_000; ms += 100) places.note(place(ms / 100), ms);
  const found = places.goBack(10_000, 0);
  assert.equal(found?.nextOffset, 90);
  assert.ok(places.entries().length <= 3);
});

test('before a span has passed it goes back to the first place; without one, nowhere', () => {
  const places = new EarlierPlaces(SPAN_MS);
  assert.equal(places.goBack(0, 0), null);
  places.note(place(7), 100);
  places.note(place(8), 200);
  assert.equal(places.goBack(300, 0)?.nextOffset, 7);
});

test('going back again soon after ends at the same place', () => {
  const places = new EarlierPlaces(SPAN_MS);
  for (let ms = 0; ms <= 5_000; ms += 100) places.note(place(ms / 100), ms);
  assert.equal(places.goBack(5_000, 0)?.nextOffset, 40);
  const again = new EarlierPlaces(SPAN_MS, places.entries());
  again.note(place(40), 5_000);
  again.note(place(45), 5_400);
  assert.equal(again.goBack(5_500, 0)?.nextOffset, 40);
});

test('what the log does not hold any more is not gone back to', () => {
  const places = new EarlierPlaces(SPAN_MS);
  for (let ms = 0; ms <= 2_000; ms += 500) places.note(place(ms), ms);
  assert.equal(places.goBack(2_000, 1_001)?.nextOffset, 2_000);
  assert.equal(places.goBack(2_000, 2_001), null);
});

test('whatever the times: all that was applied within a span lies at the place or beyond, and the list stays short', () => {
  for (let seed = 1; seed <= 2_000; seed += 1) {
    let state = seed;
    const below = (limit: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * limit);
    };
    let places = new EarlierPlaces(SPAN_MS);
    let now = 0;
    let offset = 0;
    const applied: { readonly offset: number; readonly atMs: number }[] = [];
    for (let step = 0; step < 60; step += 1) {
      now += below(below(2) === 0 ? 200 : 1_500);
      if (below(4) === 0) {
        const found = places.goBack(now, 0);
        for (const each of applied) {
          if (each.atMs > now - SPAN_MS) assert.ok(found !== null && found.nextOffset <= each.offset, `seed ${seed}`);
        }
        if (found !== null) offset = found.nextOffset;
        places = new EarlierPlaces(SPAN_MS, places.entries());
      }
      places.note(place(offset), now);
      applied.push({ offset, atMs: now });
      offset += 1;
      assert.ok(places.entries().length <= 3, `seed ${seed}`);
    }
  }
});

test('a clock that is set back leaves a place to go back to', () => {
  const places = new EarlierPlaces(SPAN_MS);
  for (let ms = 0; ms <= 5_000; ms += 100) places.note(place(ms / 100), 100_000 + ms);
  places.note(place(60), 1_000);
  places.note(place(70), 3_000);
  assert.equal(places.goBack(3_100, 0)?.nextOffset, 60);
});
