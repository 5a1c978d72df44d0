import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Unstored } from './unstored.ts';

test('never given, or given behind a refusal: and that only once everything goes again', () => {
  const unstored = new Unstored();
  assert.ok(unstored.has(11));
  unstored.gives(13);
  unstored.gives(16);
  assert.deepEqual([unstored.has(13), unstored.has(16), unstored.has(17)], [false, false, true]);
  unstored.refused(14);
  assert.equal(unstored.has(14), false, 'nobody sends it again yet');
  unstored.rewind();
  assert.deepEqual([unstored.has(13), unstored.has(14), unstored.has(16)], [false, true, true]);
  unstored.gives(15);
  assert.equal(unstored.has(15), false, 'on its way');
  unstored.rewind();
  assert.deepEqual([unstored.has(15), unstored.has(16)], [false, true], 'given, and no answer: perhaps stored');
});

test('what is said to be in no log was not stored when it was given last, whatever answers were lost', () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  let sure = 0;
  for (let run = 0; run < 3_000; run += 1) {
    const unstored = new Unstored();
    /** Of each sequence given: whether the log stored it then. */
    const storedLast = new Map<number, boolean>();
    for (let generation = 0; generation < 6; generation += 1) {
      // some of what is held was acked before, so the window begins later
      let next = 1 + random(3) * generation;
      const open: { readonly first: number; readonly last: number }[] = [];
      for (let batches = random(5); batches > 0; batches -= 1) {
        const last = next + random(4);
        for (let at = next; at <= last; at += 1) {
          if (!unstored.has(at)) continue;
          assert.notEqual(storedLast.get(at), true, `run ${run}, generation ${generation}: ${at} is stored`);
          if (storedLast.has(at)) sure += 1;
        }
        unstored.gives(last);
        open.push({ first: next, last });
        next = last + 1;
      }
      // the log stores the first ones in order, then refuses one, or nobody hears of it any more
      const stores = random(open.length + 1);
      for (const [place, { first, last }] of open.entries()) {
        for (let at = first; at <= last; at += 1) storedLast.set(at, place < stores);
        if (place === stores && random(2) === 0) unstored.refused(first);
      }
      unstored.rewind();
    }
  }
  assert.ok(sure > 2_000, `${sure}`);
});
