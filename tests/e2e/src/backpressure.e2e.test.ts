/** A source faster than the transport, and than the sink: memory stays bounded, nothing is dropped. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Pipeline, startServer } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';

const ROWS = 120_000;
/** Of one process with reader and writer; docs/performance.md says how it comes about. */
const MOST_RSS_MB = 512;

async function load(sql: Connection): Promise<void> {
  const filler = 'x'.repeat(1000);
  for (let from = 0; from < ROWS; from += 1000) {
    const rows = Array.from({ length: 1000 }, (_, index) => [from + index, filler]);
    await sql.query('INSERT INTO bulk VALUES ?', [rows]);
  }
}

function peakRssMb(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

for (const slow of ['transport', 'sink'] as const) {
  test(`a ${slow} that stands still while 120 MB of changes are committed`, async (context) => {
    await using kafka = await startServer('kafka');
    await using pipeline = await Pipeline.create({
      transport: 'kafka',
      sinks: ['redis'],
      servers: { kafka },
      config: { reader: { windowBytes: 16 * 2 ** 20 } },
    });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(2000)); INSERT INTO bulk VALUES (-1, NULL)');
    const mysync = pipeline.start('run');
    await pipeline.equal(['bulk']);
    const server = slow === 'transport' ? kafka : pipeline.redis;
    await server?.pause();
    await load(sql);
    await server?.resume();
    await pipeline.equal(['bulk'], 240_000);
    const peak = peakRssMb(mysync.pid);
    context.diagnostic(`peak RSS ${peak.toFixed(0)} MB`);
    assert.ok(peak < MOST_RSS_MB, `peak RSS ${peak.toFixed(0)} MB`);
    await pipeline.stopped(mysync);
  });
}
