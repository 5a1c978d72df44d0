/**
 * What the applied marker says of deletions that the log had forgotten before they were read: rows that are gone from the source may stand in the
 * sink. Spec: docs/spec/writer.md, docs/adr/0193.
 *
 * 1. Without somebody's word (`until`) nothing is passed: the partition stands (`stoppedAt`).
 * 2. The word is about the log as it was when it was given: what is missing from `until` on stops the partition again.
 * 3. Each step that passes a forgotten stretch has a new `id`, in the very step: whoever compared the sink under another id saw it before.
 * 4. It stays until every table was compared and mended under one id; it moves with the marker, so a sink that is put back to an older state has
 *    what was true of that.
 */
export interface LostDeletions {
  readonly id: string;
  /** When it was found, in milliseconds since 1970. */
  readonly foundMs: number;
  /** Stretches that begin before this offset may be passed. Absent: nobody said so, and nothing was passed. */
  readonly until?: number;
  /** The partition stands: nothing is in the log from here on, up to the next record. */
  readonly stoppedAt?: number;
}

/** What a writer carries on with: whether it must stop is for itself to find out. */
export function carriedOn(lost: LostDeletions | undefined): LostDeletions | null {
  if (lost?.until === undefined) return null;
  const { stoppedAt: _, ...rest } = lost;
  return rest;
}

export function isLostDeletions(value: unknown): value is LostDeletions {
  if (typeof value !== 'object' || value === null) return false;
  const { id, foundMs, until, stoppedAt } = value as Partial<LostDeletions>;
  return (
    typeof id === 'string' &&
    Number.isFinite(foundMs) &&
    (until === undefined || Number.isSafeInteger(until)) &&
    (stoppedAt === undefined || Number.isSafeInteger(stoppedAt))
  );
}
