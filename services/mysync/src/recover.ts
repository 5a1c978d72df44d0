/** `mysync recover`: goes on with the sinks that are there when the log itself is lost. */
import type { Checkpoint } from '@mysync/checkpoint';
import { type Config, sourcesOf } from '@mysync/config';
import { formatBinlogPosition, silentLogger, systemClock } from '@mysync/core';
import { initialGuardState } from '@mysync/flow';
import type { Sink } from '@mysync/sink';
import { createLogger } from '@mysync/telemetry';
import { IncompleteLog, type TopicDescription, type Transport } from '@mysync/transport';
import { formatMarker, parseMarker, writerErrors } from '@mysync/writer';
import { openCheckpoints } from './checkpoints.ts';
import { fingerprintOf, openQuietTransport, openSink, topicSpec } from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig } from './context.ts';
import { commandErrors } from './errors.ts';
import { Lifecycle } from './lifecycle.ts';
import { chooseSource } from './names.ts';
import { table } from './output.ts';
import { type MarkedPartition, planRecovery, type RecoveryPlan } from './recover-plan.ts';

export interface RecoverOptions extends CommonOptions {
  readonly source?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

interface OpenSink {
  readonly name: string;
  readonly sink: Sink;
}

export async function runRecover(context: CommandContext, options: RecoverOptions): Promise<void> {
  const { config } = requireConfig(context, options);
  const source = chooseSource(context, Object.keys(config.sources), options.source);
  const lifecycle = new Lifecycle();
  try {
    const transport = await openQuietTransport(config);
    lifecycle.opened('transport', transport, (opened) => opened.close());
    const inTopic = config.checkpoint.kind === 'topic' ? transport : null;
    const logger = createLogger({ level: 'warn' });
    const store = await openCheckpoints({ config, logger, signal: context.signal }, source, inTopic);
    lifecycle.opened('checkpoint', store, (opened) => opened.close());
    const checkpoint = await store.load();
    const where = { source };
    if (checkpoint?.snapshot.state === 'running') {
      const message = 'the first snapshot was not finished, so no sink is whole';
      throw commandErrors.RECOVER_IMPOSSIBLE({ message, where });
    }
    const sinks: OpenSink[] = [];
    for (const [name, sinkConfig] of Object.entries(config.sinks)) {
      if (!sourcesOf(config, sinkConfig).includes(source)) continue;
      const sink = await openSink(config, name, source, silentLogger);
      lifecycle.opened(`sink ${name}`, sink, (opened) => opened.close());
      sinks.push({ name, sink });
    }
    if (checkpoint === null) {
      if (await wasNeverRead({ config, source, transport, sinks })) {
        const message = `source '${source}' was not read yet: no checkpoint, no log and no sink knows of it`;
        const remedy = 'Nothing was changed. Start the reader: it makes all of them.';
        throw commandErrors.RECOVER_NOT_NEEDED({ message, where, remedy });
      }
      const message = 'there is no checkpoint: from where the source would have to be read again is not known';
      throw commandErrors.RECOVER_IMPOSSIBLE({ message, where });
    }
    const recovery = new Recovery({ config, source, transport, checkpoint, sinks });
    const plan = await recovery.plan();
    if (options.yes === true) await recovery.perform(plan, (next) => store.save(next, checkpoint.epoch));
    const report = { source, done: options.yes === true, checkpoint: checkpoint.position, ...plan };
    context.output.result(options.json === true ? `${JSON.stringify(report)}\n` : recoveryText(report));
  } finally {
    await lifecycle.closeNoting(context.output);
  }
}

async function wasNeverRead(parts: Omit<RecoveryOptions, 'checkpoint'>): Promise<boolean> {
  const { config, source, transport, sinks } = parts;
  const { name: topic, partitions } = topicSpec(config, source);
  const isThere = (await transport.describeTopic(topic)) !== null;
  if (isThere && (await transport.offsetRanges(topic)).some(({ end }) => end > 0)) return false;
  for (const { sink } of sinks) {
    for (let partition = 0; partition < partitions; partition += 1) {
      if ((await sink.readMarker({ topic, partition })) !== null) return false;
    }
  }
  return true;
}

/** The checkpoint was put back by an earlier command, which was broken off: what sinks lack was looked at then. */
interface Begun {
  readonly begun: boolean;
}

interface OpenMarked extends MarkedPartition {
  readonly open: Sink;
  /** As it stands in the sink. */
  readonly text: string | null;
}

interface RecoveryOptions {
  readonly config: Config;
  readonly source: string;
  readonly transport: Transport;
  readonly checkpoint: Checkpoint;
  readonly sinks: readonly OpenSink[];
}

/**
 * 1. Nothing is changed before everything was looked at: the log is lost indeed, the configuration is the one of the checkpoint, every marker is of
 *    the lost log.
 * 2. The checkpoint is put back first, then the markers are put onto the new topic. Until then reader and writers refuse to start;
 *    broken off in between, the same command finishes it.
 */
class Recovery {
  readonly #options: RecoveryOptions;
  #marked: readonly OpenMarked[] = [];

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  async plan(): Promise<RecoveryPlan & Begun> {
    const { config, source, transport, checkpoint } = this.#options;
    const spec = topicSpec(config, source);
    const where = { source, topic: spec.name };
    if (
      checkpoint.configFingerprint !== fingerprintOf(config, source) ||
      checkpoint.topic.partitions !== spec.partitions
    ) {
      const message = 'the configuration of the source is not the one that its checkpoint was made with';
      throw commandErrors.RECOVER_CONFIG_CHANGED({ message, where });
    }
    const topic = await transport.describeTopic(spec.name);
    const ids = new Set([checkpoint.topic.id, ...(topic === null ? [] : [topic.id])]);
    this.#marked = await this.#readMarkers(ids);
    const isStarted = topic?.id === checkpoint.topic.id;
    const left = this.#marked.filter(({ marker }) => marker !== null && marker.topicId !== topic?.id);
    if (isStarted && left.length === 0) {
      throw commandErrors.RECOVER_NOT_NEEDED({ message: 'the log of the checkpoint is there', where });
    }
    if (topic !== null && !isStarted) await this.#requireEmpty(topic);
    const plan = isStarted
      ? planRecovery(checkpoint, [], false)
      : planRecovery(checkpoint, this.#marked, this.#readsAgain);
    const lost = plan.lagging.find(({ position }) => position === null);
    if (lost !== undefined) {
      const message = `sink ${lost.sink} lacks rows of tables that were read as a whole, in partition ${lost.partition}${lost.row === undefined ? '' : ` (${lost.row})`}: they are not in the source's log`;
      throw commandErrors.RECOVER_IMPOSSIBLE({
        message,
        where: { ...where, sink: lost.sink, partition: lost.partition },
      });
    }
    return { ...plan, begun: isStarted };
  }

  /** The reader will read all tables again: `CapturedTables.findLacking`. */
  get #readsAgain(): boolean {
    const { config, source, checkpoint } = this.#options;
    const { onUnseenChange, onUnseenChangeOf } = config.sources[source] ?? {};
    const policies = [onUnseenChange, ...Object.values(onUnseenChangeOf ?? {})];
    return checkpoint.snapshot.state === 'done' && policies.every((policy) => policy === 'resync');
  }

