import { isMysyncError, type RowKey, type TableSchema, tableRefKey } from '@mysync/core';
import type { Refusal, SinkInspector } from '@mysync/sink';
import { decodeKey } from '@mysync/wire';
import { causeOf, isWithheld, rowOfKey } from '@mysync/writer';
import type { PlacedKey } from './pipeline.ts';
import type { Hindrance } from './report.ts';

/** Rows of a table that are set aside. */
export interface ParkedRows {
  readonly byTarget: ReadonlyMap<string, Hindrance>;
  /** Those that can be stored nowhere, so that no record is their own; by the record's key bytes, base64. */
  readonly nowhere: ReadonlyMap<string, Hindrance>;
  /** Those whose row the log withholds, so that nothing but the source can tell it. */
  readonly withheld: readonly PlacedRow[];
  /** Those whose deletion may be among what the log has forgotten: then nothing would ever release them. */
  readonly afterLoss: readonly PlacedRow[];
}

export interface PlacedRow extends PlacedKey {
  readonly key: RowKey;
  /** null: its name cannot be told by its key. */
  readonly target: string | null;
}

export const NONE_PARKED: ParkedRows = { byTarget: new Map(), nowhere: new Map(), withheld: [], afterLoss: [] };

/** A row's target is told by its key alone: that is all a key that is set aside has. */
export function parkedRowsOf(parked: readonly PlacedKey[], schema: TableSchema, inspector: SinkInspector): ParkedRows {
  const byTarget = new Map<string, Hindrance>();
  const nowhere = new Map<string, Hindrance>();
  const withheld: PlacedRow[] = [];
  const lost: PlacedRow[] = [];
  for (const { partition, entry, afterLoss } of parked) {
    const { first: offset, code, reason } = entry;
    const decoded = decodeKey(Buffer.from(entry.key, 'base64'));
    if (decoded.kind !== 'row' || tableRefKey(decoded.row) !== tableRefKey(schema)) continue;
    const hindrance: Hindrance = { kind: 'parked', partition, offset, code, reason };
    const target = targetOf(decoded.row, schema, inspector);
    const placed = { partition, entry, afterLoss, key: decoded.row, target };
    if (isWithheld(entry)) withheld.push(placed);
    if (afterLoss) lost.push(placed);
    if (target === null) nowhere.set(entry.key, hindrance);
    else byTarget.set(target, hindrance);
  }
  return { byTarget, nowhere, withheld, afterLoss: lost };
}

function targetOf(key: RowKey, schema: TableSchema, inspector: SinkInspector): string | null {
  try {
    return inspector.targetOf({ schema, key, row: rowOfKey(schema, key) });
  } catch (error) {
    if (isMysyncError(error)) return null;
    throw error;
  }
}

/** By target: `refusals` of these targets. */
export function refusedTargets(refusals: readonly Refusal[], targets: readonly string[]): Map<string, Hindrance> {
  return new Map(
    refusals.map(({ index, error }) => [targets[index] ?? '', { kind: 'refused', ...causeOf(error) } as const]),
  );
}
