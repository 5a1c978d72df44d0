import type { ChangeId } from '@mysync/core';
import type { GuardState } from '@mysync/flow';
import { writerErrors } from './errors.ts';

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
    Number.isSafeInteger(marker.nextOffset) &&
    typeof marker.guard === 'object' &&
    marker.guard !== null &&
    typeof marker.version === 'string' &&
    typeof marker.change === 'object' &&
    marker.change !== null
  );
}
