/** All in one process, `mysync run`: from the binlog to the copy. */
import { join } from 'node:path';
import type { Bench, TransportKind } from '../bench.ts';
import { checkDocuments, checkRedis } from '../copies.ts';
import type { SinkChoice } from '../mysync-config.ts';
import { measureMysync } from '../mysync-run.ts';

const PARTITIONS = 4;

export async function endToEndSuite(bench: Bench): Promise<void> {
  for (const kind of ['log', 'kafka'] as const) {
    const name = `run-${kind}-redis`;
    if (!bench.wants(name)) continue;
    const redis = await bench.freshServer('redis');
    await run(bench, name, kind, 'earlier', { kind: 'redis', as: 'hash', url: redis.get('REDIS_URL') });
    await checkRedis(redis, bench.options.rows);
    await redis.wipe();
  }
  const snapshot = 'run-log-redis-snapshot';
  if (bench.wants(snapshot)) {
    const redis = await bench.freshServer('redis');
    await run(bench, snapshot, 'log', 'snapshot', { kind: 'redis', as: 'hash', url: redis.get('REDIS_URL') });
    await checkRedis(redis, bench.options.rows);
    await redis.wipe();
  }
  const name = 'run-kafka-elasticsearch';
  if (!bench.wants(name)) return;
  const elasticsearch = await bench.freshServer('elasticsearch', { ES_HEAP: '1g' });
  const url = elasticsearch.get('ELASTICSEARCH_URL');
  await run(bench, name, 'kafka', 'earlier', { kind: 'elasticsearch', url });
  await checkDocuments(url, bench.options.rows);
  await elasticsearch.wipe();
}

/** `earlier`: from the position before the rows; `snapshot`: the rows themselves are read. */
async function run(
  bench: Bench,
  name: string,
  kind: TransportKind,
  from: 'earlier' | 'snapshot',
  sink: SinkChoice,
): Promise<void> {
  const position = await bench.loaded();
  const configFile = await bench.configure(name, {
    transport: await bench.transport(kind, name),
    partitions: PARTITIONS,
    topic: name,
    checkpoints: join(await bench.folder(name), 'checkpoints'),
    start: from === 'snapshot' ? 'snapshot' : position,
    sink,
  });
  const { rows, profile } = bench.options;
  bench.say(`${name}: ${rows} rows`);
  const counter = 'mysync_writer_applied_messages_total';
  bench.add(await measureMysync({ name, verb: ['run'], configFile, rows, counter, profile }));
}
