/** The settings that a topic must have, and what is weaker in one that exists. Pure. */
import type { TopicSpec } from '@mysync/transport';
import { BATCH_OVERHEAD_BYTES, type ResolvedKafkaOptions } from './options.ts';
import type { TopicMetadata } from './protocol/metadata.ts';

export type TopicConfig = ReadonlyMap<string, string>;

export interface Weakness {
  readonly setting: string;
  readonly value: string;
  /** What is asked for, as a person reads it. */
  readonly wanted: string;
  /** The exact command that mends it. */
  readonly command: string;
}

type Limits = Pick<ResolvedKafkaOptions, 'brokers' | 'replicationFactor' | 'minInsyncReplicas' | 'maxRecordBytes'>;

/** What a new topic gets, on a cluster of so many brokers. */
export function settingsFor(
  spec: TopicSpec,
  options: Limits,
  brokers: number,
): { readonly replicationFactor: number; readonly config: ReadonlyMap<string, string> } {
  const replicationFactor = Math.min(options.replicationFactor, brokers);
  // With as many in-sync replicas demanded as there are, the loss of one would stop all writing.
  const insync = Math.max(1, Math.min(options.minInsyncReplicas, replicationFactor - 1));
  const config = new Map([
    ['min.insync.replicas', `${replicationFactor < options.replicationFactor ? insync : options.minInsyncReplicas}`],
    ['unclean.leader.election.enable', 'false'],
    ['compression.type', 'producer'],
    // The broker's clock: a skewed one of ours can then neither delay compaction nor have batches refused.
    ['message.timestamp.type', 'LogAppendTime'],
    ['max.message.bytes', `${options.maxRecordBytes + BATCH_OVERHEAD_BYTES}`],
    ['cleanup.policy', spec.compacted ? 'compact' : 'delete'],
  ]);
  if (spec.compacted) {
    config.set('delete.retention.ms', `${spec.deleteRetentionMs}`);
    config.set('min.compaction.lag.ms', `${spec.minCompactionLagMs}`);
  } else {
    config.set('retention.ms', `${spec.retentionMs}`);
    config.set('retention.bytes', '-1');
  }
  return { replicationFactor, config };
}

/** What would be weaker in a topic that is made on a cluster of so many brokers. */
export function weaknessesOfNew(spec: TopicSpec, options: Limits, brokers: number): Weakness[] {
  if (brokers >= options.replicationFactor) return [];
  return [
    {
      setting: 'replication.factor',
      value: `${brokers} (the cluster has ${brokers} broker${brokers === 1 ? '' : 's'})`,
      wanted: `at least ${options.replicationFactor}`,
      command: `add brokers, or accept it for '${spec.name}' (transport.allowWeakerTopic: true)`,
    },
  ];
}

/** What is weaker in a topic that exists. */
export function weaknessesOf(spec: TopicSpec, options: Limits, topic: TopicMetadata, config: TopicConfig): Weakness[] {
  const found: Weakness[] = [];
  const value = (name: string): string => config.get(name) ?? 'unknown';
  const alter = (setting: string, wanted: string, to: string): void => {
    const change = `--bootstrap-server ${options.brokers[0]} --alter --entity-type topics --entity-name ${spec.name}`;
    const command = `kafka-configs.sh ${change} --add-config ${to.includes(',') ? `${setting}=[${to}]` : `${setting}=${to}`}`;
    found.push({ setting, value: value(setting), wanted, command });
  };
  const least = (setting: string, wanted: number): void => {
    const has = Number(config.get(setting));
    if (!(has >= wanted)) alter(setting, `at least ${wanted}`, `${wanted}`);
  };
  const replicas = Math.min(...topic.partitions.map((partition) => partition.replicas.length));
  if (replicas < options.replicationFactor) {
    found.push({
      setting: 'replication.factor',
      value: `${replicas}`,
      wanted: `at least ${options.replicationFactor}`,
      command:
        `kafka-reassign-partitions.sh --bootstrap-server ${options.brokers[0]} --execute --reassignment-json-file FILE, ` +
        `where FILE names ${options.replicationFactor} brokers for each partition of ${spec.name}`,
    });
  }
  least('min.insync.replicas', options.minInsyncReplicas);
  if (value('unclean.leader.election.enable') !== 'false') alter('unclean.leader.election.enable', 'false', 'false');
  const policy = spec.compacted ? 'compact' : 'delete';
  if (value('cleanup.policy') !== policy) alter('cleanup.policy', policy, policy);
  if (spec.compacted) {
    least('delete.retention.ms', spec.deleteRetentionMs);
    least('min.compaction.lag.ms', spec.minCompactionLagMs);
  } else {
    const retention = Number(config.get('retention.ms'));
    const enough = retention === -1 || (spec.retentionMs !== -1 && retention >= spec.retentionMs);
    if (!enough) alter('retention.ms', `at least ${spec.retentionMs} (-1: for ever)`, `${spec.retentionMs}`);
    if (value('retention.bytes') !== '-1') alter('retention.bytes', '-1 (no limit)', '-1');
  }
  least('max.message.bytes', options.maxRecordBytes + BATCH_OVERHEAD_BYTES);
  if (!['producer', 'uncompressed', 'gzip'].includes(value('compression.type'))) {
    alter('compression.type', 'producer, uncompressed or gzip', 'producer');
  }
  return found;
}
