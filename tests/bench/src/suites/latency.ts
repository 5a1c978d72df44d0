import { join } from 'node:path';
import { until } from '@mysync/harness';
import type { Bench, TransportKind } from '../bench.ts';
import { runChild } from '../child.ts';
import type { LatencyAnswer, LatencyInput } from '../children/latency.ts';
import { MeasuredMysync } from '../mysync-run.ts';
import { round } from '../result.ts';

const PARTITIONS = 4;
const WARM_UP_SECONDS = 3;
/** Ids of the loaded table stay below; each run takes new ones. */
const FIRST_ID = 1_000_000_000;

export async function latencySuite(bench: Bench): Promise<void> {
  let firstId = FIRST_ID;
  for (const kind of ['log', 'kafka'] as const) {
    const name = `latency-${kind}`;
    if (bench.wants(name)) await latency(bench, name, kind, firstId);
    firstId += FIRST_ID;
  }
}

async function latency(bench: Bench, name: string, kind: TransportKind, firstId: number): Promise<void> {
  const { rate, seconds, profile } = bench.options;
  await bench.loaded();
  const redis = await bench.freshServer('redis');
  const redisUrl = redis.get('REDIS_URL');
  const configFile = await bench.configure(name, {
    transport: await bench.transport(kind, name),
    partitions: PARTITIONS,
    topic: name,
    checkpoints: join(await bench.folder(name), 'checkpoints'),
    start: 'latest',
    sink: { kind: 'redis', as: 'hash', url: redisUrl },
  });
  await using mysync = new MeasuredMysync({ name, verb: ['run'], configFile, profile });
  await mysync.process.logged(/"msg":"reading the log"/);
  const { metricsUrl } = await mysync.started();
  const assigned = `mysync_writer_assigned_partitions{sink="${name}",source="bench"} ${PARTITIONS}`;
  const probe = async (): Promise<boolean> => (await (await fetch(metricsUrl)).text()).includes(assigned);
  await until('the writer has its partitions', probe);
  const input: LatencyInput = {
    ...(await bench.address()),
    redisUrl,
    firstId,
    rate,
    warmUpSeconds: WARM_UP_SECONDS,
    seconds,
  };
  bench.say(`${name}: ${rate} changes per second for ${seconds} s`);
  const before = mysync.usage();
  const { answer } = await runChild<LatencyAnswer>('latency', input);
  const after = mysync.usage();
  if (answer.missing > 0) throw new Error(`${answer.missing} changes did not arrive`);
  await mysync.stop();
  await redis.wipe();
  const { missing, wallSeconds, ...figures } = answer;
  bench.add({
    name,
    rows: figures.rows,
    cpuSeconds: round(after.cpuSeconds - before.cpuSeconds),
    wallSeconds: round(wallSeconds),
    rssMb: after.rssMb,
    p50Ms: figures.p50Ms,
    p99Ms: figures.p99Ms,
    sentP50Ms: figures.sentP50Ms,
    sentP99Ms: figures.sentP99Ms,
  });
}
