/**
 * One row of many megabytes through everything. The reader's memory stays below 150 MB and five times the row's event. In CI the row has 16 MiB;
 * LARGE_ROW_MB=64 is the size that is promised. Below it garbage counts: V8 lets 64 MB of buffers pile up before it collects any, here the parts of a
 * packet and what was made of them.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { assertTold, type MysyncProcess, Pipeline, startServer, type TestServer, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import { limitTopic } from './topic-limit.fixture.ts';

const MEBI = 2 ** 20;
const ROW_BYTES = Number(process.env['LARGE_ROW_MB'] ?? '16') * MEBI;
const FIXED_MB = ROW_BYTES < 64 * MEBI ? 150 + 96 : 150;

for (const source of ['mariadb', 'mysql'] as const) {
  test(`${source}: a row of ${ROW_BYTES / MEBI} MiB`, { timeout: 400_000 }, async (t) => {
    await using server = await startServer(source, { args: ['--max-allowed-packet=1G'] });
    await using pipeline = await withTable(source, server);
    const { sql } = pipeline;
    const reader = pipeline.start('reader');
    const writer = pipeline.start('writer --sink redis');
    await pipeline.equal(['t']);
    const peaks = async (what: string, small: number, limit: number): Promise<void> => {
      await copied(pipeline, small);
      t.diagnostic(`${what}: reader ${peakMegabytes(reader)} MB, writer ${peakMegabytes(writer)} MB`);
      assert.ok(peakMegabytes(reader) < limit, `${peakMegabytes(reader)} MB after ${what}`);
    };
    const event = ROW_BYTES / 1e6;
    await sql.query(`INSERT INTO t VALUES (2, 1, REPEAT('xyz ', ${ROW_BYTES / 4}))`);
    await peaks('an insert', 1, FIXED_MB + 5 * event);
    // its event holds the row twice
    await sql.query('UPDATE t SET small = 2 WHERE id = 2');
    await peaks('an update', 2, FIXED_MB + 10 * event);
    await sql.query("SET SESSION binlog_row_image = 'MINIMAL'; UPDATE t SET small = 3 WHERE id = 2");
    await peaks('a row read again', 3, FIXED_MB + 10 * event);
    await pipeline.stopped(reader);
    await pipeline.stopped(writer);
  });
}

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: a row that the transport does not take is named, nothing after it is published, and raising the limit goes on with it (G7)`, async () => {
    await using server = await startServer('mariadb');
    await using pipeline = await withTable('mariadb', server, transport);
    const { sql, database } = pipeline;
    const own = pipeline.transportConfig[transport] as object;
    const limited = async (maxRecordBytes: number): Promise<void> =>
      await pipeline.configure({
        ...pipeline.options,
        config: { transport: { ...pipeline.transportConfig, [transport]: { ...own, maxRecordBytes } } },
      });
    await limited(MEBI);
    const first = pipeline.start('run');
    await pipeline.equal(['t']);
    await sql.query(`INSERT INTO t VALUES (2, 1, REPEAT('x', ${2 * MEBI})); INSERT INTO t VALUES (3, 3, 'c')`);
    assert.deepEqual(await first.ended(), { code: 1, signal: null });
    assertTold(first.stderr, {
      code: 'TRANSPORT_RECORD_TOO_LARGE',
      where: [new RegExp(`${database}\\.t\\b`), /\{"id":2\}/, /bytes 2\d{6}\b/, /position binlog\.\d+:\d+/],
      remedy: new RegExp(`transport\\.${transport}\\.maxRecordBytes.* ${3 * MEBI} or more`),
    });
    const found = await pipeline.differences('redis', ['t']);
    assert.deepEqual(
      found.map(({ key }) => key),
      ['2', '3'],
    );
    await limited(3 * MEBI);
    if (transport === 'kafka') await limitTopic(pipeline, `${3 * MEBI}`);
    const again = pipeline.start('run');
    await pipeline.equal(['t']);
    await pipeline.stopped(again);
  });
}

async function withTable(
  source: 'mariadb' | 'mysql',
  server: TestServer,
  transport: 'log' | 'kafka' = 'log',
): Promise<Pipeline> {
  const pipeline = await Pipeline.create({
    source,
    transport,
    sinks: ['redis'],
    partitions: 1,
    servers: { [source]: server },
  });
  await pipeline.sql.query(
    "CREATE TABLE t (id INT PRIMARY KEY, small INT, v LONGTEXT); INSERT INTO t VALUES (1, 1, 'a')",
  );
  return pipeline;
}

/** The most memory that the process ever had, files mapped into it included. */
function peakMegabytes(process: MysyncProcess): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${process.pid}/status`, 'utf8')) ?? [];
  return Math.round((Number(kilobytes) * 1024) / 1e6);
}

/** Waits for the large row's copy and compares it, by what the server itself computes. */
async function copied(pipeline: Pipeline, small: number): Promise<void> {
  const redis = new Redis(pipeline.redis?.get('REDIS_URL') ?? '');
  try {
    const key = `${pipeline.database}:t:2`;
    await until(`small is ${small}`, async () => (await redis.hget(key, 'small')) === String(small), {
      timeoutMs: 120_000,
    });
    const [rows] = await pipeline.sql.query('SELECT LENGTH(v) AS bytes, SHA2(v, 256) AS hash FROM t WHERE id = 2');
    const value = (await redis.hgetBuffer(key, 'v')) ?? Buffer.alloc(0);
    const hash = createHash('sha256').update(value).digest('hex');
    assert.deepEqual(
      [{ bytes: String(value.length), hash }],
      (rows as object[]).map((row) => ({ ...row })),
    );
  } finally {
    redis.disconnect();
  }
}
