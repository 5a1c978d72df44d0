/** What no single option can tell: rules over several. */
import type { MysyncError, TableRef } from '@mysync/core';
import { compileTablePatterns, didYouMean } from '@mysync/mapping';
import { redisStore } from './address.ts';
import { configErrors } from './errors.ts';
import { environmentWord, type KeyPath } from './path.ts';
import type { Config, ElasticsearchConfig, RedisConfig, SinkConfig } from './schema/index.ts';

type Where = (path: KeyPath) => { key: string; place: string };

interface Findings {
  readonly problems: MysyncError[];
  readonly warnings: MysyncError[];
}

const WEEK_MS = 7 * 24 * 3_600_000;

/** The topic of a source. */
export function topicOf(config: Config, source: string): string {
  return config.sources[source]?.topic ?? source;
}

/** The sources whose changes a sink takes. */
export function sourcesOf(config: Config, sink: SinkConfig): readonly string[] {
  return sink.sources ?? Object.keys(config.sources);
}

export function crossFieldFindings(config: Config, where: Where): Findings {
  const findings: Findings = { problems: [], warnings: [] };
  sourceRules(config, where, findings);
  transportRules(config, where, findings);
  checkpointRules(config, where, findings);
  sinkRules(config, where, findings);
  return findings;
}

function conflict(findings: Findings, where: ReturnType<Where>, message: string, remedy: string): void {
  findings.problems.push(configErrors.CONFIG_CONFLICT({ message: `${where.key}: ${message}`, where, remedy }));
}

function sourceRules(config: Config, where: Where, findings: Findings): void {
  const names = Object.keys(config.sources);
  if (names.length === 0) {
    const remedy = 'Name at least one source: sources.NAME with hosts, user, password and tables.';
    findings.problems.push(
      configErrors.CONFIG_VALUE_MISSING({ message: 'sources is empty', where: where(['sources']), remedy }),
    );
  }
  sameNames(names, ['sources'], where, findings);
  const topics = new Map<string, string>();
  const serverIds = new Map<number, string>();
  for (const [name, source] of Object.entries(config.sources)) {
    const topic = topicOf(config, name);
    const other = topics.get(topic);
    if (other !== undefined) {
      conflict(
        findings,
        where(['sources', name]),
        `topic '${topic}' is that of source '${other}', too`,
        'Give each source a topic of its own.',
      );
    }
    topics.set(topic, name);
    const twin = source.serverId === undefined ? undefined : serverIds.get(source.serverId);
    if (twin !== undefined) {
      conflict(
        findings,
        where(['sources', name, 'serverId']),
        `${source.serverId} is that of source '${twin}', too`,
        'Give each source a serverId of its own, or none.',
      );
    }
    if (source.serverId !== undefined) serverIds.set(source.serverId, name);
    tlsRule(source.tls, ['sources', name, 'tls'], where, findings);
    const captures = compileTablePatterns(source.tables);
    for (const option of ['partitionBy', 'onPartialRowOf', 'onUnseenChangeOf', 'onLargeRowOf'] as const) {
      for (const table of Object.keys(source[option])) {
        capturedTable(table, captures, where(['sources', name, option, table]), findings);
      }
    }
  }
}

function capturedTable(
  table: string,
  captures: (ref: TableRef) => boolean,
  at: ReturnType<Where>,
  findings: Findings,
): void {
  const ref = plainTable(table);
  if (ref === null) {
    const remedy = 'Write DATABASE.TABLE without wildcards; names with a dot in backticks.';
    conflict(findings, at, 'is not one table', remedy);
  } else if (!captures(ref)) {
    conflict(findings, at, 'is a table that is not captured', 'Correct the name, or capture the table.');
  }
}

/** `database.table` without wildcards, or null. A name with special characters may stand in backticks. */
export function plainTable(text: string): TableRef | null {
  const match = /^(?:`((?:[^`]|``)+)`|([^`.*?!\s]+))\.(?:`((?:[^`]|``)+)`|([^`.*?!\s]+))$/s.exec(text);
  if (match === null) return null;
  const name = (quoted: string | undefined, bare: string | undefined): string =>
    quoted?.replaceAll('``', '`') ?? bare ?? '';
  return { database: name(match[1], match[2]), table: name(match[3], match[4]) };
}

function sameNames(names: readonly string[], path: KeyPath, where: Where, findings: Findings): void {
  const words = new Map<string, string>();
  for (const name of names) {
    const other = words.get(environmentWord(name));
    if (other !== undefined) {
      const message = `differs from '${other}' only in case, - and _: their files and environment variables would be the same`;
      conflict(findings, where([...path, name]), message, 'Rename one of them.');
    }
    words.set(environmentWord(name), name);
  }
}

