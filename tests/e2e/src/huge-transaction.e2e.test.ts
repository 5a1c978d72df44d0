/**
 * D1: one transaction that is far larger than the reader's memory, from the log of the server to the sink, and a reader that is killed in the middle
 * of it: each row is published exactly once. Two million rows with MYSYNC_SLOW=1; else so many that held in memory they would pass the limit. Fewer over
 * Kafka.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline, until } from '@mysync/harness';
import { Redis } from 'ioredis';

const SLOW = process.env['MYSYNC_SLOW'] === '1';
/** About 190 bytes in the log and 400 as a message: 160 MB, or 800 MB of messages. */
const ROWS = SLOW ? 2_000_000 : 400_000;
const SOURCE = process.env['MYSYNC_HUGE_SOURCE'] === 'mysql' ? 'mysql' : 'mariadb';
const MOST_MB = SLOW ? 200 : 180;
const PARTITIONS = 4;
const IN_ONE_STATEMENT = 5_000;
const COMPARED_AT_ONCE = 20_000;

/** The most it ever had; what it has now without pages of the embedded log's map, which are the kernel's to take back: a reader that was killed reads its log's tail. */
function memory(process: MysyncProcess): { peak: number; own: number } {
  const megabytes = (text: string, field: RegExp): number => Number(field.exec(text)?.[1] ?? 0) / 1024;
  const status = readFileSync(`/proc/${process.pid}/status`, 'utf8');
  const log = megabytes(readFileSync(`/proc/${process.pid}/smaps`, 'utf8'), /data\.mdb\n(?:.*\n)*?Rss:\s+(\d+)/);
  const own = megabytes(status, /VmRSS:\s+(\d+)/) - log;
  return { peak: Math.round(megabytes(status, /VmHWM:\s+(\d+)/)), own: Math.round(own) };
}

function checkpoint(path: string): { file: string; offset: number } | undefined {
  const [, body] = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  return body === undefined ? undefined : JSON.parse(body).position;
}

/** Fails unless the sink holds the rows as the server shows them, and no others. In parts: all of them would not fit into memory. */
async function assertEqual(pipeline: Pipeline, rows: number): Promise<void> {
  const redis = new Redis(pipeline.redis?.get('REDIS_URL') ?? '');
  try {
    for (let from = 0; from < rows; from += COMPARED_AT_ONCE) {
      const to = from + COMPARED_AT_ONCE;
      const [found] = await pipeline.sql.query('SELECT * FROM t WHERE id >= ? AND id < ? ORDER BY id', [from, to]);
      const expected = found as { id: string; v: string }[];
      const asked = redis.pipeline();
      for (const { id } of expected) asked.hgetall(`${pipeline.database}:t:${id}`);
      const copies = ((await asked.exec()) ?? []).map(([error, copy]) => error ?? copy);
      const differs = expected.findIndex(({ id, v }, at) => {
        const copy = copies[at] as Record<string, string>;
        return copy['id'] !== id || copy['v'] !== v || Object.keys(copy).length !== 2;
      });
      assert.deepEqual(copies[differs], expected[differs]);
    }
  } finally {
    redis.disconnect();
  }
}

const trials = [
  ...(SLOW ? [{ transport: 'log', rows: ROWS, kills: false } as const] : []),
  { transport: 'log', rows: ROWS, kills: true } as const,
  { transport: 'kafka', rows: ROWS / 4, kills: true } as const,
];
for (const { transport, rows, kills } of trials) {
  const life = kills ? 'over a kill in the middle' : 'in one life';
  test(`D1: ${transport}: a transaction of ${rows} rows is published once, in bounded memory, ${life}`, async (t) => {
    // heartbeats would be counted as messages that were applied
    const config = { reader: { heartbeatMs: 3_600_000 } };
    const options = { transport, sinks: ['redis'], source: SOURCE, partitions: PARTITIONS, config } as const;
    await using pipeline = await Pipeline.create(options);
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))');
    const path = pipeline.checkpointFile;
    let reader = pipeline.start('reader');
    await reader.logged(/"msg":"reading the log"/);
    await sql.query('BEGIN');
    const filler = 'v'.repeat(170);
    for (let from = 0; from < rows; from += IN_ONE_STATEMENT) {
      const values = Array.from({ length: IN_ONE_STATEMENT }, (_, i) => [from + i, filler]);
      await sql.query('INSERT INTO t VALUES ?', [values]);
    }
    await sql.query('COMMIT');
    const [[end]] = (await sql.query(
      SOURCE === 'mysql' ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS',
    )) as unknown as [[Record<string, string>]];
    let own = 0;
    const isCovered = (): boolean => {
      const at = checkpoint(path);
      return at !== undefined && at.file === end?.['File'] && at.offset >= Number(end['Position']);
    };
    const isThere = (): boolean => {
      own = Math.max(own, memory(reader).own);
      return isCovered();
    };
    if (kills) {
      const published = async (): Promise<boolean> =>
        (await reader.total('mysync_reader_published_messages_total')) > rows / 10;
      await until('a part of it is published', published, { timeoutMs: 300_000, everyMs: 5 });
      t.diagnostic(`killed with ${memory(reader).peak} MB at most`);
      await reader.kill();
      assert.ok(!isCovered(), 'killed in the middle of it');
      reader = pipeline.start('reader');
    }
    await until('all of it is acknowledged', isThere, { timeoutMs: 800_000, everyMs: 200 });
    const { peak } = memory(reader);
    t.diagnostic(`${rows} rows: at most ${peak} MB, ${own} MB without the log's pages`);
    assert.ok(own < MOST_MB, `${own} MB without the log's pages`);
    if (!kills) assert.ok(peak < MOST_MB, `${peak} MB`);
    if (kills) {
      const skipped = await reader.total('mysync_reader_skipped_rows_total');
      assert.ok(skipped > 0 && skipped < rows, `${skipped} rows were found published`);
    }
    await pipeline.stopped(reader);
    const writer = pipeline.start('writer --sink redis');
    const applied = (): Promise<number> => writer.total('mysync_writer_applied_messages_total');
    // The first snapshot, of an empty table, sent a sweep into each partition.
    const messages = rows + PARTITIONS;
    await until('all of it is applied', async () => (await applied()) >= messages, {
      timeoutMs: 400_000,
      everyMs: 200,
    });
    await assertEqual(pipeline, rows);
    assert.equal(await applied(), messages, 'each row is published once');
    await pipeline.stopped(writer);
  });
}