  async perform(plan: RecoveryPlan, save: (next: Checkpoint) => Promise<void>): Promise<void> {
    const { config, source, transport, checkpoint } = this.#options;
    const spec = topicSpec(config, source);
    const topic = await transport.ensureTopic(spec);
    const ranges = await transport.offsetRanges(spec.name);
    if (topic.id !== checkpoint.topic.id) {
      await new IncompleteLog(transport, spec).note(formatBinlogPosition(plan.position));
      await save({
        ...checkpoint,
        position: plan.position,
        transactionCounter: plan.transactionCounter,
        floors: plan.floors,
        // The numbers of the lost log mean nothing in the new one.
        producer: null,
        topic: { name: topic.name, id: topic.id, partitions: topic.partitions },
        partitions: ranges.map((range) => ({
          epoch: 0,
          generation: 0,
          sequence: 0,
          offset: range.earliest - 1,
          change: { file: '', offset: 0, gtid: '', ordinal: 0 },
        })),
        // Where the existing rows were asked for at first, the reader reads the tables again beside the stream.
        snapshot: { ...checkpoint.snapshot, completeTables: [] },
        savedAt: new Date(systemClock.now()).toISOString(),
      });
    }
    for (const { sink, partition, open, marker, text } of this.#marked) {
      if (marker === null || marker.topicId === topic.id) continue;
      // What is set aside is read again from the source: its messages were in the lost log.
      const { parked: _, lost, ...rest } = marker;
      const next = formatMarker({
        ...rest,
        topicId: topic.id,
        owner: 'recover',
        nextOffset: ranges[partition]?.earliest ?? 0,
        guard: initialGuardState(0),
        unreadSinceMs: systemClock.now(),
        // What the sink missed of the old log is still missing; what it may pass there means nothing here.
        ...(lost?.until === undefined ? {} : { lost: { id: lost.id, foundMs: lost.foundMs, until: 0 } }),
      });
      const batch = { stream: { topic: topic.name, partition }, changes: [], marker: { expected: text, next } };
      const { status } = await open.apply(batch, new AbortController().signal);
      if (status === 'applied') continue;
      const message = `a writer of sink ${sink} runs: its marker moved meanwhile`;
      throw writerErrors.WRITER_BUSY({
        message,
        where: { sink, partition },
        remedy: 'Stop the writers, then recover again.',
      });
    }
  }

