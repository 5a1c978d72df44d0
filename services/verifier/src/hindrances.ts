import { isMysyncError, type TableSchema, tableRefKey } from '@mysync/core';
import type { Refusal, SinkInspector } from '@mysync/sink';
import { decodeKey } from '@mysync/wire';
import { causeOf } from '@mysync/writer';
import type { PlacedKey } from './pipeline.ts';
import type { Hindrance } from './report.ts';

/** By target. A row's target is told by its key alone: that is all a key that is set aside has. */
export function parkedTargets(
  parked: readonly PlacedKey[],
  schema: TableSchema,
  inspector: SinkInspector,
): ReadonlyMap<string, Hindrance> {
  const targets = new Map<string, Hindrance>();
  for (const { partition, entry } of parked) {
    const { first: offset, code, reason } = entry;
    const target = targetOf(entry.key, schema, inspector);
    if (target !== null) targets.set(target, { kind: 'parked', partition, offset, code, reason });
  }
  return targets;
}

function targetOf(recordKey: string, schema: TableSchema, inspector: SinkInspector): string | null {
  const decoded = decodeKey(Buffer.from(recordKey, 'base64'));
  if (decoded.kind !== 'row' || tableRefKey(decoded.row) !== tableRefKey(schema)) return null;
  const key = decoded.row;
  const row = schema.columns.map(({ name }) => key.values[key.columns.indexOf(name)]);
  try {
    return inspector.targetOf({ schema, key, row });
  } catch (error) {
    // a row that can be stored nowhere: no record is its own
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
