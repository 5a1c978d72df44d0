/** What a seed runs on: everything but the faults, chosen from the seed alone. */
import type { Dice } from './dice.ts';

export type TransportName = 'log' | 'kafka';
export type SinkName = 'redis' | 'elasticsearch';
/** What runs behind a sink. */
export type StoreName = SinkName | 'redis-cluster';
export type SourceName = 'mariadb' | 'mysql';

export type CheckpointName = 'file' | 'mysql' | 'topic';

export interface Setting {
  readonly transport: TransportName;
  readonly source: SourceName;
  readonly sinks: readonly SinkName[];
  /** Redis is a cluster of three masters with a replica each. */
  readonly cluster: boolean;
  /** One process for everything, or a reader and this many writers of each sink. */
  readonly oneProcess: boolean;
  readonly writers: number;
  readonly partitions: number;
  /** The processes see a clock that can be set. */
  readonly ownClock: boolean;
  /** Log, checkpoint and spool lie on a file system of their own, which can be filled. */
  readonly ownDisk: boolean;
  /** The log forgets deletions within moments. */
  readonly shortRetention: boolean;
  /** How often the embedded log is compacted; null: as by default. */
  readonly compactionMs: number | null;
  readonly checkpoint: CheckpointName;
  readonly rowsPerSecond: number;
  /** Sections of the configuration, over what the suite needs anyway. */
  readonly reader: Readonly<Record<string, unknown>>;
  readonly sink: Readonly<Record<string, unknown>>;
  readonly sourceOptions: Readonly<Record<string, unknown>>;
  readonly transportOptions: Readonly<Record<string, unknown>>;
}

/** How long the log keeps deletions in a seed that is about that: time enough for writers that start on a busy machine. */
export const FORGOTTEN_MS = 10_000;
/** Of a topic in such a seed. */
export const FORGETFUL_TOPIC: Readonly<Record<string, string>> = {
  'delete.retention.ms': `${FORGOTTEN_MS}`,
  'min.compaction.lag.ms': '0',
  'max.compaction.lag.ms': '1000',
  'min.cleanable.dirty.ratio': '0.01',
  'segment.ms': '1000',
  'file.delete.delay.ms': '1000',
  'message.timestamp.type': 'LogAppendTime',
};

export interface Abilities {
  /** A file system can be mounted here. */
  readonly disk: boolean;
  /** libfaketime is at hand. */
  readonly clock: boolean;
}

export function chooseSetting(dice: Dice, transport: TransportName, can: Abilities, rate: number): Setting {
  const elastic = dice.chance(0.12);
  const sinks: readonly SinkName[] = elastic
    ? dice.chance(0.5)
      ? ['redis', 'elasticsearch']
      : ['elasticsearch']
    : ['redis'];
  const oneProcess = dice.chance(0.25);
  const shortRetention = dice.chance(0.06);
  return {
    transport,
    source: dice.chance(0.12) ? 'mysql' : 'mariadb',
    sinks,
    cluster: false,
    oneProcess,
    writers: oneProcess ? 1 : dice.integer(1, elastic ? 2 : 3),
    partitions: dice.pick([1, 4, 4, 6]),
    ownClock: can.clock && dice.chance(0.15),
    ownDisk: can.disk && dice.chance(0.25),
    shortRetention,
    compactionMs: shortRetention ? 300 : null,
    checkpoint: 'file',
    // a node of Elasticsearch beside everything else on two cores takes no more
    rowsPerSecond: elastic ? Math.min(rate, 300) : rate,
    // small ones make many batches and checkpoints, and so many moments to be killed in; defaults are what users run
    reader: dice.chance(0.5)
      ? {
          checkpointMs: dice.pick([20, 100, 500]),
          batchMessages: dice.pick([20, 100]),
          windowMessages: dice.pick([300, 3000]),
        }
      : {},
    // Elasticsearch takes about as long for one change as for a thousand
    sink:
      dice.chance(0.5) && !elastic
        ? { maxBatchChanges: dice.pick([20, 100]), commitIntervalMs: dice.pick([20, 200]) }
        : {},
    sourceOptions: dice.chance(0.5) ? { spoolBytes: 65_536, queueBytes: 262_144 } : {},
    transportOptions: shortRetention
      ? { deleteRetentionMs: FORGOTTEN_MS, minCompactionLagMs: 0, allowWeakerTopic: true }
      : {},
  };
}

/** The same with a Redis Cluster, where that fits. */
export function onCluster(setting: Setting): Setting {
  const fits = setting.sinks.length === 1 && setting.sinks[0] === 'redis' && !setting.shortRetention;
  return fits ? { ...setting, cluster: true } : setting;
}

export function storeOf({ cluster }: Pick<Setting, 'cluster'>, sink: SinkName): StoreName {
  return cluster && sink === 'redis' ? 'redis-cluster' : sink;
}

/** One server of Redis, behind a proxy. */
export function hasRedisServer({ sinks, cluster }: Setting): boolean {
  return sinks.includes('redis') && !cluster;
}
