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
import { deadLetterSpec, openLookedAtTransport, openSink, transportPlace } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig } from './context.ts';
import { type DlqItem, letterItem, parkedItem } from './dlq-items.ts';
import { Lifecycle } from './lifecycle.ts';
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

export interface DlqStreams {
  readonly streams: readonly DlqStream[];
  /** What is chosen but has no topic, each in words: nothing is known of it. */
  readonly missing: readonly string[];
  readonly transport: Transport;
  readonly config: Config;
}

export async function withStreams(
  context: CommandContext,
  options: CommonOptions & DlqSelection,
  use: (opened: DlqStreams) => Promise<void>,
): Promise<void> {
  const { config } = requireConfig(context, options);
  const { signal } = context;
  if (options.sink !== undefined) requireName(context, 'sink', options.sink, Object.keys(config.sinks));
  const taken = Object.entries(config.sinks)
    .filter(([name]) => options.sink === undefined || options.sink === name)
    .map(([name, sink]) => ({ name, sources: sourcesOf(config, sink) }));
  const sources = [...new Set(taken.flatMap((sink) => sink.sources))];
  if (options.source !== undefined) requireName(context, 'source', options.source, sources);
  const wants = options.table === undefined ? () => true : tablePatterns(context, [options.table]);
  const lifecycle = new Lifecycle();
  try {
    const transport = await openLookedAtTransport(config);
    lifecycle.opened('transport', transport, (opened) => opened.close());
    const streams: DlqStream[] = [];
    const missing = new Set<string>();
    for (const { name: sink, sources: own } of taken) {
      for (const source of own) {
        if (options.source !== undefined && options.source !== source) continue;
        const opened = await openStream(config, transport, { sink, source, wants, signal }, lifecycle);
        if (opened !== null) streams.push(opened);
        else missing.add(`no topic '${topicOf(config, source)}' yet at ${transportPlace(config)}`);
      }
    }
    await use({ streams, missing: [...missing], transport, config });
  } finally {
    await lifecycle.closeNoting(context.output);
  }
}

async function openStream(
  config: Config,
  transport: Transport,
  chosen: { readonly sink: string; readonly source: string; wants(table: TableRef): boolean; signal: AbortSignal },
  lifecycle: Lifecycle,
): Promise<DlqStream | null> {
  const { sink: sinkName, source, wants, signal } = chosen;
  const topic = await transport.describeTopic(topicOf(config, source));
  if (topic === null) return null;
  const sink = await openSink(config, sinkName, source, silentLogger);
  lifecycle.opened(`sink ${sinkName}`, sink, (opened) => opened.close());
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
