/** G1 and F3: no broker for a minute under load, while the source would cut a slow reader after 5 s. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pipeline, startServer } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';

const AWAY_MS = 60_000;
/** Of one process with reader and writer (docs/performance.md). */
const MOST_RSS_MB = 400;

async function dumpThreads(sql: Connection): Promise<string[]> {
  const [rows] = await sql.query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'");
  return (rows as { id: string }[]).map(({ id }) => id);
}

test('the broker is down for 60 s: nothing is lost, memory stays bounded, the source does not cut us off', async (context) => {
  await using kafka = await startServer('kafka');
  await using mariadb = await startServer('mariadb');
  await mariadb.client('sql', ['-e', 'SET GLOBAL net_write_timeout = 5']);
  await using pipeline = await Pipeline.create({
    transport: 'kafka',
    sinks: ['redis'],
    servers: { kafka, mariadb },
    config: { reader: { windowBytes: 2 ** 20 } },
    sourceConfig: { queueBytes: 2 ** 20 },
  });
  const { sql } = pipeline;
  await sql.query(
    'CREATE TABLE counter (id INT PRIMARY KEY, n INT); CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(2000))',
  );
  await sql.query('INSERT INTO counter VALUES (1, 0), (2, 0), (3, 0)');
  const mysync = pipeline.start('run');
  await pipeline.equal(['counter']);
  await mysync.logged(/"msg":"reading the log"/);
  const threads = await dumpThreads(sql);
  assert.equal(threads.length, 1);

  await kafka.kill();
  const began = performance.now();
  const filler = 'x'.repeat(1500);
  let id = 0;
  for (; performance.now() - began < AWAY_MS; id += 200) {
    // far more than windows, queue and socket hold; the rest of the minute it only trickles
    const rows = id < 40_000 ? 200 : 1;
    await sql.query('INSERT INTO bulk VALUES ?', [Array.from({ length: rows }, (_, n) => [id + n, filler])]);
    await sql.query('UPDATE counter SET n = n + 1');
    if (rows === 1) await sleep(100);
  }
  assert.ok(mysync.running, mysync.stderr.slice(-3000));
  assert.deepEqual(await dumpThreads(sql), threads, 'the source cut the connection, or it was replaced');
  await kafka.up();
  await pipeline.equal(['bulk', 'counter'], 240_000);
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${mysync.pid}/status`, 'utf8'))?.[1]) / 1024;
  context.diagnostic(`peak RSS ${peak.toFixed(0)} MB, ${id} ids`);
  assert.ok(peak < MOST_RSS_MB, `peak RSS ${peak.toFixed(0)} MB`);
  await pipeline.stopped(mysync);
});
