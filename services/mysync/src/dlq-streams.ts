/** What the sinks could not take, opened for reading and for acting on it: one stream for each source of each sink. */
import { type Config, sourcesOf, topicOf } from '@mysync/config';
import { silentLogger, systemClock, type TableRef } from '@mysync/core';
import type { Transport } from '@mysync/transport';
import {
  type Act,
  LetterBox,
  type ParkedKey,
  PoisonDesk,
  parkedRow,
  readRecord,
  type StoredLetter,
} from '@mysync/writer';
import { deadLetterSpec, openQuietTransport, openSink } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig } from './context.ts';
import { type DlqItem, letterItem, parkedItem } from './dlq-items.ts';
import { requireName, tablePatterns } from './names.ts';

/** Of which sink, source and table; what is left out means all of them. */
export interface DlqSelection {
  readonly sink?: string;
  readonly source?: string;
  /** Only rows of the tables of this pattern, as in the configuration. */
  readonly table?: string;
}

export type Found = { readonly item: DlqItem } & ({ readonly parked: ParkedKey } | { readonly letter: StoredLetter });

/** One source of the sink. */
export interface DlqStream {
  readonly sink: string;
  readonly source: string;
  readonly box: LetterBox;
  readonly found: readonly Found[];
  readonly acts: readonly Act[];
  desk(partition: number): PoisonDesk;
}

export async function withStreams(
  context: CommandContext,
  options: CommonOptions & DlqSelection,
  use: (streams: readonly DlqStream[], transport: Transport, config: Config) => Promise<void>,
): Promise<void> {
  const { config } = requireConfig(context, options);
  const { signal } = context;
  if (options.sink !== undefined) requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  if (options.source !== undefined) requireName(context, 'source', options.source, Object.keys(config.sources));
  const wants = options.table === undefined ? () => true : tablePatterns(context, [options.table]);
  const closers: (() => Promise<void>)[] = [];
  try {
    const transport = await openQuietTransport(config);
    closers.push(() => transport.close());
    const streams: DlqStream[] = [];
    for (const [sink, sinkConfig] of Object.entries(config.sinks)) {
      if (options.sink !== undefined && options.sink !== sink) continue;
      for (const source of sourcesOf(config, sinkConfig)) {
        if (options.source !== undefined && options.source !== source) continue;
        const opened = await openStream(config, transport, { sink, source, wants, signal }, closers);
        if (opened !== null) streams.push(opened);
      }
    }
    await use(streams, transport, config);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function openStream(
  config: Config,
  transport: Transport,
  chosen: { readonly sink: string; readonly source: string; wants(table: TableRef): boolean; signal: AbortSignal },
  closers: (() => Promise<void>)[],
): Promise<DlqStream | null> {
  const { sink: sinkName, source, wants, signal } = chosen;
  const topic = await transport.describeTopic(topicOf(config, source));
  if (topic === null) return null;
  const sink = await openSink(config, sinkName, source, silentLogger);
  closers.push(() => sink.close());
  const spec = { ...deadLetterSpec(config, sinkName, source), partitions: topic.partitions };
  const box = new LetterBox({ transport, spec, sink: sinkName, source, signal });
  const desk = (partition: number): PoisonDesk =>
    new PoisonDesk({
      sink,
      sinkName,
      log: transport,
      topic,
      partition,
      compacted: config.transport.compacted,
      letterRecord: ({ at }) => readRecord({ transport, topic: spec.name, partition }, at),
      clock: systemClock,
      signal,
    });
  const { open, acts } = await box.read();
  const found: Found[] = [];
  for (let partition = 0; partition < topic.partitions; partition += 1) {
    for (const entry of await desk(partition).parked()) {
      if (!wants(parkedRow(entry))) continue;
      found.push({ item: parkedItem(entry, { sink: sinkName, source, partition }), parked: entry });
    }
  }
  for (const letter of open) {
    if (wants(parkedRow({ key: Buffer.from(letter.key, 'latin1').toString('base64') }))) {
      found.push({ item: letterItem(letter), letter });
    }
  }
  return { sink: sinkName, source, box, acts, desk, found };
}
