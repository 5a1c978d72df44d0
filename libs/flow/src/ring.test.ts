import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Ring } from './ring.ts';

test('behaves as an array, across growth and wrapping', () => {
  const step = fc.constantFrom('push', 'push', 'push', 'shift', 'shift', 'clear') as fc.Arbitrary<string>;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: '+2' }), (steps) => {
      const ring = new Ring<number>(2);
      const array: number[] = [];
      for (const [n, what] of steps.entries()) {
        if (what === 'push') {
          ring.push(n);
          array.push(n);
        } else if (what === 'clear' && n % 5 === 0) {
          ring.clear();
          array.length = 0;
        } else if (array.length > 0) {
          assert.equal(ring.shift(), array.shift());
        }
        assert.deepEqual(
          Array.from({ length: ring.length }, (_, i) => ring.at(i)),
          array,
        );
      }
    }),
  );
});
