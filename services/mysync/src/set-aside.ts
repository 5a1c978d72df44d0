/** What the sinks could not take, counted for `mysync status`: keys that are set aside, and dead letters. */
import type { Config } from '@mysync/config';
import { silentLogger, systemClock } from '@mysync/core';
import type { Sink } from '@mysync/sink';
import type { TopicDescription, Transport } from '@mysync/transport';
import { type AppliedMarker, countByTable, LetterBox, parseMarker } from '@mysync/writer';
import { deadLetterSpec, openSink } from './compose.ts';
import { commandErrors } from './errors.ts';

/** By table. */
export type TableCounts = Readonly<Record<string, number>>;

export interface DeadLetterCount {
  /** Letters that nobody has settled; null where there are too many records to read them for a glance. */
  readonly open: TableCounts | null;
  /** Records in the topic of dead letters: letters, and what was done about them. */
  readonly records: number;
}

export interface SinkPlace {
  readonly config: Config;
  readonly sink: string;
  readonly source: string;
  readonly topic: TopicDescription;
}

/** More than this are not read: `mysync dlq list` does. */
const MOST_READ = 5_000;
/** A glance waits no longer for a sink, or for its letters. */
const ANSWER_MS = 5_000;
/** Nor for its goodbye. */
const CLOSE_MS = 500;

/** The applied markers of these partitions, from the sink itself; null where it has none. Throws when the sink does not answer in time. */
export async function storedMarkers(
  { config, sink: name, source, topic }: SinkPlace,
  partitions: readonly number[],
): Promise<ReadonlyMap<number, AppliedMarker | null>> {
  if (partitions.length === 0) return new Map();
  const sink = await openSink(config, name, source, silentLogger);
  try {
    const read = async (partition: number): Promise<readonly [number, AppliedMarker | null]> => {
      const text = await sink.readMarker({ topic: topic.name, partition });
      return [partition, text === null ? null : parseMarker(text, { topic: topic.name, partition })];
    };
    const late = { message: `sink ${name} did not answer in ${ANSWER_MS} ms`, where: { sink: name } };
    return new Map(await inTime(late, async () => await Promise.all(partitions.map(read))));
  } finally {
    await letGo(sink);
  }
}

/** Throws when they cannot be read, or not in time. */
export async function deadLetters(transport: Transport, place: SinkPlace): Promise<DeadLetterCount> {
  const { config, sink, source, topic } = place;
  const spec = { ...deadLetterSpec(config, sink, source), partitions: topic.partitions };
  if ((await transport.describeTopic(spec.name)) === null) return { open: {}, records: 0 };
  const ranges = await transport.offsetRanges(spec.name);
  const records = ranges.reduce((sum, { earliest, end }) => sum + end - earliest, 0);
  if (records > MOST_READ) return { open: null, records };
  const message = `the dead letters were not read in ${ANSWER_MS} ms`;
  const late = { message, where: { sink, topic: spec.name } };
  const { open } = await inTime(
    late,
    async (signal) => await new LetterBox({ transport, spec, sink, source, signal }).read(),
  );
  const keys = open.map(({ key }) => ({ key: Buffer.from(key, 'latin1').toString('base64') }));
  return { open: merged([countByTable(keys)]), records };
}

/** A store that does not answer may not let go either: the process ends without it. */
async function letGo(sink: Sink): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([sink.close().catch(() => undefined), systemClock.sleep(CLOSE_MS, done.signal)]);
  } finally {
    done.abort();
  }
}

/** Throws STATUS_LATE. */
async function inTime<T>(
  late: { readonly message: string; readonly where: Readonly<Record<string, string>> },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  let deadline: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, reject) => {
    deadline = setTimeout(() => {
      const error = commandErrors.STATUS_LATE(late);
      reject(error);
      abort.abort(error);
    }, ANSWER_MS);
  });
  try {
    return await Promise.race([work(abort.signal), end]);
  } finally {
    clearTimeout(deadline);
  }
}

export function merged(all: readonly TableCounts[]): TableCounts {
  const counts = new Map<string, number>();
  for (const each of all) {
    for (const [table, count] of Object.entries(each)) counts.set(table, (counts.get(table) ?? 0) + count);
  }
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function total(counts: TableCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/** `shop.items 1, shop.orders 3`. */
export function countsText(counts: TableCounts): string {
  return Object.entries(counts)
    .map(([table, count]) => `${table} ${count}`)
    .join(', ');
}
