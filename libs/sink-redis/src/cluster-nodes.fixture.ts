/** A Redis Cluster with sinks on it, and its rows as another client reads them. */
import type { RedisCluster } from '@mysync/harness';
import type { RedisSinkOptions } from './options.ts';
import { RedisSink } from './sink.ts';

export function sinkOn(
  { addresses }: Pick<RedisCluster, 'addresses'>,
  options: Partial<RedisSinkOptions> = {},
): RedisSink & AsyncDisposable {
  const tables = [{ match: '*.*', as: 'hash' as const }];
  const sink = new RedisSink({ hosts: addresses, cluster: true, tables, connectTimeoutMs: 2_000, ...options });
  return Object.assign(sink, { [Symbol.asyncDispose]: () => sink.close() });
}

/** The names of all items, by id. */
export async function namesIn(cluster: RedisCluster): Promise<Map<number, string>> {
  const names = new Map<number, string>();
  for (const client of await cluster.masters()) {
    for (const key of await client.keys('items:*')) {
      const { id, name } = await client.hgetall(key);
      names.set(Number(id), name ?? '');
    }
  }
  return names;
}
