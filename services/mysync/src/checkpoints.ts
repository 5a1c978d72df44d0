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
import type { MysqlCheckpointLook, MysqlPlace } from '@mysync/checkpoint-mysql';
import { type Config, checkpointTopic, parseHost, topicOf } from '@mysync/config';
import { errorForLog, type Logger, systemClock } from '@mysync/core';
import { retryForever } from '@mysync/flow';
import { secureOptions } from '@mysync/source-mysql';
import type { Transport } from '@mysync/transport';
import { AbsentLog } from './absent-log.ts';
import { checkpointPath, MYSQL_PORT, openLookedAtTransport, sqlTls } from './compose.ts';

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

/** Looks at the checkpoint of a source again and again, over one connection. Takes nothing from its owner. */
export class CheckpointLook {
  readonly #config: Config;
  readonly #source: string;
  #mysql: MysqlCheckpointLook | undefined;
  #transport: Transport | undefined;

  constructor(config: Config, source: string) {
    this.#config = config;
    this.#source = source;
  }

  /** The newest that is stored; null when there is none. */
  async load(): Promise<Checkpoint | null> {
    const { checkpoint } = this.#config;
    const place = mysqlPlace(this.#config);
    if (place !== null) {
      this.#mysql ??= new (await import('@mysync/checkpoint-mysql')).MysqlCheckpointLook(place, this.#source);
      return await this.#mysql.load();
    }
    if (checkpoint.kind === 'file') return await readCheckpointFile(checkpointPath(this.#config, this.#source));
    const { readTopicCheckpoint } = await import('@mysync/checkpoint-topic');
    const transport = await this.#opened();
    return await readTopicCheckpoint(transport, checkpointTopic(topicOf(this.#config, this.#source)));
  }

  async close(): Promise<void> {
    this.#mysql?.close();
    await this.#transport?.close();
  }

  async #opened(): Promise<Transport> {
    const transport = this.#transport ?? (await openLookedAtTransport(this.#config));
    // one that is not there yet may come
    if (!(transport instanceof AbsentLog)) this.#transport = transport;
    return transport;
  }
}

/** Likewise, once. */
export async function readCheckpoint(config: Config, source: string): Promise<Checkpoint | null> {
  const look = new CheckpointLook(config, source);
  try {
    return await look.load();
  } finally {
    await look.close();
  }
}

/** The schema history that is kept beside it. */
export async function readSchemaHistory(config: Config, source: string): Promise<SchemaHistory | null> {
  const place = mysqlPlace(config);
  if (place !== null) return await (await import('@mysync/checkpoint-mysql')).readMysqlSchemaHistory(place, source);
  if (config.checkpoint.kind === 'file') {
    return await readSchemaHistoryFile(schemaHistoryPath(checkpointPath(config, source)));
  }
  const { readTopicSchemaHistory } = await import('@mysync/checkpoint-topic');
  const transport = await openLookedAtTransport(config);
  try {
    return await readTopicSchemaHistory(transport, checkpointTopic(topicOf(config, source)));
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