  async #readMarkers(ids: ReadonlySet<string>): Promise<readonly OpenMarked[]> {
    const { config, source, checkpoint, sinks } = this.#options;
    const { name: topic } = topicSpec(config, source);
    const marked: OpenMarked[] = [];
    for (const { name, sink } of sinks) {
      for (let partition = 0; partition < checkpoint.topic.partitions; partition += 1) {
        const where = { sink: name, topic, partition };
        const text = await sink.readMarker({ topic, partition });
        const marker = text === null ? null : parseMarker(text, where);
        if (marker !== null && !ids.has(marker.topicId)) {
          const message = `the sink was filled from topic id ${marker.topicId}; the checkpoint is of ${checkpoint.topic.id}`;
          throw commandErrors.RECOVER_IMPOSSIBLE({ message, where });
        }
        marked.push({ sink: name, partition, marker, open: sink, text });
      }
    }
    return marked;
  }

  async #requireEmpty({ name }: TopicDescription): Promise<void> {
    const ranges = await this.#options.transport.offsetRanges(name);
    if (ranges.every((range) => range.end === range.earliest)) return;
    const message = `topic '${name}' is another one than the checkpoint's, and it holds records`;
    throw commandErrors.RECOVER_LOG_NOT_EMPTY({ message, where: { topic: name } });
  }
}

/** What is told of a recovery that is planned, or done. */
export function recoveryText(
  report: RecoveryPlan &
    Begun & {
      readonly source: string;
      readonly done: boolean;
      readonly checkpoint: Checkpoint['position'];
    },
): string {
  const text = [
    table([
      ['checkpoint', formatBinlogPosition(report.checkpoint)],
      ['read again from', formatBinlogPosition(report.position)],
    ]).trimEnd(),
  ];
  if (report.begun) text.push('An earlier recovery was broken off: what is left is to put the sinks onto the new log.');
  else if (report.lagging.length === 0) text.push('No sink lags behind the checkpoint.');
  for (const { sink, partition, row, position } of report.lagging) {
    const what = row === undefined ? `partition ${partition}` : `row ${row}, which is set aside`;
    text.push(`${sink} lags in ${what}: from ${position ?? 'an unknown place'}`);
  }
  const then = report.begun ? 'mysync recover --yes finishes it' : 'mysync recover --yes';
  text.push(
    report.done
      ? `Done: start the reader and the writers. The log lacks what was before: a new sink needs a snapshot (${report.source}).`
      : `Nothing was changed ${report.begun ? 'now' : 'yet'}: stop reader and writers, then ${then}.`,
  );
  return `${text.join('\n')}\n`;
}
