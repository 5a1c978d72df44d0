/** Who should own which partition: pure, the same for every member that looks at the same facts. */

/**
 * Shares partitions evenly (counts differ by at most one) and leaves as many as possible where they are.
 *
 * @param members ids in the order in which they joined
 * @param owners per partition the member that owns it now, or null
 * @returns per partition the member that should own it, or null when there are no members
 */
export function planOwners(members: readonly string[], owners: readonly (string | null)[]): (string | null)[] {
  const target: (string | null)[] = owners.map(() => null);
  if (members.length === 0) return target;
  const owned = new Map<string, number[]>(members.map((id) => [id, []]));
  owners.forEach((owner, partition) => {
    if (owner !== null) owned.get(owner)?.push(partition);
  });
  const least = Math.floor(owners.length / members.length);
  // Whoever has more already keeps the one that is over.
  const byOwned = members
    .map((id, order) => ({ id, order, count: owned.get(id)?.length ?? 0 }))
    .sort((a, b) => b.count - a.count || a.order - b.order);
  const room = new Map<string, number>();
  byOwned.forEach(({ id }, place) => {
    room.set(id, least + (place < owners.length % members.length ? 1 : 0));
  });
  for (const [id, partitions] of owned) {
    for (const partition of partitions) {
      const left = room.get(id) ?? 0;
      if (left === 0) break;
      target[partition] = id;
      room.set(id, left - 1);
    }
  }
  const takers = members.flatMap((id) => Array.from({ length: room.get(id) ?? 0 }, () => id));
  target.forEach((id, partition) => {
    if (id === null) target[partition] = takers.shift() ?? null;
  });
  return target;
}
