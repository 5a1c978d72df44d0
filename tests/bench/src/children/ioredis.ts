/** What the same client does when it only sends prepared commands: pipelines of 1000, two of them on their way at a time. */
import { Redis } from 'ioredis';
import { childAnswer, childInput } from '../child.ts';
import { usageOf } from '../meter.ts';
import { TABLE, textRow } from '../table.ts';

export interface IoredisInput {
  readonly url: string;
  readonly command: 'hset' | 'set';
  readonly rows: number;
}

const PIPELINE = 1_000;
const { url, command, rows } = childInput<IoredisInput>();

const redis = new Redis(url);
await redis.ping();
// Prepared: the rows are the same again and again, the keys are not.
const distinct = Math.min(rows, 20_000);
const values = Array.from({ length: distinct }, (_, at) => {
  const fields = textRow(at + 1);
  return command === 'hset' ? fields.flat() : [JSON.stringify(Object.fromEntries(fields))];
});
const keys = Array.from({ length: rows }, (_, at) => `${TABLE}:${at + 1}`);

let next = 0;
async function send(): Promise<void> {
  while (next < rows) {
    const pipeline = redis.pipeline();
    for (const end = Math.min(rows, next + PIPELINE); next < end; next += 1) {
      const key = keys[next] ?? '';
      const value = values[next % distinct] ?? [];
      if (command === 'hset') pipeline.hset(key, ...value);
      else pipeline.set(key, value[0] ?? '');
    }
    const replies = await pipeline.exec();
    const failed = replies?.find(([error]) => error !== null);
    if (failed !== undefined) throw failed[0];
  }
}

const cpu = process.cpuUsage();
const startedAt = performance.now();
await Promise.all([send(), send()]);
const wallSeconds = (performance.now() - startedAt) / 1000;
const { user, system } = process.cpuUsage(cpu);
await childAnswer({ cpuSeconds: (user + system) / 1e6, wallSeconds, rssMb: usageOf(process.pid).rssMb });
redis.disconnect();
