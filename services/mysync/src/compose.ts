/**
 * From the configuration to the parts of the rooms: a thin mapping, and the only place that knows every adapter. Only the adapters that the
 * configuration asks for are loaded: that halves the start and saves their memory.
 */
import { join, resolve } from 'node:path';
import {
  type Config,
  configFingerprint,
  type ElasticsearchConfig,
  parseHost,
  plainTable,
  type RedisConfig,
  redisStore,
  type Secret,
  topicOf,
} from '@mysync/config';
import {
  formatTableRef,
  type Logger,
  parseBinlogPosition,
  silentLogger,
  type TableRef,
  tableRefKey,
} from '@mysync/core';
import { compileRules, compileTablePatterns } from '@mysync/mapping';
import type { ReaderOptions, StartAt } from '@mysync/reader';
import type { Sink } from '@mysync/sink';
import type { MysqlSourceOptions, SourceTls } from '@mysync/source-mysql';
import { createMetrics, type Metrics } from '@mysync/telemetry';
import type { TopicSpec, Transport } from '@mysync/transport';
import type { KafkaObserver } from '@mysync/transport-kafka';
import type { PoisonPolicy } from '@mysync/writer';

import { AbsentLog } from './absent-log.ts';
import { asMysyncError } from './output.ts';

export const MYSQL_PORT = 3306;

interface TlsConfig {
  readonly ca?: Secret;
  readonly cert?: Secret;
  readonly key?: Secret;
  readonly verify: boolean;
}

function pem(tls: TlsConfig): { ca?: string; cert?: string; key?: string } {
  return {
    ...(tls.ca === undefined ? {} : { ca: tls.ca.reveal() }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert.reveal() }),
    ...(tls.key === undefined ? {} : { key: tls.key.reveal() }),
  };
}

/** As node:tls spells it. */
export function nodeTls(tls: TlsConfig): { ca?: string; cert?: string; key?: string; rejectUnauthorized: boolean } {
  return { ...pem(tls), rejectUnauthorized: tls.verify };
}

/** Towards MySQL. */
export function sqlTls(tls: TlsConfig & { readonly verifyName: boolean }): SourceTls {
  return { ...pem(tls), verify: tls.verify, verifyName: tls.verifyName };
}

/** Options of the source room. */
export function sourceOptions(config: Config, name: string, logger: Logger, metrics?: Metrics): MysqlSourceOptions {
  const source = required(config.sources, name);
  const partitionBy = byTable(source.partitionBy);
  const onPartialRow = ofTable(source.onPartialRow, source.onPartialRowOf);
  return {
    name,
    hosts: source.hosts.map((host) => parseHost(host, MYSQL_PORT)),
    user: source.user,
    password: source.password?.reveal() ?? '',
    ...(source.tls === undefined ? {} : { tls: sqlTls(source.tls) }),
    ...(source.serverId === undefined ? {} : { serverId: source.serverId }),
    captures: capturedBy(config, name),
    tableRule: (ref: TableRef) => {
      const columns = partitionBy.get(tableRefKey(ref));
      return {
        noKey: source.noKey,
        onPartialRow: onPartialRow(ref),
        ...(columns === undefined ? {} : { partitionBy: columns }),
      };
    },
    observer: {
      rowsReread: (ref, rows) => metrics?.source.rowsReread.inc({ source: name, table: formatTableRef(ref) }, rows),
    },
    rowMetadata: source.rowMetadata,
    heartbeatMs: source.heartbeatMs,
    connectionTimeoutMs: source.connectionTimeoutMs,
    queueBytes: source.queueBytes,
    spoolBytes: source.spoolBytes,
    ...(source.spoolFolder === undefined ? {} : { spoolFolder: source.spoolFolder }),
    logger,
  };
}

/** The tables of a source. Our own are nobody's rows, whatever its patterns say. */
function capturedBy(config: Config, name: string): (table: TableRef) => boolean {
  const matches = compileTablePatterns(required(config.sources, name).tables);
  const { kind, mysql } = config.checkpoint;
  if (kind !== 'mysql') return matches;
  return (ref) => matches(ref) && !(ref.database === mysql?.database && OWN_TABLES.has(ref.table));
}

const OWN_TABLES: ReadonlySet<string> = new Set(['mysync_owner', 'mysync_checkpoint', 'mysync_schema_history']);

/** What an option says of single tables, by `tableRefKey`. */
function byTable<T>(option: Readonly<Record<string, T>>): ReadonlyMap<string, T> {
  const values = new Map<string, T>();
  for (const [table, value] of Object.entries(option)) {
    const ref = plainTable(table);
    if (ref !== null) values.set(tableRefKey(ref), value);
  }
  return values;
}

