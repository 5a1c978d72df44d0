/**
 * What the store knows of a consumer group, and the steps that change it. Every function here runs inside a write
 * transaction or on one snapshot, so members see the same facts in the same order.
 *
 * A partition belongs to whoever's token stands in its ownership entry; a token is made anew at each acquisition, so a
 * commit of an earlier ownership, even by the same member, is refused. A member is out when it left, when its process is
 * gone (seen at once on the same machine), or when it has not beaten within its lease (frozen).
 */
import type { OffsetRange } from '@mysync/transport';
import { planOwners } from './group-plan.ts';
import { metaKey, type TopicEntry } from './layout.ts';
import { isGone, type ProcessIdentity, randomId, thisProcess } from './process-identity.ts';
import type { Store } from './store.ts';

interface MemberEntry {
  readonly id: string;
  readonly process: ProcessIdentity;
  /** Milliseconds of the machine's monotonic clock, which all its processes share. */
  readonly beatMs: number;
  readonly leaseMs: number;
}

interface GroupEntry {
  /** In the order in which they joined. */
  readonly members: readonly MemberEntry[];
}

interface OwnershipEntry {
  readonly member: string | null;
  readonly token: string | null;
  readonly committed: number | null;
}

const unowned: OwnershipEntry = { member: null, token: null, committed: null };

export interface GroupPlace {
  readonly store: Store;
  readonly topicId: string;
  readonly entry: TopicEntry;
  readonly group: string;
}

export interface Acquired {
  readonly partition: number;
  readonly token: string;
  readonly committed: number | null;
  readonly range: OffsetRange;
}

export interface GroupView {
  /** False when this member was put out. */
  readonly isMember: boolean;
  /** Per partition the member that should own it. */
  readonly target: readonly (string | null)[];
  /** Per partition the token that it is held under. */
  readonly tokens: readonly (string | null)[];
  /** Something is to be written: a member is out, or a free partition is this member's to take or to give up. */
  readonly isStale: boolean;
  /** Milliseconds since this member's last beat. */
  readonly sinceBeatMs: number;
}

/** CLOCK_MONOTONIC: the same for all processes since the machine started. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

export function groupKey(place: GroupPlace): string {
  return metaKey.group(place.topicId, place.group);
}

export function readOwnership(place: GroupPlace, partition: number): OwnershipEntry {
  return place.store.read<OwnershipEntry>(metaKey.ownership(place.topicId, place.group, partition)) ?? unowned;
}

function putOwnership(place: GroupPlace, partition: number, ownership: OwnershipEntry): void {
  place.store.put(metaKey.ownership(place.topicId, place.group, partition), ownership);
}

function readMembers(place: GroupPlace): readonly MemberEntry[] {
  return place.store.read<GroupEntry>(groupKey(place))?.members ?? [];
}

function isOut(member: MemberEntry, now: number): boolean {
  return now - member.beatMs > member.leaseMs || now < member.beatMs || isGone(member.process);
}

function readOwnerships(place: GroupPlace): OwnershipEntry[] {
  return Array.from({ length: place.entry.partitions }, (_, partition) => readOwnership(place, partition));
}

/**
 * Per partition the member that owns it, of those that are in the group. What stands under this member's own name and is not busy
 * here is nobody's: it was to be given up and the write failed, or it was taken and the answer was lost.
 */
function ownersOf(
  ownerships: readonly OwnershipEntry[],
  ids: readonly string[],
  memberId: string,
  busy: ReadonlySet<number>,
): (string | null)[] {
  return ownerships.map(({ member }, partition) => {
    const isOrphan = member === memberId && !busy.has(partition);
    return member !== null && ids.includes(member) && !isOrphan ? member : null;
  });
}

/** What a member sees without writing anything. `busy`: partitions that have a handler here, also one of an earlier ownership. */
export function view(place: GroupPlace, memberId: string, busy: ReadonlySet<number>): GroupView {
  const now = machineMs();
  const members = readMembers(place);
  const mine = members.find(({ id }) => id === memberId);
  const ids = members.map(({ id }) => id);
  const ownerships = readOwnerships(place);
  const owners = ownersOf(ownerships, ids, memberId, busy);
  const target = planOwners(ids, owners);
  const others = members.filter(({ id }) => id !== memberId);
  const free = owners.some((owner, partition) => {
    const isMine = target[partition] === memberId || ownerships[partition]?.member === memberId;
    return owner === null && isMine && !busy.has(partition);
  });
  return {
    isMember: mine !== undefined,
    target,
    tokens: ownerships.map(({ token }) => token),
    isStale: free || others.some((member) => isOut(member, now)),
    sinceBeatMs: mine === undefined ? 0 : now - mine.beatMs,
  };
}

/** Inside a write: joins or beats, puts out who is out, and takes the free partitions that are this member's. */
export function step(place: GroupPlace, memberId: string, leaseMs: number, busy: ReadonlySet<number>): Acquired[] {
  const { store } = place;
  const now = machineMs();
  const before = readMembers(place);
  const me: MemberEntry = { id: memberId, process: thisProcess(), beatMs: now, leaseMs };
  const members = before.flatMap((member) => {
    if (member.id === memberId) return [me];
    return isOut(member, now) ? [] : [member];
  });
  if (!members.includes(me)) members.push(me);
  const changed = members.map(({ id }) => id).join() !== before.map(({ id }) => id).join();
  store.put(groupKey(place), { members } satisfies GroupEntry);
  const ids = members.map(({ id }) => id);
  const ownerships = readOwnerships(place);
  const owners = ownersOf(ownerships, ids, memberId, busy);
  const target = planOwners(ids, owners);
  let isFreed = false;
  const acquired: Acquired[] = [];
  ownerships.forEach((ownership, partition) => {
    if (owners[partition] !== null) return;
    if (target[partition] === memberId && !busy.has(partition)) {
      const token = `${memberId}:${randomId()}`;
      const { committed } = ownership;
      const state = store.partition(place.topicId, partition);
      putOwnership(place, partition, { member: memberId, token, committed });
      acquired.push({ partition, token, committed, range: { earliest: state?.earliest ?? 0, end: state?.end ?? 0 } });
    } else if (ownership.member !== null) {
      putOwnership(place, partition, { ...ownership, member: null, token: null });
      isFreed = true;
    }
  });
  if (changed || isFreed || acquired.length > 0) store.announce(groupKey(place));
  return acquired;
}

/** Inside a write: gives a partition up, if it is still held under this token. */
export function giveUp(place: GroupPlace, partition: number, token: string): void {
  const ownership = readOwnership(place, partition);
  if (ownership.token !== token) return;
  putOwnership(place, partition, { ...ownership, member: null, token: null });
  place.store.announce(groupKey(place));
}

/** Inside a write: leaves the group. */
export function leave(place: GroupPlace, memberId: string): void {
  const members = readMembers(place);
  if (!members.some(({ id }) => id === memberId)) return;
  place.store.put(groupKey(place), { members: members.filter(({ id }) => id !== memberId) } satisfies GroupEntry);
  readOwnerships(place).forEach((ownership, partition) => {
    if (ownership.member === memberId) putOwnership(place, partition, { ...ownership, member: null, token: null });
  });
  place.store.announce(groupKey(place));
}

/** Inside a write: stores the next offset to read; false when the partition is not held under this token any more. */
export function commitOffset(place: GroupPlace, partition: number, token: string, nextOffset: number): boolean {
  const ownership = readOwnership(place, partition);
  if (ownership.token !== token) return false;
  putOwnership(place, partition, { ...ownership, committed: nextOffset });
  return true;
}
