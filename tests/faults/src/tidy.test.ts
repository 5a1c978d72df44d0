import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tidy } from './tidy.ts';

test('every step is taken, whatever becomes of the others', async () => {
  const taken: string[] = [];
  const troubles = await tidy(
    [
      ['first', () => Promise.reject(new Error('no'))],
      [
        'second',
        async () => {
          taken.push('second');
          // never done
          await new Promise(() => undefined);
        },
      ],
      ['third', async () => taken.push('third')],
    ],
    30,
  );
  assert.deepEqual(taken, ['second', 'third']);
  assert.deepEqual(troubles, ['first: no', 'second: not done within 0.03 s']);
});
