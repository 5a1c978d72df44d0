import type { ConnectionOptions } from 'node:tls';
import type { ProjectionRule, TableRule } from '@mysync/mapping';

/** A secondary structure: sets of members under keys of their own, kept by what is stored beside each row. */
export interface RedisIndexRule {
  /** Template of the set's key, for example `{table}:by_customer:{column:customer_id}`. A row with a NULL there is in no set. */
  readonly key: string;
  readonly kind: 'set' | 'sorted-set';
  /** Template of the member; default `{key}`. */
  readonly member?: string;
  /** Of a sorted set: a number column. Redis keeps scores as doubles. A row with a NULL score is in no set. */
  readonly score?: string;
}

export interface RedisTableRule extends TableRule, ProjectionRule {
  readonly as: 'hash' | 'json';
  /** Template of the row's key; default `{table}:{key}`. */
  readonly key?: string;
  readonly ttlSeconds?: number;
  /** NULL in a hash: the field is not there (default), or the field is empty. */
  readonly nulls?: 'omit' | 'empty';
  /** Bytes in a hash: base64 (default), hex, or as they are. In JSON `raw` means base64. */
  readonly bytes?: 'base64' | 'hex' | 'raw';
  /** DECIMAL in JSON: as text (default) or as a number with all its digits. */
  readonly decimals?: 'string' | 'number';
  /** Columns besides the key that the key template may contain. */
  readonly partitionBy?: readonly string[];
  readonly indexes?: readonly RedisIndexRule[];
}

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

export interface RedisSinkOptions {
  /** Of the sink in the configuration, for errors. Default `NAME`. */
  readonly name?: string;
  /** One server: the first that answers as a master. Cluster: seeds. */
  readonly hosts: readonly RedisAddress[];
  readonly cluster?: boolean;
  readonly username?: string;
  readonly password?: string;
  /** Database number; not in a cluster. */
  readonly db?: number;
  readonly tls?: ConnectionOptions;
  readonly tables: readonly RedisTableRule[];
  /** Begins the names of MySync's own keys. Default `mysync`. */
  readonly prefix?: string;
  /** How long the version of a deleted row is kept: longer than a writer can be frozen and still send. Default one day. */
  readonly deletedTtlSeconds?: number;
  readonly connectTimeoutMs?: number;
  /** After this long without an answer the connection is given up and replaced. Default 10 s. */
  readonly commandTimeoutMs?: number;
  /** Rows that one script applies. Default 100. */
  readonly chunkRows?: number;
}

/** Options with everything filled in. */
export interface RedisSettings {
  readonly sinkName: string;
  readonly hosts: readonly RedisAddress[];
  readonly cluster: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  readonly tls: ConnectionOptions | undefined;
  readonly prefix: string;
  readonly deletedTtlSeconds: number;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly chunkRows: number;
  /** Rows are members of index sets. */
  readonly indexed: boolean;
}

export function redisSettings(options: RedisSinkOptions): RedisSettings {
  return {
    sinkName: options.name ?? 'NAME',
    hosts: options.hosts,
    cluster: options.cluster ?? false,
    username: options.username,
    password: options.password,
    db: options.db ?? 0,
    tls: options.tls,
    prefix: options.prefix ?? 'mysync',
    deletedTtlSeconds: options.deletedTtlSeconds ?? 86_400,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    commandTimeoutMs: options.commandTimeoutMs ?? 10_000,
    chunkRows: options.chunkRows ?? 100,
    indexed: options.tables.some(({ indexes = [] }) => indexes.length > 0),
  };
}
