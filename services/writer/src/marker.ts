import type { ChangeId } from '@mysync/core';
import type { GuardState } from '@mysync/flow';
import type { EarlierPlace } from './earlier-places.ts';
import { writerErrors } from './errors.ts';
import { isLostDeletions, type LostDeletions } from './lost-deletions.ts';
import { isParkedKey, type ParkedKey } from './parked-keys.ts';

/**
 * How far a sink surely is in one partition: kept by the sink beside its data and moved with each batch, by
 * compare-and-set on its text. It is the truth over the committed offset.
 */
export interface AppliedMarker {
  readonly topicId: string;
  readonly partitions: number;
  /** Random name of the loop that wrote it: a loop that takes over writes its own at once, which shuts the last one out. */
  readonly owner: string;
  /** Next offset to read. */
  readonly nextOffset: number;
  readonly guard: GuardState;
  /** Version (decimal digits) and name of the last change applied: what a recovery of a lost log starts from. */
  readonly version: string;
  readonly change: ChangeId;
  /** Everything from `nextOffset` on was stored after this time, in milliseconds since 1970. Absent in markers of the first days. */
  readonly unreadSinceMs?: number;
  /** Keys that are set aside, with the newest change of each. Absent when there are none. */
  readonly parked?: readonly ParkedKey[];
  /** Deletions that the log had forgotten before they were read. Absent when there are none. */
  readonly lost?: LostDeletions;
  /** Which servers held the data when it was written, and when that was (ms since 1970), where the sink tells; with it, where the marker stood before. */
  readonly holders?: string;
  readonly heldAtMs?: number;
  readonly earlier?: readonly EarlierPlace[];
}

const FORMAT = 1;

export function formatMarker(marker: AppliedMarker): string {
  return JSON.stringify({ format: FORMAT, ...marker });
}

export function parseMarker(text: string, where: Readonly<Record<string, string | number>>): AppliedMarker {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw writerErrors.WRITER_MARKER_INVALID({ message: 'the applied marker is not readable', where, cause });
  }
  if (!isMarker(parsed)) {
    throw writerErrors.WRITER_MARKER_INVALID({ message: `the applied marker has another form: ${text}`, where });
  }
  const { format: _, ...marker } = parsed;
  return marker;
}

function isMarker(value: unknown): value is AppliedMarker & { format: number } {
  if (typeof value !== 'object' || value === null) return false;
  const marker = value as Partial<AppliedMarker> & { format?: unknown };
  return (
    marker.format === FORMAT &&
    typeof marker.topicId === 'string' &&
    Number.isSafeInteger(marker.partitions) &&
    isPlace(marker) &&
    (marker.unreadSinceMs === undefined || Number.isFinite(marker.unreadSinceMs)) &&
    (marker.parked === undefined || (Array.isArray(marker.parked) && marker.parked.every(isParkedKey))) &&
    (marker.lost === undefined || isLostDeletions(marker.lost)) &&
    (marker.holders === undefined || typeof marker.holders === 'string') &&
    (marker.heldAtMs === undefined || Number.isFinite(marker.heldAtMs)) &&
    (marker.earlier === undefined || (Array.isArray(marker.earlier) && marker.earlier.every(isEarlierPlace)))
  );
}

function isPlace({ nextOffset, guard, version, change }: Partial<AppliedMarker>): boolean {
  return (
    Number.isSafeInteger(nextOffset) &&
    isGuardState(guard) &&
    typeof version === 'string' &&
    /^\d+$/.test(version) &&
    typeof change === 'object' &&
    change !== null
  );
}

function isEarlierPlace(value: unknown): value is EarlierPlace {
  if (typeof value !== 'object' || value === null) return false;
  const place = value as Partial<EarlierPlace>;
  return isPlace(place) && Number.isFinite(place.unreadSinceMs) && Number.isFinite(place.atMs);
}

function isGuardState(value: unknown): value is GuardState {
  if (typeof value !== 'object' || value === null) return false;
  const { epoch, generation, sequence, offset, seenSince, closed, nextOffset } = value as Partial<GuardState>;
  const numbers = [epoch, generation, sequence, offset, seenSince, nextOffset];
  return numbers.every((number) => Number.isSafeInteger(number)) && typeof closed === 'boolean';
}
