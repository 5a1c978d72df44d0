/** Where the checkpoints of the configuration stand: opened by readers, looked at by everybody else. */
import {
  type Checkpoint,
  FileCheckpointStore,
  type OwnedCheckpointStore,
  readCheckpointFile,
} from '@mysync/checkpoint';
import type { MysqlPlace } from '@mysync/checkpoint-mysql';
import { type Config, checkpointTopic, parseHost, topicOf } from '@mysync/config';
import { errorForLog, systemClock } from '@mysync/core';
import { retryForever } from '@mysync/flow';
import { createMetrics, type Logger, silentLogger } from '@mysync/telemetry';
import type { Transport } from '@mysync/transport';
import { checkpointPath, MYSQL_PORT, nodeTls, openTransport } from './compose.ts';

export interface CheckpointParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** `transport` for checkpoints that stand in a topic of it. What passes is waited for. */
export async function openCheckpoints(
  { config, logger, signal }: CheckpointParts,
  source: string,
  transport: Transport | null,
): Promise<OwnedCheckpointStore> {
  return await retryForever(() => open(config, source, transport, signal), {
    minMs: 500,
    maxMs: 10_000,
    clock: systemClock,
    signal,
    onRetry: ({ error, delayMs }) => {
      logger.warn({ source, error: errorForLog(error), waitMs: delayMs }, 'the checkpoint cannot be opened for now');
    },
  });
}

async function open(
  config: Config,
  source: string,
  transport: Transport | null,
  signal: AbortSignal,
): Promise<OwnedCheckpointStore> {
  const place = mysqlPlace(config);
  if (place !== null) {
    const { MysqlCheckpointStore } = await import('@mysync/checkpoint-mysql');
    return await MysqlCheckpointStore.open({ ...place, source, signal });
  }
  if (transport !== null) {
    const { TopicCheckpointStore } = await import('@mysync/checkpoint-topic');
    const topic = checkpointTopic(topicOf(config, source));
    const { allowWeakerTopic } = config.transport;
    return await TopicCheckpointStore.open({ transport, topic, source, allowWeakerTopic, signal });
  }
  return await FileCheckpointStore.open({ path: checkpointPath(config, source), signal });
}

/** The newest checkpoint that is stored; null when there is none. Takes nothing from its owner. */
export async function readCheckpoint(config: Config, source: string): Promise<Checkpoint | null> {
  const place = mysqlPlace(config);
  if (place !== null) {
    const { readMysqlCheckpoint } = await import('@mysync/checkpoint-mysql');
    return await readMysqlCheckpoint(place, source);
  }
  if (config.checkpoint.kind === 'file') return await readCheckpointFile(checkpointPath(config, source));
  const { readTopicCheckpoint } = await import('@mysync/checkpoint-topic');
  const transport = await openTransport(config, { logger: silentLogger, metrics: createMetrics(), maintenance: false });
  try {
    return await readTopicCheckpoint(transport, checkpointTopic(topicOf(config, source)));
  } finally {
    await transport.close();
  }
}

function mysqlPlace({ checkpoint }: Config): MysqlPlace | null {
  const { kind, mysql } = checkpoint;
  if (kind !== 'mysql' || mysql === undefined) return null;
  return {
    ...parseHost(mysql.host, MYSQL_PORT),
    user: mysql.user,
    password: mysql.password?.reveal() ?? '',
    database: mysql.database,
    ...(mysql.tls === undefined ? {} : { tls: nodeTls(mysql.tls) }),
  };
}
