/** What the sinks hold, asked through clients that know nothing of MySync: a figure counts only if every row has arrived. */
import type { TestServer } from '@mysync/harness';
import { Redis } from 'ioredis';
import { TABLE } from './table.ts';

const KEYS_AT_A_TIME = 5_000;

export async function checkRedis(server: TestServer, rows: number): Promise<void> {
  const redis = new Redis(server.get('REDIS_URL'));
  try {
    let there = 0;
    for (let first = 1; first <= rows; first += KEYS_AT_A_TIME) {
      const count = Math.min(KEYS_AT_A_TIME, rows - first + 1);
      there += await redis.exists(...Array.from({ length: count }, (_, at) => `${TABLE}:${first + at}`));
    }
    if (there !== rows) throw new Error(`Redis holds ${there} of ${rows} rows`);
  } finally {
    redis.disconnect();
  }
}

export async function checkDocuments(url: string, rows: number): Promise<void> {
  await fetch(`${url}/${TABLE}/_refresh`, { method: 'POST' });
  const { count } = (await (await fetch(`${url}/${TABLE}/_count`)).json()) as { count?: number };
  if (count !== rows) throw new Error(`Elasticsearch holds ${count} of ${rows} rows`);
}

/** CPU seconds that the server itself has used so far. */
export async function redisCpuSeconds(url: string): Promise<number> {
  const redis = new Redis(url);
  try {
    const info = await redis.info('cpu');
    const field = (name: string): number => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1] ?? 0);
    return field('used_cpu_user') + field('used_cpu_sys');
  } finally {
    redis.disconnect();
  }
}
