import { type MysyncProcess, textConnection, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import type { Connection } from 'mysql2/promise';
import { type Comparison, compareWhenDrained } from './copies.ts';
import { documentNote, LatencyProbe, redisNote } from './latency.ts';
import type { DemoOptions } from './options.ts';
import { Screen, sideBySide } from './screen.ts';
import { DATABASE, Setup } from './setup.ts';
import { loadShop, ShopTraffic, WATCHED } from './shop.ts';

export interface DemoResult {
  readonly transport: string;
  /** Rows loaded and row changes made; a sink holds the rows that are left at the end. */
  readonly rows: number;
  readonly sinks: Readonly<Record<string, { readonly rows: number; readonly equal: boolean }>>;
  readonly lagMs: { readonly p50: number; readonly p99: number };
}

const PROBE_EVERY_MS = 100;

/** Loads a shop, starts MySync, changes rows until the time is over or the signal aborts, and compares every row. */
export async function runDemo(options: DemoOptions, signal: AbortSignal): Promise<DemoResult> {
  const screen = new Screen();
  const say = (text: string): void => {
    if (!options.json) screen.say(text);
  };
  await using setup = new Setup();
  await setup.start(options, say);
  const sql = await textConnection(setup.sql);
  const probing = await textConnection(setup.sql);
  const redis = setup.redisUrl === '' ? null : new Redis(setup.redisUrl, { lazyConnect: true });
  try {
    say('loading a shop');
    const loaded = await loadShop(sql, DATABASE);
    await probing.query(`USE ${DATABASE}`);
    say(`${loaded} rows are there before MySync starts`);
    const mysync = await setup.mysync(options);
    const read = redis === null ? documentNote(setup.elasticsearchUrl, WATCHED) : redisNote(redis, WATCHED);
    await takenOver(mysync, probing, read, say);
    const { traffic, probe } = await change({ options, signal, sql, probing, redis, screen, read, mysync });
    say('changes stopped: comparing every row (Ctrl-C again to leave without)');
    const sinks: Record<string, Comparison> = {};
    for (const sink of options.sinks) {
      const comparison = await compareWhenDrained(setup, sink, sql);
      sinks[sink] = comparison;
      say(
        comparison.equal
          ? `${sink}: all ${comparison.rows} rows are equal`
          : `${sink}: DIFFERENT ${JSON.stringify(comparison.differences)}`,
      );
    }
    const exit = await mysync.stop();
    if (exit.code !== 0)
      throw new Error(`mysync ended with ${exit.code ?? exit.signal}: ${mysync.stderr.slice(-2000)}`);
    return {
      transport: options.transport,
      rows: loaded + traffic.rows,
      sinks: Object.fromEntries(Object.entries(sinks).map(([name, { rows, equal }]) => [name, { rows, equal }])),
      lagMs: { p50: probe.percentile(0.5), p99: probe.percentile(0.99) },
    };
  } finally {
    redis?.disconnect();
    await Promise.all([sql.end(), probing.end()]);
  }
}

/**
 * Waits until the existing rows are taken over and changes flow. The first token may come with the existing rows; the second,
 * made after that, comes with the changes, which follow behind all of them.
 */
async function takenOver(
  mysync: MysyncProcess,
  sql: Connection,
  read: () => Promise<string | null>,
  say: (text: string) => void,
): Promise<void> {
  const start = performance.now();
  for (const token of ['first', 'second']) {
    await sql.query('UPDATE customers SET note = ? WHERE id = ?', [token, WATCHED]);
    const arrived = async (): Promise<boolean> => {
      if (!mysync.running) throw new Error(mysync.stderr.slice(-4000));
      return (await read()) === token;
    };
    await until('the existing rows are taken over', arrived, { timeoutMs: 120_000 });
  }
  say(`existing rows taken over in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

async function change(parts: {
  options: DemoOptions;
  signal: AbortSignal;
  sql: Connection;
  probing: Connection;
  redis: Redis | null;
  screen: Screen;
  read: () => Promise<string | null>;
  mysync: MysyncProcess;
}): Promise<{ traffic: ShopTraffic; probe: LatencyProbe }> {
  const { options, signal, sql, probing, redis, screen, read, mysync } = parts;
  const traffic = new ShopTraffic(sql);
  const probe = new LatencyProbe();
  const start = performance.now();
  const endAt = options.seconds === null ? Number.POSITIVE_INFINITY : start + options.seconds * 1000;
  const going = (): boolean => !signal.aborted && performance.now() < endAt && mysync.running;
  const changing = (async () => {
    for (let steps = 0; going(); steps += 1) {
      const ahead = start + (steps * 1000) / options.rate - performance.now();
      if (ahead > 1) await new Promise((resolve) => setTimeout(resolve, ahead));
      await traffic.step();
    }
  })();
  const measuring = (async () => {
    while (going()) {
      await probe.sample(probing, WATCHED, read);
      await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
    }
  })();
  const showing = (async () => {
    let lastRows = 0;
    let lastAt = start;
    while (going() && !options.json) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const now = performance.now();
      const rate = Math.round(((traffic.rows - lastRows) * 1000) / (now - lastAt));
      lastRows = traffic.rows;
      lastAt = now;
      const line = `${traffic.rows} rows changed, ${rate} rows/s, commit to copy since the start p50 ${probe.percentile(0.5)} ms, p99 ${probe.percentile(0.99)} ms`;
      const hint = options.seconds === null ? ['Ctrl-C stops, compares every row and cleans'] : [];
      screen.show([line, ...(await watched(probing, redis)), ...hint]);
    }
  })();
  await Promise.all([changing, measuring, showing]);
  if (!mysync.running) throw new Error(`mysync ended by itself: ${mysync.stderr.slice(-4000)}`);
  return { traffic, probe };
}

async function watched(sql: Connection, redis: Redis | null): Promise<string[]> {
  if (redis === null) return [];
  const [rows] = await sql.query('SELECT * FROM customers WHERE id = ?', [WATCHED]);
  const copy = await redis.hgetall(`customers:${WATCHED}`);
  return sideBySide(`customers:${WATCHED}`, (rows as Record<string, string | null>[])[0], copy);
}
