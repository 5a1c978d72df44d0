import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { assignPartitions, type Candidate } from './assignor.ts';

const candidate = (memberId: string, owned: number[] = [], generation = 1): Candidate => ({
  memberId,
  owned,
  generation,
});

test('a newcomer gets nothing that is held, and all of its share once it was given up', () => {
  const first = assignPartitions([candidate('a', [0, 1, 2, 3]), candidate('b')], 4);
  assert.deepEqual(first.get('a'), [0, 1]);
  assert.deepEqual(first.get('b'), []);
  const second = assignPartitions([candidate('a', [0, 1]), candidate('b')], 4);
  assert.deepEqual(
    [...second],
    [
      ['a', [0, 1]],
      ['b', [2, 3]],
    ],
  );
});

test('of two that claim a partition the one of the newer generation has it', () => {
  const given = assignPartitions([candidate('a', [0, 1], 3), candidate('b', [0], 4)], 2);
  assert.deepEqual(given.get('a'), [1]);
  // Not given on in this round, since the other has to hear of it first; kept by the one that holds it.
  assert.deepEqual(given.get('b'), [0]);
});

test('rounds end with everything assigned, evenly, and without two holders at any moment', () => {
  const world = fc.record({
    partitions: fc.integer({ min: 1, max: 40 }),
    owned: fc.array(fc.array(fc.nat(39), { maxLength: 40 }), { minLength: 1, maxLength: 8 }),
  });
  fc.assert(
    fc.property(world, ({ partitions, owned }) => {
      const taken = new Set<number>();
      let holds = new Map<string, number[]>();
      owned.forEach((claims, index) => {
        const mine = [...new Set(claims)].filter((partition) => partition < partitions && !taken.has(partition));
        for (const partition of mine) taken.add(partition);
        holds.set(`m${index}`, mine);
      });
      const before = holds;
      const moved = new Set<number>();
      for (let round = 0; round < 3; round++) {
        const candidates = [...holds].map(([memberId, mine]) => candidate(memberId, mine, round));
        const given = assignPartitions(candidates, partitions);
        const holder = new Map<number, string>();
        for (const [memberId, mine] of holds) for (const partition of mine) holder.set(partition, memberId);
        for (const [memberId, mine] of given) {
          for (const partition of mine) {
            const other = holder.get(partition);
            assert.ok(other === undefined || other === memberId, `${partition} was given while ${other} holds it`);
          }
        }
        for (const [memberId, mine] of holds) {
          for (const partition of mine) if (!given.get(memberId)?.includes(partition)) moved.add(partition);
        }
        holds = given;
      }
      const all = [...holds.values()].flat().sort((a, b) => a - b);
      assert.deepEqual(
        all,
        Array.from({ length: partitions }, (_, partition) => partition),
      );
      const sizes = [...holds.values()].map((mine) => mine.length);
      assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1, 'even to within one');
      const least = Math.floor(partitions / holds.size);
      const tooMany = [...before.values()].reduce((sum, mine) => sum + Math.max(0, mine.length - least), 0);
      assert.ok(moved.size <= tooMany, 'no more moves than evenness asks for');
    }),
  );
});
