/**
 * Who gets which partition. Pure; run by the member that the coordinator made leader.
 *
 * 1. Members get equal numbers of partitions, to within one.
 * 2. Members keep what they hold as far as that allows: nobody else's work is interrupted when a member comes or goes.
 * 3. A partition that changes hands is given to nobody in the round in which its holder learns that it must give it up
 *    (cooperative rebalancing, KIP-429): the holder finishes, gives it up by joining again, and the next round gives it on.
 */
export interface Candidate {
  readonly memberId: string;
  readonly owned: readonly number[];
  /** Of the claim to `owned`. */
  readonly generation: number;
}

export function assignPartitions(candidates: readonly Candidate[], partitions: number): Map<string, number[]> {
  const given = new Map<string, number[]>(candidates.map(({ memberId }) => [memberId, []]));
  if (candidates.length === 0) return given;
  const holders = new Map<number, Candidate>();
  const claimed = new Map<number, Set<string>>();
  for (const candidate of candidates) {
    for (const partition of candidate.owned) {
      if (partition >= partitions) continue;
      const claims = claimed.get(partition) ?? new Set();
      claimed.set(partition, claims.add(candidate.memberId));
      const other = holders.get(partition);
      if (other === undefined || other.generation < candidate.generation) holders.set(partition, candidate);
    }
  }
  const held = new Map<string, number[]>(candidates.map(({ memberId }) => [memberId, []]));
  for (let partition = 0; partition < partitions; partition++) {
    const holder = holders.get(partition);
    if (holder !== undefined) held.get(holder.memberId)?.push(partition);
  }
  // Those who hold most keep the one more that not all can have.
  const order = [...held].sort(([a, mine], [b, theirs]) => theirs.length - mine.length || (a < b ? -1 : 1));
  const least = Math.floor(partitions / candidates.length);
  let more = partitions % candidates.length;
  const limits = new Map<string, number>();
  for (const [memberId] of order) limits.set(memberId, more-- > 0 ? least + 1 : least);

  const free = new Set(Array.from({ length: partitions }, (_, partition) => partition));
  for (const [memberId, partitionsHeld] of order) {
    for (const partition of partitionsHeld.slice(0, limits.get(memberId))) {
      given.get(memberId)?.push(partition);
      free.delete(partition);
    }
  }
  for (const [memberId] of [...order].reverse()) {
    const mine = given.get(memberId) ?? [];
    let room = (limits.get(memberId) ?? 0) - mine.length;
    for (const partition of free) {
      if (room <= 0) break;
      room--;
      free.delete(partition);
      const claims = claimed.get(partition);
      if (claims === undefined || (claims.size === 1 && claims.has(memberId))) mine.push(partition);
    }
  }
  for (const mine of given.values()) mine.sort((a, b) => a - b);
  return given;
}
