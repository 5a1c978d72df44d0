/** Making, describing and checking topics, and the ranges of their partitions. */
import { causeText, type Finding, isMysyncError } from '@mysync/core';
import { type OffsetRange, type TopicDescription, type TopicSpec, transportErrors } from '@mysync/transport';
import { BrokerError, hasCode } from './broker-error.ts';
import { brokerSettings } from './broker-settings.ts';
import type { Cluster } from './cluster.ts';
import { kafkaErrors } from './errors.ts';
import { nameFindings } from './name-memory.ts';
import { patiently } from './patience.ts';
import { CODE, codeName } from './protocol/codes.ts';
import type { TopicMetadata } from './protocol/metadata.ts';
import { sessionFindings } from './session-limits.ts';
import { settingsFor, type TopicConfig, type Weakness, weaknessesOf, weaknessesOfNew } from './topic-settings.ts';

const TOPIC_RESOURCE = 2;
const EARLIEST = '-2';
const LATEST = '-1';

export class TopicAdmin {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async ensure(spec: TopicSpec): Promise<TopicDescription> {
    const found = await this.#patiently('metadata of the topic', () => this.#cluster.topic(spec.name));
    if (found === null) await this.#create(spec);
    // Brokers hear of a new topic one after another, and of its leaders later.
    const topic = await this.#patiently(`the new topic '${spec.name}'`, async () => {
      const now = found ?? (await this.#cluster.topic(spec.name));
      if (now === null) throw new BrokerError(CODE.UNKNOWN_TOPIC_OR_PARTITION, 'not known to the broker yet');
      if (found === null && now.partitions.some(({ leader }) => leader < 0)) {
        throw new BrokerError(CODE.UNKNOWN_TOPIC_OR_PARTITION, 'a partition has no leader yet');
      }
      return now;
    });
    if (topic.partitions.length !== spec.partitions) throw differs(spec, topic);
    if (!spec.allowWeaker) {
      const weaknesses = weaknessesOf(spec, this.#cluster.options, topic, await this.config(spec.name));
      if (weaknesses.length > 0) throw weaker(spec, weaknesses);
    }
    return describe(topic);
  }

  async describe(name: string): Promise<TopicDescription | null> {
    const topic = await this.#patiently('metadata of the topic', () => this.#cluster.topic(name));
    return topic === null ? null : describe(topic);
  }

  /** The effective settings of a topic, those of the broker included. */
  async config(name: string): Promise<TopicConfig> {
    return await this.#patiently('the settings of the topic', async () => {
      const answer = await this.#cluster.anyNode((link) =>
        link.call(
          (broker) => broker.describeConfigs({ resources: [{ type: TOPIC_RESOURCE, name }] }),
          `settings ${name}`,
        ),
      );
      const entries = answer.resources[0]?.configEntries ?? [];
      return new Map(entries.map(({ configName, configValue }) => [configName, configValue ?? '']));
    });
  }

  async check(spec: TopicSpec): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    try {
      const metadata = await this.#cluster.metadata([]);
      const nodes = metadata.nodes.map(({ nodeId, host, port }) => `${nodeId} at ${host}:${port}`);
      const message = `Kafka answers; brokers: ${nodes.join(', ')}`;
      findings.push({ level: 'ok', code: 'TRANSPORT_UNREACHABLE', message, remedy: '' });
      const brokers = await brokerSettings(this.#cluster, metadata.nodes);
      const { sessionTimeoutMs, producerRenewalMs } = this.#cluster.options;
      findings.push(...sessionFindings(brokers, sessionTimeoutMs), ...nameFindings(brokers, producerRenewalMs));
      await this.#checkTopic(spec, metadata.nodes.length, findings);
    } catch (error) {
      const code = isMysyncError(error) ? error.code : 'TRANSPORT_UNREACHABLE';
      const remedy = isMysyncError(error) ? error.remedy : transportErrors.entries.TRANSPORT_UNREACHABLE.remedy;
      findings.push({ level: 'error', code, message: causeText(error), remedy });
    }
    return findings;
  }

  async ranges(name: string): Promise<readonly OffsetRange[]> {
    return await this.#patiently('the offsets of the topic', async () => {
      const topic = await this.#cluster.topic(name);
      if (topic === null) throw missing(name);
      const ranges = new Array<OffsetRange>(topic.partitions.length);
      const leaders = new Map<number, number[]>();
      for (const { partition, leader } of topic.partitions) {
        leaders.set(leader, [...(leaders.get(leader) ?? []), partition]);
      }
      await Promise.all(
        [...leaders].map(async ([leader, partitions]) => {
          const earliest = await listOffsets(this.#cluster, { topic: name, leader, partitions }, EARLIEST);
          const end = await listOffsets(this.#cluster, { topic: name, leader, partitions }, LATEST);
          for (const partition of partitions) {
            ranges[partition] = { earliest: earliest.get(partition) ?? 0, end: end.get(partition) ?? 0 };
          }
        }),
      );
      return ranges;
    });
  }

  async #checkTopic(spec: TopicSpec, brokers: number, findings: Finding[]): Promise<void> {
    const topic = await this.#cluster.topic(spec.name);
    const { options } = this.#cluster;
    const code = 'TRANSPORT_TOPIC_WEAKER';
    const weaknesses =
      topic === null
        ? weaknessesOfNew(spec, options, brokers)
        : weaknessesOf(spec, options, topic, await this.config(spec.name));
    if (topic === null) {
      const message = `the topic '${spec.name}' is not there yet: the reader makes it`;
      findings.push({ level: 'ok', code: 'TRANSPORT_TOPIC_MISSING', message, remedy: '' });
    } else if (topic.partitions.length !== spec.partitions) {
      const { message, remedy } = differs(spec, topic);
      findings.push({ level: 'error', code: 'TRANSPORT_PARTITIONS_DIFFER', message, remedy });
    }
    for (const weakness of weaknesses) {
      const message = `topic '${spec.name}': ${weakness.setting} is ${weakness.value}, asked for is ${weakness.wanted}`;
      findings.push({ level: spec.allowWeaker ? 'warning' : 'error', code, message, remedy: weakness.command });
    }
    if (topic !== null && weaknesses.length === 0) {
      const message = `topic '${spec.name}': ${topic.partitions.length} partitions, settings as asked for`;
      findings.push({ level: 'ok', code, message, remedy: '' });
    }
  }

  async #create(spec: TopicSpec): Promise<void> {
    const { nodes } = await this.#patiently('the brokers', () => this.#cluster.metadata([]));
    const weaknesses = weaknessesOfNew(spec, this.#cluster.options, nodes.length);
    if (weaknesses.length > 0 && !spec.allowWeaker) throw weaker(spec, weaknesses);
    const { replicationFactor, config } = settingsFor(spec, this.#cluster.options, nodes.length);
    const topic = {
      topic: spec.name,
      numPartitions: spec.partitions,
      replicationFactor,
      configEntries: [...config].map(([name, value]) => ({ name, value })),
    };
    const timeout = Math.ceil(this.#cluster.options.requestTimeoutMs * 0.8);
    await this.#patiently(`making the topic '${spec.name}'`, async () => {
      const { controller } = await this.#cluster.metadata([]);
      try {
        const link = await this.#cluster.link(controller, 'admin');
        await link.call(
          (broker) => broker.createTopics({ topics: [topic], validateOnly: false, timeout }),
          `make ${spec.name}`,
        );
      } catch (error) {
        // Another reader was faster: then its topic is checked like any other.
        if (hasCode(error, CODE.TOPIC_ALREADY_EXISTS)) return;
        if (hasCode(error, ...NEVER_ACCEPTED)) {
          throw kafkaErrors.KAFKA_TOPIC_INVALID({
            message: `Kafka does not make the topic: ${codeName((error as BrokerError).code as number)}`,
            where: { topic: spec.name, partitions: spec.partitions, replicationFactor },
            cause: error,
          });
        }
        throw error;
      }
    });
  }

  async #patiently<T>(what: string, call: () => Promise<T>): Promise<T> {
    return await patiently({ what, limitMs: 2 * this.#cluster.options.requestTimeoutMs }, call);
  }
}

