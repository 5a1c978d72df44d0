/**
 * Changes single rows at a steady rate and notes when each can be read from Redis: Redis itself tells of every HSET (keyspace
 * notifications), so no polling blurs it. Both ends are seen by this one process, so there is one clock.
 */
import { textConnection } from '@mysync/harness';
import { Redis } from 'ioredis';
import { childAnswer, childInput } from '../child.ts';
import { percentile, round } from '../result.ts';
import { DATABASE, insertRows, TABLE } from '../table.ts';

export interface LatencyInput {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly redisUrl: string;
  /** First id that is free. */
  readonly firstId: number;
  readonly rate: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface LatencyAnswer {
  readonly rows: number;
  readonly missing: number;
  readonly wallSeconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly sentP50Ms: number;
  readonly sentP99Ms: number;
}

interface Change {
  readonly sentAt: number;
  readonly counts: boolean;
  committedAt: number;
  seenAt: number;
}

const CONNECTIONS = 8;
const DRAIN_MS = 20_000;

const input = childInput<LatencyInput>();
const { host, port, user, password, rate, warmUpSeconds, seconds, firstId } = input;
const address = { host, port, user, password };
const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => textConnection(address)));
for (const connection of connections) await connection.query(`USE ${DATABASE}`);
const control = new Redis(input.redisUrl);
await control.config('SET', 'notify-keyspace-events', 'Eh');
const events = new Redis(input.redisUrl);
const open = new Map<string, Change>();
const changes: Change[] = [];
const prefix = `${TABLE}:`;
events.on('message', (_channel: string, key: string) => {
  if (!key.startsWith(prefix)) return;
  const change = open.get(key);
  if (change === undefined) return;
  open.delete(key);
  change.seenAt = performance.now();
});
await events.subscribe('__keyevent@0__:hset');

/** Every second change inserts a row, the others update one of those inserted a second before. */
async function change(number: number, counts: boolean): Promise<void> {
  const connection = connections[number % CONNECTIONS];
  if (connection === undefined) return;
  const inserts = number % 2 === 0 || number < rate * 2;
  const id = firstId + (inserts ? number : number - 1 - Math.floor(rate / 2) * 2);
  const key = `${prefix}${id}`;
  if (open.has(key)) return;
  const noted: Change = { sentAt: performance.now(), counts, committedAt: 0, seenAt: 0 };
  open.set(key, noted);
  changes.push(noted);
  if (inserts) await insertRows(connection, DATABASE, id, id);
  else await connection.query(`UPDATE ${DATABASE}.${TABLE} SET sent_us = ? WHERE id = ?`, [number, id]);
  noted.committedAt = performance.now();
}

const startedAt = performance.now();
const total = rate * (warmUpSeconds + seconds);
const running: Promise<void>[] = [];
for (let number = 0; number < total; ) {
  const due = Math.min(total, Math.floor(((performance.now() - startedAt) * rate) / 1000) + 1);
  for (; number < due; number += 1) running.push(change(number, number >= rate * warmUpSeconds));
  await new Promise((resolve) => setTimeout(resolve, 1));
}
await Promise.all(running);
const wallSeconds = (performance.now() - startedAt) / 1000;
const deadline = performance.now() + DRAIN_MS;
while (open.size > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));

const seen = changes.filter((each) => each.counts && each.seenAt > 0);
const fromCommit = Float64Array.from(seen, (each) => Math.max(0, each.seenAt - each.committedAt)).sort();
const fromSending = Float64Array.from(seen, (each) => each.seenAt - each.sentAt).sort();
const answer: LatencyAnswer = {
  rows: seen.length,
  missing: open.size,
  wallSeconds,
  p50Ms: round(percentile(fromCommit, 0.5), 1),
  p99Ms: round(percentile(fromCommit, 0.99), 1),
  sentP50Ms: round(percentile(fromSending, 0.5), 1),
  sentP99Ms: round(percentile(fromSending, 0.99), 1),
};
await childAnswer(answer);
events.disconnect();
control.disconnect();
for (const connection of connections) connection.destroy();
