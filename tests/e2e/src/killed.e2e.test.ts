/**
 * J7: kill -9 and orderly stops of reader and writers at ten points of a 100,000-row load, a hundred with MYSYNC_SLOW=1: nothing lost, nothing stale, no key
 * ever backward.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline } from '@mysync/harness';
import { Redis } from 'ioredis';
import type { Connection } from 'mysql2/promise';
import { PacedLoad } from './paced-load.fixture.ts';

const SLOW = process.env['MYSYNC_SLOW'] === '1';
const ROWS = SLOW ? 1_000_000 : 100_000;
const KILLS = SLOW ? 100 : 10;
const COUNTERS = 50;

/** Inserts, updates and deletes of about `ROWS` rows, with counters that only rise. */
async function write(sql: Connection, load: PacedLoad): Promise<void> {
  for (let id = 0; !load.isOver; ) {
    await load.turn();
    await sql.query('BEGIN');
    const batch = Array.from({ length: 200 }, () => [id++, `row ${id}`]);
    await sql.query('INSERT INTO bulk VALUES ?', [batch]);
    await sql.query('UPDATE counter SET v = v + 1');
    await sql.query('COMMIT');
    await sql.query('UPDATE bulk SET v = CONCAT(v, ?) WHERE id >= ? AND id % 3 = 0', [' changed', id - 200]);
    await sql.query('DELETE FROM bulk WHERE id >= ? AND id % 5 = 0', [id - 200]);
    load.done += 200 + COUNTERS + 66 + 40;
  }
}

/** Reads all counters again and again until stopped; gives the times that one was seen lower than before. */
async function watchCounters(url: string, prefix: string, stopped: () => boolean): Promise<string[]> {
  const redis = new Redis(url);
  const highest = new Array<number>(COUNTERS).fill(0);
  const backward: string[] = [];
  while (!stopped()) {
    const pipeline = redis.pipeline();
    for (let id = 0; id < COUNTERS; id += 1) pipeline.hget(`${prefix}${id}`, 'v');
    const replies = (await pipeline.exec()) ?? [];
    for (const [id, [, text]] of replies.entries()) {
      const value = Number(text ?? highest[id]);
      if (value < (highest[id] ?? 0)) backward.push(`counter ${id}: ${highest[id]} then ${value}`);
      highest[id] = value;
    }
  }
  redis.disconnect();
  return backward;
}

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: reader and writer killed at ${KILLS} points of a load of ${ROWS} rows`, async () => {
    await using pipeline = await Pipeline.create({
      transport,
      sinks: ['redis'],
      config: { reader: { checkpointMs: 200, heartbeatMs: 500 } },
    });
    const { sql, database } = pipeline;
    await sql.query(
      'CREATE TABLE counter (id INT PRIMARY KEY, v INT); CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(80))',
    );
    await sql.query('INSERT INTO counter VALUES ?', [Array.from({ length: COUNTERS }, (_, id) => [id, 0])]);
    const verbs = ['reader', 'writer --sink redis', 'writer --sink redis'];
    const running: MysyncProcess[] = verbs.map((verb) => pipeline.start(verb));
    for (const each of running) await each.atWork();
    const load = new PacedLoad(ROWS, KILLS);
    let done = false;
    const watching = watchCounters(pipeline.redis?.get('REDIS_URL') ?? '', `${database}:counter:`, () => done);
    const loading = write(sql, load);
    try {
      for (let kill = 0; kill < KILLS; kill += 1) {
        await load.reached(kill + 0.5);
        const victim = kill % 2 === 0 ? 0 : 1 + (kill % 4 === 1 ? 0 : 1);
        // two ends for each of the three
        if (kill % 8 < 4) await running[victim]?.kill();
        else assert.deepEqual(await running[victim]?.stop(), { code: 0, signal: null }, running[victim]?.stderr);
        const next = pipeline.start(verbs[victim] ?? '');
        running[victim] = next;
        // the next victim is one that works
        await next.atWork();
        load.next();
      }
      await loading;
      await pipeline.equal(['bulk', 'counter'], 240_000);
    } finally {
      load.end();
      done = true;
      await Promise.allSettled([loading, watching]);
    }
    assert.deepEqual(await watching, []);
    for (const each of running) await pipeline.stopped(each);
  });
}
