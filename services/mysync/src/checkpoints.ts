/** Where the checkpoints of the configuration stand: opened by readers, looked at by everybody else. */
import {
  type Checkpoint,
  FileCheckpointStore,
  type OwnedCheckpointStore,
  readCheckpointFile,
  readSchemaHistoryFile,
  type SchemaHistory,
  schemaHistoryPath,
} from '@mysync/checkpoint';
import type { MysqlPlace } from '@mysync/checkpoint-mysql';
import { type Config, checkpointTopic, parseHost, topicOf } from '@mysync/config';
import { errorForLog, type Logger, systemClock } from '@mysync/core';
import { retryForever } from '@mysync/flow';
import { secureOptions } from '@mysync/source-mysql';
import type { Transport } from '@mysync/transport';
import { checkpointPath, MYSQL_PORT, openQuietTransport, sqlTls } from './compose.ts';

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
  return await lookOn(config, source, {
    file: readCheckpointFile,
    mysql: async (place) => await (await import('@mysync/checkpoint-mysql')).readMysqlCheckpoint(place, source),
    topic: async (transport, topic) =>
      await (await import('@mysync/checkpoint-topic')).readTopicCheckpoint(transport, topic),
  });
}

/** Likewise the schema history that is kept beside it. */
export async function readSchemaHistory(config: Config, source: string): Promise<SchemaHistory | null> {
  return await lookOn(config, source, {
    file: (path) => readSchemaHistoryFile(schemaHistoryPath(path)),
    mysql: async (place) => await (await import('@mysync/checkpoint-mysql')).readMysqlSchemaHistory(place, source),
    topic: async (transport, topic) =>
      await (await import('@mysync/checkpoint-topic')).readTopicSchemaHistory(transport, topic),
  });
}

async function lookOn<T>(
  config: Config,
  source: string,
  read: {
    file(path: string): Promise<T>;
    mysql(place: MysqlPlace): Promise<T>;
    topic(transport: Transport, topic: string): Promise<T>;
  },
): Promise<T> {
  const place = mysqlPlace(config);
  if (place !== null) return await read.mysql(place);
  if (config.checkpoint.kind === 'file') return await read.file(checkpointPath(config, source));
  const transport = await openQuietTransport(config);
  try {
    return await read.topic(transport, checkpointTopic(topicOf(config, source)));
  } finally {
    await transport.close();
  }
}

function mysqlPlace({ checkpoint }: Config): MysqlPlace | null {
  const { kind, mysql } = checkpoint;
  if (kind !== 'mysql' || mysql === undefined) return null;
  const address = parseHost(mysql.host, MYSQL_PORT);
  return {
    ...address,
    user: mysql.user,
    password: mysql.password?.reveal() ?? '',
    database: mysql.database,
    ...(mysql.tls === undefined ? {} : { secure: secureOptions(sqlTls(mysql.tls), address) }),
  };
}
