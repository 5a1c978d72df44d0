/** Looks into the stores with clients that MySync does not use in the same way, and none of its code. */
import { readIndex, readRedisHashes } from '@mysync/harness';
import { Redis } from 'ioredis';
import type { SinkName } from './setting.ts';

export interface Target {
  readonly table: string;
  /** Its key values, joined by commas. */
  readonly key: string;
}

/** What a writer says of a partition in the sink. */
export interface Marker {
  readonly nextOffset: number;
  /** Who held the sink's data when it was written, for sinks that tell; a writer that finds others goes back by itself. */
  readonly holders: string;
  /** It has several copies, which are not looked at in one moment. */
  readonly copied: boolean;
}

export interface SinkEye {
  readonly name: SinkName;
  /** `n` of each row as the sink has it now; null: the row is not there. Rejects while the sink cannot be asked. */
  look(targets: readonly Target[]): Promise<readonly (number | null)[]>;
  /** Each partition's applied marker, as far as there is one. */
  markers(topic: string, partitions: number): Promise<ReadonlyMap<number, Marker>>;
  /** All rows of a table. */
  readAll(
    table: string,
    keyColumns: readonly string[],
  ): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>>;
  close(): void;
}

export const PATIENCE_MS = 1500;

export class RedisEye implements SinkEye {
  readonly name = 'redis';
  readonly #url: string;
  readonly #database: string;
  readonly #redis: Redis;

  constructor(url: string, database: string) {
    this.#url = url;
    this.#database = database;
    this.#redis = new Redis(url, {
      retryStrategy: () => 50,
      maxRetriesPerRequest: 0,
      commandTimeout: PATIENCE_MS,
      enableOfflineQueue: false,
    });
    this.#redis.on('error', () => undefined);
  }

  async look(targets: readonly Target[]): Promise<readonly (number | null)[]> {
    const pipeline = this.#redis.pipeline();
    for (const { table, key } of targets) pipeline.hget(`${this.#database}:${table}:${key}`, 'n');
    const replies = (await pipeline.exec()) ?? [];
    return replies.map(([error, text]) => {
      if (error !== null) throw error;
      return text === null ? null : Number(text);
    });
  }

  async markers(topic: string, partitions: number): Promise<ReadonlyMap<number, Marker>> {
    const found = new Map<number, Marker>();
    const keys = await this.#redis.keys(`mysync:m:{*}${topic}:*`);
    for (const key of keys) {
      const partition = Number(key.slice(key.lastIndexOf(':') + 1));
      const text = await this.#redis.hget(key, 'm');
      if (text !== null && partition < partitions) found.set(partition, markerOf(text));
    }
    return found;
  }

  async readAll(table: string): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
    return await readRedisHashes(this.#url, `${this.#database}:${table}:`);
  }

  close(): void {
    this.#redis.disconnect();
  }
}

export class ElasticEye implements SinkEye {
  readonly name = 'elasticsearch';
  readonly #url: string;
  readonly #database: string;

  constructor(url: string, database: string) {
    this.#url = url;
    this.#database = database;
  }

  async look(targets: readonly Target[]): Promise<readonly (number | null)[]> {
    const docs = targets.map(({ table, key }) => ({ _index: `${this.#database}-${table}`, _id: key, _source: ['n'] }));
    const answer = (await this.#ask('_mget', { docs })) as {
      docs: { found?: boolean; error?: { type: string }; _source?: { n: number } }[];
    };
    return answer.docs.map(({ found, error, _source }) => {
      if (error !== undefined && error.type !== 'index_not_found_exception') throw new Error(error.type);
      return found === true && _source !== undefined ? Number(_source.n) : null;
    });
  }

  async markers(topic: string, partitions: number): Promise<ReadonlyMap<number, Marker>> {
    const found = new Map<number, Marker>();
    await this.#ask('mysync-markers/_refresh');
    const query = { size: 1000, query: { term: { topic } } };
    const answer = (await this.#ask('mysync-markers/_search', query)) as {
      hits: { hits: { _source: { partition?: number; marker?: string } }[] };
    };
    for (const { _source } of answer.hits.hits) {
      const { partition, marker } = _source;
      if (partition !== undefined && marker !== undefined && partition < partitions) {
        found.set(partition, markerOf(marker));
      }
    }
    return found;
  }

  async readAll(
    table: string,
    keyColumns: readonly string[],
  ): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
    return await readIndex(this.#url, `${this.#database}-${table}`, keyColumns);
  }

  close(): void {
    // nothing is kept open
  }

  async #ask(path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${this.#url}/${path}`, {
      method: 'POST',
      // a refresh with a body is refused
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(4 * PATIENCE_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 200)}`);
    return JSON.parse(text);
  }
}

export function markerOf(text: string): Marker {
  const { nextOffset, holders = '' } = JSON.parse(text) as { nextOffset: number; holders?: string };
  return { nextOffset, holders, copied: false };
}