function tlsRule(
  tls: { cert?: unknown; key?: unknown } | undefined,
  path: KeyPath,
  where: Where,
  findings: Findings,
): void {
  if (tls === undefined || (tls.cert === undefined) === (tls.key === undefined)) return;
  conflict(findings, where(path), 'cert and key are only of use together', 'Give both, or none.');
}

function transportRules({ transport }: Config, where: Where, findings: Findings): void {
  const { kafka } = transport;
  if (transport.kind === 'kafka') {
    if (kafka.brokers.length === 0) {
      const message = 'transport.kafka.brokers is missing';
      const remedy = 'Set transport.kafka.brokers (or MYSYNC_TRANSPORT_KAFKA_BROKERS) to a list of HOST:PORT.';
      const at = where(['transport', 'kafka', 'brokers']);
      findings.problems.push(configErrors.CONFIG_VALUE_MISSING({ message, where: at, remedy }));
    }
    if (kafka.minInsyncReplicas > kafka.replicationFactor) {
      const message = `${kafka.minInsyncReplicas} replicas must have stored a batch, but there are ${kafka.replicationFactor}`;
      conflict(
        findings,
        where(['transport', 'kafka', 'minInsyncReplicas']),
        message,
        'Lower it, or raise replicationFactor.',
      );
    }
    tlsRule(kafka.tls, ['transport', 'kafka', 'tls'], where, findings);
  }
  if (transport.deleteRetentionMs < WEEK_MS && !transport.allowWeakerTopic) {
    const message = `${transport.deleteRetentionMs} is less than 7 days (${WEEK_MS}): a writer that is down for longer would miss deletions`;
    conflict(
      findings,
      where(['transport', 'deleteRetentionMs']),
      message,
      'Raise it, or accept the danger with transport.allowWeakerTopic: true.',
    );
  }
}

function checkpointRules({ checkpoint, sources }: Config, where: Where, findings: Findings): void {
  const { kind, mysql } = checkpoint;
  if (kind === 'mysql' && mysql === undefined) {
    const message = 'checkpoint.mysql is missing';
    const remedy = 'Set checkpoint.mysql with host, user, password and database, or use another checkpoint.kind.';
    findings.problems.push(
      configErrors.CONFIG_VALUE_MISSING({ message, where: where(['checkpoint', 'mysql']), remedy }),
    );
  }
  tlsRule(mysql?.tls, ['checkpoint', 'mysql', 'tls'], where, findings);
  if (kind !== 'topic') return;
  for (const [name, source] of Object.entries(sources)) {
    const topic = checkpointTopic(source.topic ?? name);
    const other = Object.entries(sources).find(([each, { topic: own }]) => (own ?? each) === topic);
    if (other === undefined) continue;
    const message = `topic '${topic}' of its checkpoint is the topic of source '${other[0]}', too`;
    conflict(findings, where(['sources', name]), message, 'Give one of the sources another topic.');
  }
}

/** Where the checkpoint of the source with this topic stands, with checkpoint.kind: topic. */
export function checkpointTopic(topic: string): string {
  return `${topic}-checkpoint`;
}

function sinkRules(config: Config, where: Where, findings: Findings): void {
  sameNames(Object.keys(config.sinks), ['sinks'], where, findings);
  const stores = new Map<string, string>();
  for (const [name, sink] of Object.entries(config.sinks)) {
    const path = ['sinks', name];
    const known = Object.keys(config.sources);
    sink.sources?.forEach((source, index) => {
      if (known.includes(source)) return;
      const message = `there is no source '${source}'${didYouMean(source, known)}`;
      conflict(findings, where([...path, 'sources', index]), message, `Name one of: ${known.join(', ')}.`);
    });
    if (sourcesOf(config, sink).length > 1) {
      const message = `${where(path).key} takes ${sourcesOf(config, sink).length} sources: rows of one table and key in two of them overwrite each other`;
      const remedy =
        'Make sure that their tables or keys differ, or give each source a sink of its own (option `sources`).';
      findings.warnings.push(configErrors.CONFIG_CONFLICT({ message, where: where(path), remedy }));
    }
    withholdingRule(config, name, where, findings);
    tlsRule(sink.tls, [...path, 'tls'], where, findings);
    if (sink.kind === 'redis') redisRules(sink, path, where, findings, stores);
    else {
      authRule(sink, path, where, findings);
      markerIndexRule(sink, path, where, findings);
    }
  }
}

