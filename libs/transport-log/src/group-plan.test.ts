import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { planOwners } from './group-plan.ts';

const ids = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 6 });
const situation = ids.chain((members) =>
  fc.tuple(
    fc.constant(members),
    fc.array(members.length === 0 ? fc.constant(null) : fc.option(fc.constantFrom(...members)), { maxLength: 12 }),
  ),
);

function counts(members: readonly string[], owners: readonly (string | null)[]): number[] {
  return members.map((id) => owners.filter((owner) => owner === id).length);
}

test('every partition has an owner and nobody has two more than another', () => {
  fc.assert(
    fc.property(situation, ([members, owners]) => {
      const target = planOwners(members, owners);
      assert.equal(target.length, owners.length);
      if (members.length === 0 || owners.length === 0) return;
      assert.ok(target.every((id) => id !== null && members.includes(id)));
      const shares = counts(members, target);
      assert.ok(Math.max(...shares) - Math.min(...shares) <= 1);
    }),
  );
});

test('a plan that was followed is not changed, also half way', () => {
  fc.assert(
    fc.property(situation, fc.nat(), ([members, owners], step) => {
      const target = planOwners(members, owners);
      assert.deepEqual(planOwners(members, target), target);
      // One partition after the other is given up (null) and taken: the plan stays.
      const moving = [...owners];
      const changes = target.flatMap((id, partition) => (id === owners[partition] ? [] : [partition]));
      for (const partition of changes.slice(0, step % (changes.length + 1))) {
        moving[partition] = null;
        assert.deepEqual(counts(members, planOwners(members, moving)).sort(), counts(members, target).sort());
        moving[partition] = planOwners(members, moving)[partition] ?? null;
      }
    }),
  );
});

test('no more partitions move than must', () => {
  fc.assert(
    fc.property(situation, ([members, owners]) => {
      const target = planOwners(members, owners);
      const kept = target.filter((id, partition) => id !== null && id === owners[partition]).length;
      // Each member can keep at most its share; those with the most may have the larger shares.
      const least = members.length === 0 ? 0 : Math.floor(owners.length / members.length);
      const larger = members.length === 0 ? 0 : owners.length % members.length;
      const sorted = counts(members, owners).sort((a, b) => b - a);
      const possible = sorted.reduce((sum, count, place) => sum + Math.min(count, least + (place < larger ? 1 : 0)), 0);
      assert.equal(kept, possible);
    }),
  );
});
