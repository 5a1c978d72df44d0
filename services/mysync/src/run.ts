/** The verbs that run: all in one process, a reader alone, the writers of a sink alone. */
import type { OwnedCheckpointStore } from '@mysync/checkpoint';
import { type Config, sourcesOf, topicOf } from '@mysync/config';
import { causeText, errorForLog, type Logger, systemClock } from '@mysync/core';
import { createLogger, createMetrics, type Metrics, TelemetryServer } from '@mysync/telemetry';
import { IncompleteLog, type Transport } from '@mysync/transport';
import { openCheckpoints } from './checkpoints.ts';
import {
  deadLetterSpec,
  fingerprintOf,
  groupOf,
  largeRowPolicy,
  openSink,
  openTransport,
  poisonPolicy,
  required,
  sourceOptions,
  startAt,
  topicSpec,
  unseenPolicy,
} from './compose.ts';
import { type CommandContext, type CommonOptions, requireConfig } from './context.ts';
import { Lifecycle } from './lifecycle.ts';
import { requireName } from './names.ts';
import { type ReaderPart, readerPart, runParts, type WriterPart, writerPart } from './parts.ts';
import { ProgressDisplay } from './progress.ts';
import type { ProcessStatus } from './status-report.ts';
import { version } from './version.ts';

/** Beyond what readers and writers are allowed, for closing connections. */
const CLOSE_MS = 5_000;

/** What a start that takes long waits for: the log tells which. */
const STARTING = 'waiting for the transport or the store of checkpoints';

export interface RunChoice {
  readonly sources: readonly string[];
  readonly sinks: readonly string[];
}

export async function runAll(context: CommandContext, options: CommonOptions): Promise<void> {
  const loaded = requireConfig(context, options);
  const { config } = loaded;
  await runService(context, loaded, { sources: Object.keys(config.sources), sinks: Object.keys(config.sinks) });
}

interface PartOptions extends CommonOptions {
  readonly untilInputEnds?: boolean;
}

export async function runReader(context: CommandContext, options: PartOptions & { source?: string }): Promise<void> {
  if (options.untilInputEnds === true) context.stopWithInput();
  const loaded = requireConfig(context, options);
  const names = Object.keys(loaded.config.sources);
  if (options.source !== undefined) requireName(context, 'source', options.source, names);
  await runService(context, loaded, { sources: options.source === undefined ? names : [options.source], sinks: [] });
}

export async function runWriter(context: CommandContext, options: PartOptions & { sink: string }): Promise<void> {
  if (options.untilInputEnds === true) context.stopWithInput();
  const loaded = requireConfig(context, options);
  requireName(context, 'sink', options.sink, Object.keys(loaded.config.sinks));
  await runService(context, loaded, { sources: [], sinks: [options.sink] });
}

interface Service {
  readonly context: CommandContext;
  readonly config: Config;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly transport: Transport;
}