/** The option of a source, and what `…Of` says of single tables in its place. */
function ofTable<T>(option: T, own: Readonly<Record<string, T>>): (table: TableRef) => T {
  const values = byTable(own);
  return (table) => values.get(tableRefKey(table)) ?? option;
}

export function unseenPolicy(config: Config, name: string): ReaderOptions['onUnseenChange'] {
  const { onUnseenChange, onUnseenChangeOf } = required(config.sources, name);
  return ofTable(onUnseenChange, onUnseenChangeOf);
}

export function largeRowPolicy(config: Config, name: string): ReaderOptions['onLargeRow'] {
  const { onLargeRow, onLargeRowOf } = required(config.sources, name);
  return ofTable(onLargeRow, onLargeRowOf);
}

export function startAt(config: Config, name: string): StartAt {
  const { start } = required(config.sources, name);
  if (start === 'snapshot' || start === 'latest' || start === 'earliest') return start;
  return parseBinlogPosition(start);
}

export function topicSpec(config: Config, source: string): TopicSpec {
  const { partitions, compacted, deleteRetentionMs, minCompactionLagMs, retentionMs, allowWeakerTopic } =
    config.transport;
  return {
    name: topicOf(config, source),
    partitions,
    compacted,
    deleteRetentionMs,
    minCompactionLagMs,
    retentionMs,
    allowWeaker: allowWeakerTopic,
  };
}

/** The consumer group of a sink for one source. */
export function groupOf(config: Config, sink: string, source: string): string {
  return `${required(config.sinks, sink).group ?? `mysync-${sink}`}-${source}`;
}

/** Where the dead letters of a sink go, and the record of what was done about them. */
export function deadLetterSpec(config: Config, sink: string, source: string): TopicSpec {
  const { deadLetterTopic, deadLetterRetentionMs } = required(config.sinks, sink);
  const name = `${deadLetterTopic ?? `mysync-dlq-${sink}`}-${source}`;
  return { ...topicSpec(config, source), name, compacted: false, retentionMs: deadLetterRetentionMs };
}

/** What happens to changes of a table that the sink can never take. */
export function poisonPolicy(config: Config, name: string): (table: TableRef) => PoisonPolicy {
  const sink = required(config.sinks, name);
  const ruleOf = compileRules<{ readonly match: readonly string[]; readonly onPoison?: PoisonPolicy }>(sink.tables);
  return (table) => ruleOf(table)?.onPoison ?? sink.onPoison;
}

export function checkpointPath(config: Config, source: string): string {
  return join(config.checkpoint.path, `${source}.json`);
}

export function fingerprintOf(config: Config, source: string): string {
  return configFingerprint(config, source);
}

export interface TransportParts {
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** false for verbs that only look on. */
  readonly maintenance: boolean;
}

export async function openTransport(config: Config, parts: TransportParts): Promise<Transport> {
  const logger = parts.logger.child({ component: 'transport' });
  if (config.transport.kind === 'kafka') return await openKafka(config, logger, parts.metrics);
  const { compactionIntervalMs, compactionMemoryBytes, maxBytes, ...log } = config.transport.log;
  const { LogTransport } = await import('@mysync/transport-log');
  return await LogTransport.open({
    ...log,
    ...(maxBytes === undefined ? {} : { maxBytes }),
    maintenance: parts.maintenance && { intervalMs: compactionIntervalMs, memoryBytes: compactionMemoryBytes },
    onProblem: (error) => logger.warn(asMysyncError(error).toJSON(), 'the embedded log'),
  });
}

/** For a verb that acts: tells nothing on its own, and leaves cleaning the log to those that run. */
export async function openQuietTransport(config: Config, logger: Logger = silentLogger): Promise<Transport> {
  return await openTransport(config, { logger, metrics: createMetrics(), maintenance: false });
}

/** For a verb that only looks: an embedded log that is not there is not made, but has no topic. */
export async function openLookedAtTransport(config: Config, logger?: Logger): Promise<Transport> {
  const { kind, log } = config.transport;
  if (kind === 'log' && !(await import('@mysync/transport-log')).isLogThere(log.path)) return new AbsentLog();
  return await openQuietTransport(config, logger);
}

/** Where the topics of the transport are to be found. */
export function transportPlace({ transport: { kind, log, kafka } }: Config): string {
  return kind === 'log' ? resolve(log.path) : kafka.brokers.join(', ');
}

