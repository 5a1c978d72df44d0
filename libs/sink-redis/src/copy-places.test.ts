import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CopyPlace, parsePlaces, placesOf, placesText } from './copy-places.ts';
import { SlotMap } from './slot-map.ts';

const id = (name: string): string => name.repeat(40);

/** Ranges by master: `{ a: [[0, 99]] }`. */
function mapOf(ranges: Readonly<Record<string, readonly (readonly [number, number])[]>>): SlotMap {
  const reply = Object.entries(ranges).flatMap(([name, list]) =>
    list.map(([first, last]) => [first, last, ['127.0.0.1', 7000 + name.charCodeAt(0), id(name)]]),
  );
  return SlotMap.parse(reply, { host: '127.0.0.1', port: 7000 });
}

const shown = (places: readonly CopyPlace[]): string =>
  places.map(({ slot, master }) => `${slot}${master.slice(0, 1)}`).join(' ');

const before = mapOf({ a: [[0, 99]], b: [[100, 199]], c: [[200, 299]] });
const placed = placesOf([], before);

test('at first a copy lies in the lowest slot of each master', () => {
  assert.equal(shown(placed), '0a 100b 200c');
  assert.equal(shown(placesOf(placed, before)), '0a 100b 200c');
});

test('a slot that was moved to a master does not become its place; the one that gave it away has a new one', () => {
  const moved = mapOf({
    a: [[10, 99]],
    b: [
      [0, 9],
      [100, 199],
    ],
    c: [[200, 299]],
  });
  assert.equal(shown(placesOf(placed, moved)), '0a 10a 100b 200c');
  // It comes back.
  assert.equal(shown(placesOf(placesOf(placed, moved), before)), '0a 100b 200c');
});

test('the place of a copy moves: it is no place any more', () => {
  const moved = mapOf({
    a: [[0, 99]],
    b: [[101, 199]],
    c: [
      [100, 100],
      [200, 299],
    ],
  });
  assert.equal(shown(placesOf(placed, moved)), '0a 101b 200c');
});

test('a replica that takes over keeps the copies that it has', () => {
  const over = mapOf({ a: [[0, 99]], d: [[100, 199]], c: [[200, 299]] });
  assert.equal(shown(placesOf(placed, over)), '0a 100d 200c');
});

test('a master that comes new with slots of others has a copy among them', () => {
  const grown = mapOf({ a: [[5, 99]], b: [[100, 199]], c: [[200, 299]], d: [[0, 4]] });
  assert.equal(shown(placesOf(placed, grown)), '0d 5a 100b 200c');
});

test('as text and back; places of earlier versions name no master', () => {
  assert.deepEqual(parsePlaces(placesText(placed)), placed);
  assert.deepEqual(parsePlaces('0,5461'), [
    { slot: 0, master: '' },
    { slot: 5461, master: '' },
  ]);
});
