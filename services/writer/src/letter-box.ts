import { coreErrors, isMysyncError } from '@mysync/core';
import type { Publisher, TopicSpec, Transport } from '@mysync/transport';
import { DEAD_LETTER_HEADER, type DeadLetter } from './dead-letters.ts';
import { writerErrors } from './errors.ts';
import type { DeskResult } from './poison-desk.ts';
import { latin1 } from './row-change.ts';

/** Header of the record of an act: JSON, an `Act`. */
export const ACT_HEADER = 'mysync-dlq-act';
const ACT_KEY = Buffer.from('mysync-dlq-act');

/** A dead letter and where it lies. */
export interface StoredLetter {
  /** The record's key bytes as a latin1 string. */
  readonly key: string;
  readonly letter: DeadLetter;
  /** Offset in the topic of dead letters. */
  readonly at: number;
}

export interface ActItem {
  readonly id: string;
  readonly kind: 'parked' | 'dead-letter';
  /** Partition and offset in the source's topic. */
  readonly partition: number;
  readonly offset: number;
  /** Table and key, for people. */
  readonly row: string;
  readonly code: string;
  readonly result?: DeskResult['result'];
}

/** What somebody did about changes that a sink could not take. Written before (`asked`) and after (`done`). */
export interface Act {
  readonly format: 1;
  readonly act: 'retry' | 'discard';
  readonly phase: 'asked' | 'done';
  readonly by: string;
  readonly atMs: number;
  readonly sink: string;
  readonly source: string;
  readonly items: readonly ActItem[];
}

export interface LetterBoxContents {
  /** Letters that nobody has settled. */
  readonly open: readonly StoredLetter[];
  readonly acts: readonly Act[];
}

export interface LetterBoxOptions {
  readonly transport: Transport;
  readonly spec: TopicSpec;
  readonly sink: string;
  readonly source: string;
  readonly signal: AbortSignal;
}

const ROW_LENGTH = 100;
const SETTLED: readonly unknown[] = ['applied', 'superseded', 'discarded'];

/**
 * The topic of dead letters of one sink and source: letters, and the record of what was done about them.
 *
 * 1. A letter is settled by an act behind it in its partition; one of the same change that comes later opens it again. Of a change that was
 *    published several times, the last letter stands.
 * 2. Acts are recorded before and after: one that was cut off is there as asked and not done.
 * 3. Two commands cannot act at a time: the one that opened later shuts the other out.
 */
export class LetterBox {
  readonly #options: LetterBoxOptions;

  constructor(options: LetterBoxOptions) {
    this.#options = options;
  }

  async read(): Promise<LetterBoxContents> {
    const { transport, spec, signal } = this.#options;
    if ((await transport.describeTopic(spec.name)) === null) return { open: [], acts: [] };
    const open = new Map<string, StoredLetter>();
    const acts: Act[] = [];
    const ranges = await transport.offsetRanges(spec.name);
    for (const [partition, { earliest: from, end: until }] of ranges.entries()) {
      const places = new Map<string, string>();
      if (from >= until) continue;
      for await (const { records } of transport.read({ topic: spec.name, partition, from, until, signal })) {
        for (const { offset: at, key, headers } of records) {
          for (const { name, value } of headers) {
            if (name === DEAD_LETTER_HEADER) {
              const letter = parse<DeadLetter>(value);
              const change = `${letter.version} ${latin1(key)}`;
              open.delete(places.get(change) ?? '');
              const place = placeOf(letter.partition, letter.offset);
              places.set(change, place);
              open.delete(place);
              open.set(place, { key: latin1(key), letter, at });
            } else if (name === ACT_HEADER) {
              const act = parse<Act>(value);
              acts.push(act);
              settle(open, act);
            }
          }
        }
      }
    }
    signal.throwIfAborted();
    return { open: [...open.values()], acts: acts.sort((a, b) => a.atMs - b.atMs) };
  }

  /** Resolves when the acts are stored durably: each part in the partition of its items. */
  async record(acts: readonly Act[]): Promise<void> {
    const { transport, spec, sink, source, signal } = this.#options;
    await transport.ensureTopic(spec);
    const producer = `mysync-dlq-command-${sink}-${source}`;
    const publisher = await transport.openPublisher({ topic: spec.name, producer, previous: null, signal });
    try {
      for (const act of acts) {
        for (const partition of new Set(act.items.map((item) => item.partition))) {
          const items = act.items.filter((item) => item.partition === partition);
          await publishAct(publisher, partition, { ...act, items });
        }
      }
    } catch (cause) {
      if (!isMysyncError(cause, 'TRANSPORT_FENCED')) throw cause;
      const message = 'another mysync dlq command acts on this sink';
      throw writerErrors.WRITER_BUSY({ message, where: { sink, source }, cause });
    } finally {
      await publisher.close();
    }
  }
}

/** In as many records as it takes: each settles the items that it names. */
async function publishAct(publisher: Publisher, partition: number, act: Act): Promise<void> {
  const { items } = act;
  const value = Buffer.from(JSON.stringify({ ...act, items: items.map(forRecord) }));
  try {
    await publisher.publish(partition, [{ key: ACT_KEY, value: null, headers: [{ name: ACT_HEADER, value }] }]);
    return;
  } catch (error) {
    if (items.length < 2 || !isMysyncError(error, 'TRANSPORT_RECORD_TOO_LARGE')) throw error;
  }
  await publisher.renumber();
  const half = items.length >> 1;
  await publishAct(publisher, partition, { ...act, items: items.slice(0, half) });
  await publishAct(publisher, partition, { ...act, items: items.slice(half) });
}

/** A key may be as long as a record; its id names it as well. */
function forRecord(item: ActItem): ActItem {
  const { row } = item;
  return row.length <= ROW_LENGTH ? item : { ...item, row: `${row.slice(0, ROW_LENGTH)}…` };
}

function settle(open: Map<string, StoredLetter>, act: Act): void {
  if (act.phase !== 'done') return;
  for (const item of act.items) {
    if (item.kind === 'dead-letter' && SETTLED.includes(item.result)) open.delete(placeOf(item.partition, item.offset));
  }
}

function placeOf(partition: number, offset: number): string {
  return `${partition}/${offset}`;
}

function parse<T extends { readonly format: 1 }>(value: Uint8Array): T {
  const parsed = JSON.parse(Buffer.from(value).toString()) as T;
  if (parsed.format !== 1) {
    throw coreErrors.INTERNAL({ message: `a record of the dead letters has format ${String(parsed.format)}` });
  }
  return parsed;
}
