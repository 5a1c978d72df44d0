/** From where the source is read again when the log is lost (design: when the log itself is lost). Pure. */
import type { Checkpoint, CounterFloor } from '@mysync/checkpoint';
import {
  type ChangeId,
  compareBinlogPositions,
  formatBinlogPosition,
  ORDINAL_BITS,
  type SourcePosition,
} from '@mysync/core';
import { type AppliedMarker, parkedName } from '@mysync/writer';

/** What a sink keeps of one partition; null: nothing. */
export interface MarkedPartition {
  readonly sink: string;
  readonly partition: number;
  readonly marker: AppliedMarker | null;
}

/** Why the source is read again from further back than the checkpoint, or cannot be. */
export interface LaggingPartition {
  readonly sink: string;
  readonly partition: number;
  /** A row that is set aside; absent when the partition itself lags. */
  readonly row?: string;
  /** Begin of the transaction of the last change applied, or the place that its rows are of; null: there is none to go on from. */
  readonly position: string | null;
}

export interface RecoveryPlan {
  readonly position: SourcePosition;
  /** Of the last transaction before the position. */
  readonly transactionCounter: number;
  /** Versions must not fall below what sinks hold of these places on. */
  readonly floors: readonly CounterFloor[];
  readonly lagging: readonly LaggingPartition[];
}

interface Applied {
  readonly version: string;
  readonly change: ChangeId;
}

/**
 * The lowest place of the checkpoint and of every marker that lags behind it.
 *
 * 1. A partition that has applied all that was published up to the checkpoint does not count: what was published beyond that is read again anyway.
 * 2. A row that is set aside counts as what it is: a change that is not applied. Its message was in the lost log.
 * 3. A partition whose last change was a row of a view or of the first snapshot may lack others of it, all named alike, which are not in the source's
 *    log: it counts from the place that they are of, if the reader reads all tables again (`readsAgain`); else it cannot be placed.
 * 4. Versions are a function of the place in the source: each marker says which one belonged to its own, so a counter that jumped in between
 *    jumps there again.
 */
export function planRecovery(
  checkpoint: Checkpoint,
  marked: readonly MarkedPartition[],
  readsAgain: boolean,
): RecoveryPlan {
  const own = { ...checkpoint.position, transactionCounter: checkpoint.transactionCounter };
  const floors: CounterFloor[] = [floorAt(own)];
  const lagging: LaggingPartition[] = [];
  let lowest: CounterFloor | null = null;
  const count = (place: Omit<LaggingPartition, 'position'>, applied: Applied): void => {
    const floor = applied.change.ordinal > 0 || readsAgain ? floorOf(applied) : null;
    lagging.push({ ...place, position: floor === null ? null : formatBinlogPosition(floor) });
    if (floor !== null && (lowest === null || compareBinlogPositions(floor, lowest) < 0)) lowest = floor;
  };
  for (const { sink, partition, marker } of marked) {
    if (marker === null) continue;
    const known = floorOf(marker);
    if (known !== null) floors.push(known);
    const published = checkpoint.partitions[partition];
    if (published !== undefined && marker.nextOffset <= published.offset && !isSame(marker.change, published.change)) {
      count({ sink, partition }, marker);
    }
    for (const entry of marker.parked ?? []) count({ sink, partition, row: parkedName(entry) }, entry.behind);
  }
  const from = lowest === null || compareBinlogPositions(lowest, own) >= 0 ? null : (lowest as CounterFloor);
  return {
    position: from === null ? checkpoint.position : { file: from.file, offset: from.offset, gtidSet: '' },
    transactionCounter: from?.transactionCounter ?? checkpoint.transactionCounter,
    floors: floors
      .filter((floor) => compareBinlogPositions(floor, from ?? own) >= 0)
      .sort((a, b) => compareBinlogPositions(a, b)),
    lagging,
  };
}

/** null: nothing was applied yet. The counter in the version of a view's rows (ordinal 0) is that of the next transaction, too. */
function floorOf({ version, change }: Applied): CounterFloor | null {
  if (change.file === '') return null;
  const counter = Number(BigInt(version) >> BigInt(ORDINAL_BITS)) - Math.floor(change.ordinal / 2 ** ORDINAL_BITS);
  return floorAt({ ...change, transactionCounter: Math.max(0, counter - 1) });
}

function floorAt({ file, offset, transactionCounter }: CounterFloor): CounterFloor {
  return { file, offset, transactionCounter };
}

/** All that was published up to the one was applied with the other. */
function isSame(a: ChangeId, b: ChangeId): boolean {
  if (a.file !== b.file || a.offset !== b.offset || a.ordinal !== b.ordinal) return false;
  return a.ordinal > 0 || a.file === '';
}