const NEVER_ACCEPTED = [
  CODE.INVALID_TOPIC_EXCEPTION,
  CODE.INVALID_CONFIG,
  CODE.INVALID_PARTITIONS,
  CODE.INVALID_REPLICATION_FACTOR,
  CODE.POLICY_VIOLATION,
];

/** One end of some partitions of one leader. Throws a `BrokerError` when it cannot be told at the moment. */
export async function listOffsets(
  cluster: Cluster,
  at: { readonly topic: string; readonly leader: number; readonly partitions: readonly number[] },
  timestamp: string,
): Promise<Map<number, number>> {
  const link = await cluster.link(at.leader, 'ask');
  const partitions = at.partitions.map((partition) => ({ partition, timestamp }));
  const answer = await link.call(
    (broker) => broker.listOffsets({ replicaId: -1, isolationLevel: 0, topics: [{ topic: at.topic, partitions }] }),
    `offsets ${at.topic}`,
  );
  const found = answer.responses.flatMap((response) => response.partitions);
  return new Map(found.map(({ partition, offset }) => [partition, Number(offset)]));
}

/** Both ends of one partition. */
export async function rangeOf(
  cluster: Cluster,
  at: { readonly topic: string; readonly leader: number; readonly partition: number },
): Promise<OffsetRange> {
  const place = { topic: at.topic, leader: at.leader, partitions: [at.partition] };
  const earliest = (await listOffsets(cluster, place, EARLIEST)).get(at.partition) ?? 0;
  return { earliest, end: (await listOffsets(cluster, place, LATEST)).get(at.partition) ?? 0 };
}

export function describe(topic: TopicMetadata): TopicDescription {
  return { name: topic.name, id: topic.id, partitions: topic.partitions.length };
}

export function missing(name: string): Error {
  return transportErrors.TRANSPORT_TOPIC_MISSING({ message: `there is no topic '${name}'`, where: { topic: name } });
}

function differs(spec: TopicSpec, topic: TopicMetadata) {
  return transportErrors.TRANSPORT_PARTITIONS_DIFFER({
    message: `the topic '${spec.name}' has ${topic.partitions.length} partitions, configured are ${spec.partitions}`,
    where: { topic: spec.name },
  });
}

function weaker(spec: TopicSpec, weaknesses: readonly Weakness[]): Error {
  const each = weaknesses.map(({ setting, value, wanted }) => `${setting} is ${value}, asked for is ${wanted}`);
  return transportErrors.TRANSPORT_TOPIC_WEAKER({
    message: `the topic '${spec.name}' is weaker than asked for: ${each.join('; ')}`,
    where: { topic: spec.name },
    remedy: `Run ${weaknesses.map(({ command }) => command).join(' ; ')} -- or set transport.allowWeakerTopic: true.`,
  });
}
