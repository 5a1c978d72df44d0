/** The writer alone, from a topic that is already full; and the bare client in the same run. */
import type { TestServer } from '@mysync/harness';
import type { Bench, TransportKind } from '../bench.ts';
import { runChild } from '../child.ts';
import type { IoredisInput } from '../children/ioredis.ts';
import { checkDocuments, checkRedis, redisCpuSeconds } from '../copies.ts';
import type { SinkChoice } from '../mysync-config.ts';
import { measureMysync } from '../mysync-run.ts';
import { type Result, round } from '../result.ts';

const PARTITIONS = 4;

const RUNS = [
  { name: 'apply-log-redis-hash', kind: 'log', as: 'hash', bare: 'ioredis-hset' },
  { name: 'apply-log-redis-json', kind: 'log', as: 'json', bare: 'ioredis-set' },
  { name: 'apply-kafka-redis-hash', kind: 'kafka', as: 'hash', bare: 'ioredis-hset' },
  { name: 'apply-kafka-redis-json', kind: 'kafka', as: 'json', bare: 'ioredis-set' },
] as const;

export async function applySuite(bench: Bench): Promise<void> {
  const baselines = new Map<string, Result>();
  for (const [name, command] of [
    ['ioredis-hset', 'hset'],
    ['ioredis-set', 'set'],
  ] as const) {
    // A measurement that is asked for brings what it is compared with.
    const wanted = RUNS.some((run) => run.bare === name && bench.wants(run.name));
    if (wanted || bench.wants(name)) baselines.set(name, await baseline(bench, name, command));
  }
  for (const { name, kind, as, bare } of RUNS) {
    if (!bench.wants(name)) continue;
    const result = await withRedis(bench, async (redis, url) => {
      const before = await redisCpuSeconds(url);
      const measured = await apply(bench, name, kind, { kind: 'redis', as, url });
      const redisCpu = round((await redisCpuSeconds(url)) - before);
      await checkRedis(redis, bench.options.rows);
      return { ...measured, redisCpuSeconds: redisCpu };
    });
    bench.add(result);
    const compared = baselines.get(bare);
    if (compared !== undefined) bench.compare(result, compared);
  }
  const name = 'apply-kafka-elasticsearch';
  if (!bench.wants(name)) return;
  const elasticsearch = await bench.freshServer('elasticsearch', { ES_HEAP: '1g' });
  const url = elasticsearch.get('ELASTICSEARCH_URL');
  const result = await apply(bench, name, 'kafka', { kind: 'elasticsearch', url });
  await checkDocuments(url, bench.options.rows);
  bench.add(result);
  await elasticsearch.wipe();
}

async function apply(bench: Bench, name: string, kind: TransportKind, sink: SinkChoice): Promise<Result> {
  const { measured, ...topic } = await bench.filled(kind, PARTITIONS);
  const configFile = await bench.configure(name, { ...topic, start: 'latest', sink });
  bench.say(`${name}: applying ${measured.rows} rows`);
  const { rows, profile } = bench.options;
  const verb = ['writer', '--sink', name];
  return await measureMysync({
    name,
    verb,
    configFile,
    rows,
    counter: 'mysync_writer_applied_messages_total',
    profile,
  });
}

async function baseline(bench: Bench, name: string, command: 'hset' | 'set'): Promise<Result> {
  return await withRedis(bench, async (_, url) => {
    const { rows, profile } = bench.options;
    const input: IoredisInput = { url, command, rows };
    bench.say(`${name}: sending ${rows} commands`);
    const before = await redisCpuSeconds(url);
    const { answer } = await runChild<Omit<Result, 'name' | 'rows'>>('ioredis', input, { profile, profileName: name });
    const { cpuSeconds, wallSeconds, rssMb } = answer;
    return bench.add({
      name,
      rows,
      cpuSeconds: round(cpuSeconds),
      wallSeconds: round(wallSeconds),
      rssMb,
      redisCpuSeconds: round((await redisCpuSeconds(url)) - before),
    });
  });
}

async function withRedis<T>(bench: Bench, work: (redis: TestServer, url: string) => Promise<T>): Promise<T> {
  const redis = await bench.freshServer('redis');
  const result = await work(redis, redis.get('REDIS_URL'));
  await redis.wipe();
  return result;
}
