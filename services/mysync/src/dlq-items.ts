/** A change that a sink could not take, as the operator sees it: set aside beside the sink's data, or in the topic of dead letters. */
import { formatTableRef } from '@mysync/core';
import { type ParkedKey, parkedName, parkedRow, type StoredLetter } from '@mysync/writer';

/** One change that a sink could not take. */
export interface DlqItem {
  /** SOURCE/PARTITION/OFFSET, of the change that was refused first. */
  readonly id: string;
  readonly kind: 'parked' | 'dead-letter';
  readonly sink: string;
  readonly source: string;
  readonly partition: number;
  readonly offset: number;
  readonly table: string;
  readonly key: string;
  /** What the newest change of the key does. */
  readonly operation: 'put' | 'delete';
  readonly newestOffset: number;
  readonly waiting: number;
  readonly since: string;
  readonly code: string;
  readonly reason: string;
}

export function parkedItem(
  entry: ParkedKey,
  place: { readonly sink: string; readonly source: string; readonly partition: number },
): DlqItem {
  return {
    id: `${place.source}/${place.partition}/${entry.first}`,
    kind: 'parked',
    ...place,
    offset: entry.first,
    ...rowOf(entry.key),
    operation: entry.operation,
    newestOffset: entry.offset,
    waiting: entry.waiting,
    since: new Date(entry.sinceMs).toISOString(),
    code: entry.code,
    reason: entry.reason,
  };
}

export function letterItem({ key, letter }: StoredLetter): DlqItem {
  const { sink, source, partition, offset, operation, code, reason, atMs } = letter;
  return {
    id: `${source}/${partition}/${offset}`,
    kind: 'dead-letter',
    sink,
    source,
    partition,
    offset,
    ...rowOf(Buffer.from(key, 'latin1').toString('base64')),
    operation,
    newestOffset: offset,
    waiting: 0,
    since: new Date(atMs).toISOString(),
    code,
    reason,
  };
}

function rowOf(key: string): { table: string; key: string } {
  const name = formatTableRef(parkedRow({ key }));
  return { table: name, key: parkedName({ key }).slice(name.length + 1) };
}
