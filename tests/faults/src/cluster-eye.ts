import { type RedisCluster, readRedisHashes } from '@mysync/harness';
import { Cluster } from 'ioredis';
import { type Marker, markerOf, PATIENCE_MS, type SinkEye, type Target } from './sink-eye.ts';

interface MarkerCopy {
  readonly slot: string;
  readonly marker: Marker;
  readonly counter: number;
  /** `SLOT:MASTER,…` of all copies. */
  readonly places: string;
}

/** Looks into a Redis Cluster, past the proxies. */
export class RedisClusterEye implements SinkEye {
  readonly name = 'redis';
  readonly #nodes: RedisCluster;
  readonly #database: string;
  readonly #client: Cluster;

  constructor(nodes: RedisCluster, database: string) {
    this.#nodes = nodes;
    this.#database = database;
    this.#client = new Cluster([...nodes.addresses], {
      natMap: nodes.natMap,
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

  /** Of the copies of a marker that the newest one names, the lowest counts. */
  async markers(topic: string, partitions: number): Promise<ReadonlyMap<number, Marker>> {
    const found = new Map<number, MarkerCopy[]>();
    for (const master of await this.#nodes.masters()) {
      for (const key of await master.keys(`mysync:m:{*}${topic}:*`)) {
        const partition = Number(key.slice(key.lastIndexOf(':') + 1));
        const [text, counter, places] = await master.hmget(key, 'm', 'c', 's');
        if (typeof text !== 'string' || partition >= partitions) continue;
        const copies = found.get(partition) ?? [];
        found.set(partition, copies);
        const slot = String(await master.call('CLUSTER', 'KEYSLOT', key));
        copies.push({ slot, marker: markerOf(text), counter: Number(counter), places: String(places) });
      }
    }
    const markers = new Map<number, Marker>();
    for (const [partition, copies] of found) {
      const newest = copies.reduce((a, b) => (b.counter > a.counter ? b : a));
      const named = newest.places.split(',').map((place) => place.split(':')[0]);
      const offsets = copies.filter(({ slot }) => named.includes(slot)).map(({ marker }) => marker.nextOffset);
      markers.set(partition, { ...newest.marker, nextOffset: Math.min(...offsets), copied: true });
    }
    return markers;
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
