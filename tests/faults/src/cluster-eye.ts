import { type RedisCluster, readRedisHashes } from '@mysync/harness';
import { Cluster } from 'ioredis';
import { nextOffsetOf, PATIENCE_MS, type SinkEye, type Target } from './sink-eye.ts';

/** Looks into a Redis Cluster. */
export class RedisClusterEye implements SinkEye {
  readonly name = 'redis';
  readonly #nodes: RedisCluster;
  readonly #database: string;
  readonly #client: Cluster;
  /** A marker that a failover has put back says nothing against commits that were right before. */
  readonly #highest = new Map<number, number>();

  constructor(nodes: RedisCluster, database: string) {
    this.#nodes = nodes;
    this.#database = database;
    this.#client = new Cluster([...nodes.addresses], {
      clusterRetryStrategy: () => 100,
      slotsRefreshTimeout: PATIENCE_MS,
      slotsRefreshInterval: PATIENCE_MS,
      enableAutoPipelining: true,
      redisOptions: { commandTimeout: PATIENCE_MS },
    });
    this.#client.on('error', () => undefined);
  }

  async look(targets: readonly Target[]): Promise<readonly (number | null)[]> {
    const asked = targets.map(({ table, key }) => this.#client.hget(`${this.#database}:${table}:${key}`, 'n'));
    return (await Promise.all(asked)).map((text) => (text === null ? null : Number(text)));
  }

  /** The highest that was seen of each partition: of the copies of a marker, the lowest counts. */
  async markers(topic: string, partitions: number): Promise<ReadonlyMap<number, number>> {
    const lowest = new Map<number, number>();
    for (const master of await this.#nodes.masters()) {
      for (const key of await master.keys(`mysync:m:{*}${topic}:*`)) {
        const partition = Number(key.slice(key.lastIndexOf(':') + 1));
        const text = await master.hget(key, 'm');
        if (text === null || partition >= partitions) continue;
        lowest.set(partition, Math.min(nextOffsetOf(text), lowest.get(partition) ?? Number.MAX_SAFE_INTEGER));
      }
    }
    for (const [partition, offset] of lowest) {
      this.#highest.set(partition, Math.max(offset, this.#highest.get(partition) ?? 0));
    }
    return this.#highest;
  }

  async readAll(table: string): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
    const rows = new Map<string, Readonly<Record<string, unknown>>>();
    for (const master of await this.#nodes.masters()) {
      const { host, port } = master.options;
      const found = await readRedisHashes(`redis://${host}:${port}`, `${this.#database}:${table}:`);
      for (const [key, row] of found) rows.set(rows.has(key) ? `${key} again at ${port}` : key, row);
    }
    return rows;
  }

  close(): void {
    this.#client.disconnect();
  }
}