async function openKafka(config: Config, logger: Logger, metrics: Metrics): Promise<Transport> {
  const { createKafkaTransport } = await import('@mysync/transport-kafka');
  const { tls, sasl, ...kafka } = config.transport.kafka;
  const sources = new Map(Object.keys(config.sources).map((source) => [topicOf(config, source), source]));
  const observer: KafkaObserver = {
    log: ({ level, message, fields }) => logger[level](fields, message),
    foreignRecords: ({ topic, partition, count, offset }) => {
      metrics.reader.foreignRecords.inc({ source: sources.get(topic) ?? topic, partition: String(partition) }, count);
      logger.warn({ topic, partition, count, offset }, 'records of another writer in our partition');
    },
    clientReplaced: ({ client }) => logger.warn({ client }, 'connections replaced: nothing moved'),
    rebalanced: (event) => logger.info(event, 'joined the group'),
  };
  return createKafkaTransport({
    ...kafka,
    ...(tls === undefined ? {} : { tls: nodeTls(tls) }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl, password: sasl.password.reveal() } }),
    observer,
  });
}

/** A sink as it takes the changes of one source. */
export async function openSink(config: Config, name: string, source: string, logger: Logger): Promise<Sink> {
  const sink = required(config.sinks, name);
  const { partitionBy } = required(config.sources, source);
  if (sink.kind === 'redis') return await openRedis(name, sink, partitionBy);
  return await openElasticsearch(name, sink, partitionBy, logger);
}

/**
 * The rules with the columns that a target key may hold besides the table's key: a rule for each table with such
 * columns stands before the rule that it is taken from.
 */
export function rulesWithPartitionBy<R extends { readonly match: readonly string[] }>(
  rules: readonly R[],
  partitionBy: Readonly<Record<string, readonly string[]>>,
): readonly (R & { readonly partitionBy?: readonly string[] })[] {
  return rules.flatMap((rule) => {
    const matches = compileTablePatterns(rule.match);
    const special = Object.entries(partitionBy)
      .filter(([table]) => {
        const ref = plainTable(table);
        return ref !== null && matches(ref);
      })
      .map(([table, columns]) => ({ ...rule, match: [table], partitionBy: columns }));
    return [...special, rule];
  });
}

async function openRedis(
  name: string,
  sink: RedisConfig,
  partitionBy: Readonly<Record<string, readonly string[]>>,
): Promise<Sink> {
  const { RedisSink } = await import('@mysync/sink-redis');
  const { hosts, db, encrypted } = redisStore(sink);
  return new RedisSink({
    name,
    hosts,
    db,
    cluster: sink.cluster,
    ...(sink.username === undefined ? {} : { username: sink.username }),
    ...(sink.password === undefined ? {} : { password: sink.password.reveal() }),
    ...(encrypted ? { tls: sink.tls === undefined ? {} : nodeTls(sink.tls) } : {}),
    tables: rulesWithPartitionBy(sink.tables, partitionBy),
    prefix: sink.prefix,
    deletedTtlSeconds: sink.deletedTtlSeconds,
    connectTimeoutMs: sink.connectTimeoutMs,
    commandTimeoutMs: sink.commandTimeoutMs,
    chunkRows: sink.chunkRows,
  });
}

async function openElasticsearch(
  name: string,
  sink: ElasticsearchConfig,
  partitionBy: Readonly<Record<string, readonly string[]>>,
  logger: Logger,
): Promise<Sink> {
  const { ElasticsearchSink } = await import('@mysync/sink-elasticsearch');
  const auth = elasticsearchAuth(sink);
  return new ElasticsearchSink({
    name,
    nodes: sink.nodes,
    ...(auth === undefined ? {} : { auth }),
    ...(sink.tls === undefined ? {} : { tls: nodeTls(sink.tls) }),
    rules: rulesWithPartitionBy(sink.tables, partitionBy),
    markerIndex: sink.markerIndex,
    metaField: sink.metaField,
    maxBulkBytes: sink.maxBulkBytes,
    compression: sink.compression,
    requestTimeoutMs: sink.requestTimeoutMs,
    gcDeletesSeconds: sink.gcDeletesSeconds,
    ownershipCheckMs: sink.ownershipCheckMs,
    templates: sink.templates,
    logger: logger.child({ component: 'sink', sink: name }),
  });
}

function elasticsearchAuth({
  auth,
}: ElasticsearchConfig): { username: string; password: string } | { apiKey: string } | undefined {
  if (auth?.apiKey !== undefined) return { apiKey: auth.apiKey.reveal() };
  if (auth?.username === undefined || auth.password === undefined) return undefined;
  return { username: auth.username, password: auth.password.reveal() };
}

/** An entry that was looked up by a name of the same configuration. */
export function required<T>(map: Readonly<Record<string, T>>, name: string): T {
  const value = map[name];
  if (value === undefined) throw new TypeError(`'${name}' is not configured`);
  return value;
}
