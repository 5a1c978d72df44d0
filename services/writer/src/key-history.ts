import { isMysyncError, tableRefKey } from '@mysync/core';
import type { IncomingRecord, Transport } from '@mysync/transport';
import { keyKind, MessageDecoder, payloadOf } from '@mysync/wire';
import { CollapsingBatch } from './collapse.ts';
import { copyRecord } from './dead-letters.ts';
import { latin1, planOf, type RowStateChange, rowChange } from './row-change.ts';

export interface HistoryRange {
  readonly log: Pick<Transport, 'read' | 'offsetRanges'>;
  readonly topic: string;
  readonly partition: number;
  /** Exclusive. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/** What the log says of a key. */
export interface KeyState {
  readonly change: RowStateChange;
  /** False when the row is merged out of parts of which the log may have forgotten some. */
  readonly whole: boolean;
}

/**
 * The newest state of each key as the log tells it: keys (latin1) with the offset from which on to look. Keys that it says nothing of
 * are not in the answer; `cleared`: the row went with its table (truncate, drop, sweep). Rows that came in part are merged.
 */
export async function newestStates(
  wanted: ReadonlyMap<string, number>,
  { log, topic, partition, until, signal }: HistoryRange,
): Promise<ReadonlyMap<string, KeyState | 'cleared'>> {
  const states = new Map<string, KeyState | 'cleared'>();
  const earliest = (await log.offsetRanges(topic))[partition]?.earliest ?? 0;
  const from = Math.max(earliest, Math.min(...wanted.values()));
  if (wanted.size === 0 || from >= until) return states;
  const decoder = new MessageDecoder();
  const cleared = new Map<string, bigint>();
  try {
    for await (const { records } of log.read({ topic, partition, from, until, signal })) {
      for (const record of records) {
        const kind = keyKind(record.key);
        if (kind === 'truncate' || kind === 'sweep') clear(states, cleared, record, decoder);
        if (kind !== 'row') continue;
        const key = latin1(record.key);
        const first = wanted.get(key);
        if (first === undefined || record.offset < first) continue;
        const change = changeOf(record, decoder);
        if (change === null) continue;
        const before = states.get(key);
        // Sent again, or of a reader that was replaced: an older state.
        const newest = before === 'cleared' ? cleared.get(tableRefKey(change.schema)) : before?.change.version;
        if (newest !== undefined && change.version < newest) continue;
        states.set(key, merged(before === 'cleared' ? undefined : before, change, first >= earliest));
      }
    }
  } catch (error) {
    // The log was cut off while it was read: what was found still stands.
    if (!isMysyncError(error, 'TRANSPORT_OFFSET_OUT_OF_RANGE')) throw error;
  }
  signal.throwIfAborted();
  return states;
}

/** The rows of its table that are older than it are gone. */
function clear(
  states: Map<string, KeyState | 'cleared'>,
  cleared: Map<string, bigint>,
  record: IncomingRecord,
  decoder: MessageDecoder,
): void {
  const payload = payloadOf(record);
  const message = payload === null ? null : decoder.decode(payload);
  if (message === null || !('table' in message)) return;
  const { version } = message.delivery;
  const table = tableRefKey(message.table);
  cleared.set(table, version);
  for (const [key, state] of states) {
    if (state === 'cleared' || tableRefKey(state.change.schema) !== table) continue;
    if (state.change.version < version) states.set(key, 'cleared');
  }
}

/** The change in a record; null where there is none. */
export function changeOf(record: IncomingRecord, decoder: MessageDecoder): RowStateChange | null {
  const copy = copyRecord(record);
  const payload = payloadOf(copy);
  if (payload === null) return null;
  const message = decoder.decode(payload);
  return 'schema' in message ? rowChange(message, copy, planOf(message.schema)) : null;
}

function merged(before: KeyState | undefined, change: RowStateChange, isComplete: boolean): KeyState {
  if (change.kind !== 'put' || !change.row.includes(undefined)) return { change, whole: true };
  if (before === undefined) return { change, whole: isComplete };
  const batch = new CollapsingBatch();
  batch.add('', before.change);
  const fits = batch.add('', change);
  const [row] = batch.take().changes;
  // Parts of two schemas cannot be merged here.
  return fits && row !== undefined ? { change: row, whole: before.whole } : { change, whole: false };
}
