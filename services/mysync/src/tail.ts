/** `mysync tail`: messages of a topic as JSON lines. */
import { type Config, topicOf } from '@mysync/config';
import { isMysyncError } from '@mysync/core';
import { createLogger } from '@mysync/telemetry';
import { type IncomingRecord, type OffsetRange, type Transport, transportErrors } from '@mysync/transport';
import { decodeKey, type Json, MessageDecoder, messageToJson, payloadOf, rowToJson } from '@mysync/wire';
import { openLookedAtTransport, transportPlace } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig, usageError } from './context.ts';
import { commandErrors } from './errors.ts';
import { chooseSource, wholeNumber } from './names.ts';
import { count } from './output.ts';

export interface TailOptions extends CommonOptions {
  readonly topic?: string;
  readonly source?: string;
  readonly partition?: string;
  readonly from: string;
  readonly follow?: boolean;
  readonly limit?: string;
}

export async function runTail(context: CommandContext, options: TailOptions): Promise<void> {
  const { config } = requireConfig(context, options);
  const topic = chooseTopic(context, config, options);
  const from =
    options.from === 'earliest' || options.from === 'latest'
      ? options.from
      : wholeNumber(context, '--from', options.from);
  const only = options.partition === undefined ? null : wholeNumber(context, '--partition', options.partition);
  const limit = options.limit === undefined ? Number.POSITIVE_INFINITY : wholeNumber(context, '--limit', options.limit);
  const logger = createLogger({ level: 'warn' });
  const transport = await openLookedAtTransport(config, logger);
  try {
    if ((await transport.describeTopic(topic)) === null) {
      const message = `there is no topic '${topic}' at ${transportPlace(config)}`;
      throw transportErrors.TRANSPORT_TOPIC_MISSING({ message, where: { topic } });
    }
    const ranges = await transport.offsetRanges(topic);
    if (only !== null && ranges[only] === undefined) {
      const message = `topic '${topic}' has no partition ${only}`;
      const remedy = `Allowed: 0 to ${ranges.length - 1}; it has ${count(ranges.length, 'partition')}, counted from 0.`;
      const where = { option: '--partition' };
      usageError(context, commandErrors.COMMAND_VALUE_INVALID({ message, remedy, where }));
    }
    if (typeof from === 'number') refuseBeyondEnd(context, { topic, ranges, only, from });
    await printPartitions(context, transport, { topic, ranges, only, from, limit, follow: options.follow === true });
  } finally {
    await transport.close();
  }
}

/** One offset stands for all partitions: those that end before it have nothing to show, but not all of them. */
function refuseBeyondEnd(
  context: CommandContext,
  { topic, ranges, only, from }: Pick<Printing, 'topic' | 'ranges' | 'only'> & { readonly from: number },
): void {
  const last = only === null ? Math.max(...ranges.map(({ end }) => end)) : (ranges[only]?.end ?? 0);
  if (from <= last) return;
  const message =
    only === null
      ? `no partition of topic '${topic}' reaches offset ${from}`
      : `partition ${only} of topic '${topic}' does not reach offset ${from}`;
  const ends = ranges.map(({ end }, partition) => `${end} in partition ${partition}`);
  const where = { option: '--from', ends: only === null ? ends.join(', ') : (ends[only] ?? '') };
  const remedy = `The next message will stand at ${where.ends}. Use an offset before that, earliest, or latest with --follow for what comes.`;
  usageError(context, commandErrors.COMMAND_VALUE_INVALID({ message, remedy, where }));
}

interface Printing {
  readonly topic: string;
  readonly ranges: readonly OffsetRange[];
  readonly only: number | null;
  readonly from: number | 'earliest' | 'latest';
  readonly limit: number;
  readonly follow: boolean;
}

async function printPartitions(context: CommandContext, transport: Transport, printing: Printing): Promise<void> {
  const done = new AbortController();
  const signal = AbortSignal.any([context.signal, done.signal]);
  let left = printing.limit;
  const print = async (partition: number, range: OffsetRange): Promise<void> => {
    const { earliest, end } = range;
    // a partition that ends before the offset is followed from its end
    const from =
      printing.from === 'earliest' ? earliest : printing.from === 'latest' ? end : Math.min(printing.from, end);
    if (!printing.follow && from >= range.end) return;
    const until = printing.follow ? {} : { until: range.end };
    const decoder = new MessageDecoder();
    for await (const batch of transport.read({ topic: printing.topic, partition, from, signal, ...until })) {
      for (const record of batch.records) {
        if (left <= 0 || signal.aborted) return;
        left -= 1;
        context.output.result(`${JSON.stringify(recordToJson(decoder, partition, record))}\n`);
        if (left <= 0) done.abort();
      }
    }
  };
  const chosen = printing.ranges
    .map((range, partition) => ({ range, partition }))
    .filter(({ partition }) => printing.only === null || partition === printing.only);
  if (left <= 0) return;
  if (printing.follow) {
    await Promise.all(chosen.map(({ range, partition }) => print(partition, range)));
  } else {
    for (const { range, partition } of chosen) await print(partition, range);
  }
}

function recordToJson(decoder: MessageDecoder, partition: number, record: IncomingRecord): Json {
  const place = { partition, offset: record.offset };
  try {
    const key = keyToJson(record.key);
    const payload = payloadOf(record);
    if (payload === null) return { ...place, key, tombstone: true };
    return { ...place, key, ...messageToJson(decoder.decode(payload)) };
  } catch (error) {
    if (!isMysyncError(error)) throw error;
    return { ...place, error: error.code, message: error.message };
  }
}

function keyToJson(key: Uint8Array): Json {
  const decoded = decodeKey(key);
  if (decoded.kind === 'row') {
    const { database, table, columns, values } = decoded.row;
    return { kind: 'row', database, table, columns: rowToJson(columns, values) };
  }
  const { kind, table } = decoded;
  return table === null ? { kind } : { kind, database: table.database, table: table.table };
}

function chooseTopic(context: CommandContext, config: Config, options: TailOptions): string {
  const { topic, source } = options;
  if (topic === undefined) return topicOf(config, chooseSource(context, Object.keys(config.sources), source));
  if (source !== undefined) {
    const message = '--topic and --source are both given: a source says its topic by itself';
    usageError(context, commandErrors.COMMAND_INVALID({ message, remedy: 'Leave out one of them.' }));
  }
  return topic;
}