async function runService(
  context: CommandContext,
  { config, warnings, path }: ReturnType<typeof requireConfig>,
  choice: RunChoice,
): Promise<void> {
  const logger = createLogger({ level: config.telemetry.logLevel });
  for (const warning of warnings) logger.warn(warning.toJSON(), 'configuration');
  const handoverMs = Math.max(0, ...choice.sinks.map((sink) => required(config.sinks, sink).handoverMs));
  context.allowStop(config.reader.drainMs + handoverMs + CLOSE_MS);
  const metrics = createMetrics();
  metrics.collectProcess();
  const lifecycle = new Lifecycle();
  const readers: ReaderPart[] = [];
  const writers: WriterPart[] = [];
  const startedAt = new Date().toISOString();
  let isStarted = false;
  // from the first scrape on: what has not begun is down, and not unknown
  for (const source of choice.sources) metrics.reader.up.set({ source }, 0);
  for (const sink of choice.sinks) {
    for (const source of sourcesOf(config, required(config.sinks, sink)))
      metrics.writer.assigned.set({ sink, source }, 0);
  }
  try {
    // First of all: whoever starts the same twice is told so, and not that a port is taken.
    const checkpoints = new Map<string, OwnedCheckpointStore>();
    const openAll = async (within: Transport | null): Promise<void> => {
      for (const source of choice.sources) {
        const store = await openCheckpoints({ config, logger, signal: context.signal }, source, within);
        checkpoints.set(
          source,
          lifecycle.opened(`checkpoint of ${source}`, store, (opened) => opened.close()),
        );
      }
    };
    if (config.checkpoint.kind !== 'topic') await openAll(null);
    if (config.telemetry.enabled) {
      const parts = (): readonly (ReaderPart | WriterPart)[] => [...readers, ...writers];
      const server = lifecycle.opened(
        'telemetry',
        new TelemetryServer({
          host: config.telemetry.host,
          port: config.telemetry.port,
          registry: metrics.registry,
          health: () => {
            const reports = parts().map((part) => part.health());
            return isStarted ? reports : [...reports, { name: 'start', alive: true, ready: false, detail: STARTING }];
          },
          refresh: () => {
            for (const part of parts()) part.refresh();
          },
          status: (): ProcessStatus => ({
            version,
            pid: process.pid,
            startedAt,
            readers: readers.map((part) => part.status()),
            writers: writers.map((part) => part.status()),
          }),
        }),
        (opened) => opened.close(),
      );
      const port = await server.start();
      logger.info({ host: config.telemetry.host, port }, 'telemetry listens');
    }
    const transport = await openTransport(config, { logger, metrics, maintenance: true });
    lifecycle.opened('transport', transport, (opened) => opened.close());
    if (config.checkpoint.kind === 'topic') await openAll(transport);
    const service: Service = { context, config, lifecycle, logger, metrics, transport };
    for (const [source, store] of checkpoints) readers.push(await openReader(service, source, store));
    for (const sink of choice.sinks) {
      for (const source of sourcesOf(config, required(config.sinks, sink)))
        writers.push(await openWriter(service, sink, source));
    }
    isStarted = true;
    logger.info({ version, config: path, parts: [...readers, ...writers].map((part) => part.name) }, 'started');
    context.signal.addEventListener('abort', () => logger.info({}, 'stopping'), { once: true });
    await runParts(readers, writers, context.signal, (part, error) => {
      logger.error({ part, error: errorForLog(error) }, 'a part failed: stopping');
    });
  } finally {
    for (const { name, error } of await lifecycle.close())
      logger.warn({ part: name, error: causeText(error) }, 'closing failed');
    logger.info({}, 'stopped');
  }
}

async function openReader(service: Service, source: string, checkpoints: OwnedCheckpointStore): Promise<ReaderPart> {
  const { config, lifecycle, logger, metrics, transport, context } = service;
  // Loaded here, so that a writer does not pay for it.
  const { createMysqlSource } = await import('@mysync/source-mysql');
  const schemaHistory = await checkpoints.schemaHistory();
  const binlog = createMysqlSource({ ...sourceOptions(config, source, logger, metrics), schemaHistory });
  lifecycle.opened(`source ${source}`, binlog, (opened) => opened.close());
  const progress = new ProgressDisplay({ output: context.output, logger, clock: systemClock });
  const { windowMessages, windowBytes, batchMessages, heartbeatMs, checkpointMs, idleCheckpointMs, drainMs } =
    config.reader;
  return readerPart({
    sourceName: source,
    source: binlog,
    transport,
    topic: topicSpec(config, source),
    checkpoints,
    schemaHistory,
    start: startAt(config, source),
    onUnseenChange: unseenPolicy(config, source),
    onLargeRow: largeRowPolicy(config, source),
    onAlter: required(config.sources, source).onAlter,
    configFingerprint: fingerprintOf(config, source),
    windowMessages,
    windowBytes,
    batchMessages,
    heartbeatMs,
    checkpointMs,
    idleCheckpointMs,
    drainMs,
    onSnapshotProgress: (report) => progress.show(report),
    clock: systemClock,
    logger,
    metrics,
  });
}

async function openWriter(service: Service, sinkName: string, source: string): Promise<WriterPart> {
  const { config, lifecycle, logger, metrics, transport } = service;
  const sinkConfig = required(config.sinks, sinkName);
  const { maxBatchChanges, maxBatchBytes, commitIntervalMs, handoverMs, maxParkedKeys } = sinkConfig;
  const sink = await openSink(config, sinkName, source, logger);
  lifecycle.opened(`sink ${sinkName} of ${source}`, sink, (opened) => opened.close());
  return writerPart({
    source,
    topic: topicOf(config, source),
    group: groupOf(config, sinkName, source),
    sinkName,
    sink,
    transport,
    maxBatchChanges,
    maxBatchBytes,
    commitIntervalMs,
    handoverMs,
    deleteRetentionMs: config.transport.compacted ? config.transport.deleteRetentionMs : null,
    onPoison: poisonPolicy(config, sinkName),
    maxParkedKeys,
    replayMs: sinkConfig.kind === 'redis' ? sinkConfig.failoverReplayMs : sinkConfig.restoreReplayMs,
    deadLetterTopic: deadLetterSpec(config, sinkName, source),
    isLogIncomplete: () => new IncompleteLog(transport, topicSpec(config, source)).read(),
    clock: systemClock,
    logger,
    metrics,
  });
}