/** A source that withholds large rows, so that it goes on, and a sink that stops at the first of them. */
function withholdingRule(config: Config, name: string, where: Where, findings: Findings): void {
  const sink = config.sinks[name];
  if (sink === undefined) return;
  const policies = sink.tables.map((rule) => rule.onPoison ?? sink.onPoison);
  for (const source of sourcesOf(config, sink)) {
    const options = config.sources[source];
    if (options === undefined) continue;
    const withholdsOne = Object.entries(options.onLargeRowOf).some(([table, choice]) => {
      const ref = choice === 'withhold' ? plainTable(table) : null;
      return (
        ref !== null && policies[sink.tables.findIndex((rule) => compileTablePatterns(rule.match)(ref))] === 'halt'
      );
    });
    if (!withholdsOne && !(options.onLargeRow === 'withhold' && policies.includes('halt'))) continue;
    const path = ['sinks', name, 'onPoison'];
    const { key } = where(path);
    const message = `${key}: source '${source}' withholds rows that are too large for the transport, and this sink halts a partition at each of them`;
    const remedy = `Set ${key}: park (or dead-letter), there or for the tables in question; or leave onLargeRow: halt, if the limit is to be raised then.`;
    findings.warnings.push(configErrors.CONFIG_CONFLICT({ message, where: where(path), remedy }));
  }
}

function redisRules(
  sink: RedisConfig,
  path: KeyPath,
  where: Where,
  findings: Findings,
  stores: Map<string, string>,
): void {
  if ((sink.hosts === undefined) === (sink.url === undefined)) {
    const message = sink.url === undefined ? 'names no server' : 'has both hosts and url';
    conflict(findings, where(path), message, 'Give `hosts` (a list of HOST:PORT) or `url`.');
    return;
  }
  const store = redisStore(sink);
  if (sink.cluster && store.db !== 0) {
    conflict(findings, where([...path, 'db']), 'a cluster has only database 0', 'Leave db out.');
  }
  if (sink.cluster && sink.failoverReplayMs * 2 >= sink.deletedTtlSeconds * 1000) {
    const message = 'what is applied again may be older than the deletions that are kept';
    const remedy = 'Make deletedTtlSeconds more than twice as long as failoverReplayMs.';
    conflict(findings, where([...path, 'failoverReplayMs']), message, remedy);
  }
  sink.tables.forEach((rule, index) => {
    rule.indexes?.forEach((each, at) => {
      const place = where([...path, 'tables', index, 'indexes', at]);
      if (each.kind === 'sorted-set' && each.score === undefined) {
        conflict(findings, place, 'a sorted set needs a score', 'Give `score` the name of a column of a number type.');
      } else if (each.kind === 'set' && each.score !== undefined) {
        conflict(findings, place, 'a set has no score', 'Use kind: sorted-set, or leave `score` out.');
      }
    });
  });
  for (const { host, port } of store.hosts) {
    const name = `${host}:${port} ${store.db} ${sink.prefix}`;
    const other = stores.get(name);
    if (other !== undefined && other !== path[1]) {
      const message = `shares server, database and prefix with sink '${other}': their markers would be the same`;
      conflict(findings, where(path), message, 'Give one of them another `prefix`.');
      return;
    }
    stores.set(name, String(path[1]));
  }
}

/** What Elasticsearch takes as the name of an index. */
function markerIndexRule({ markerIndex }: ElasticsearchConfig, path: KeyPath, where: Where, findings: Findings): void {
  const taken = /^[^A-Z\s\\/*?"<>|,#:_+-][^A-Z\s\\/*?"<>|,#:]*$/.test(markerIndex);
  if (taken && markerIndex !== '.' && markerIndex !== '..' && Buffer.byteLength(markerIndex) <= 255) return;
  const message = `'${markerIndex}' can be no name of an index`;
  const remedy = 'Use small letters, digits, hyphens and dots, at most 255 bytes, with a letter or a digit first.';
  conflict(findings, where([...path, 'markerIndex']), message, remedy);
}

function authRule({ auth }: ElasticsearchConfig, path: KeyPath, where: Where, findings: Findings): void {
  if (auth === undefined) return;
  const user = auth.username !== undefined && auth.password !== undefined;
  const part = auth.username !== undefined || auth.password !== undefined;
  if (auth.apiKey === undefined ? user : !part) return;
  conflict(
    findings,
    where([...path, 'auth']),
    'is neither a user nor an API key',
    'Give username and password, or apiKey alone.',
  );
}
