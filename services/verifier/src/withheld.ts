/** The way out for rows that the log does not hold: a repair writes them from the source, or removes them; what it mended waits for nothing any more. */
import { type Clock, changeVersion } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import { isWithheld, MarkerHold } from '@mysync/writer';
import type { PlacedRow } from './hindrances.ts';
import type { Settled } from './pipeline.ts';

/**
 * Of a row read after that moment: not below anything that had arrived, below every change to come. It is that of the rows and the sweep of a
 * table read again there: a sweep that is still to come leaves what was repaired, too.
 */
export function repairVersion({ transactionCounter }: Settled): bigint {
  return changeVersion(transactionCounter + 1, 0);
}

/**
 * Takes the keys out of the markers. The sink holds of each what the source held at `settled`, or something newer.
 *
 * An entry goes only while its newest change is no newer than that: one that was withheld since stays. So does one that is set aside for another
 * reason than that, but for rows that are gone from the source where deletions were lost. Killed in between, the row is right and still set aside: the next repair releases it.
 */
export async function releaseMended({
  right,
  settled,
  ...ends
}: {
  readonly right: readonly PlacedRow[];
  readonly settled: Settled;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}): Promise<void> {
  const covered = repairVersion(settled);
  const { topic } = settled;
  for (const partition of new Set(right.map((row) => row.partition))) {
    const rows = right.filter((row) => row.partition === partition);
    const keys = new Map(rows.map(({ entry, afterLoss }) => [entry.key, afterLoss]));
    const hold = new MarkerHold({ ...ends, topic, partition, where: {} });
    await hold.drop((entry) => {
      const afterLoss = keys.get(entry.key);
      if (afterLoss === undefined || BigInt(entry.version) > covered) return false;
      return afterLoss || isWithheld(entry);
    });
  }
}
