/**
 * D1: one transaction that is far larger than the reader's memory, from the log of the server to the embedded log, and a reader that is killed in the middle
 * of it. Two million rows with MYSYNC_SLOW=1; else so many that held in memory they would pass the limit.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline, until } from '@mysync/harness';

const SLOW = process.env['MYSYNC_SLOW'] === '1';
/** About 190 bytes in the log and 400 as a message: 160 MB, or 800 MB of messages. */
const ROWS = SLOW ? 2_000_000 : 400_000;
const SOURCE = process.env['MYSYNC_HUGE_SOURCE'] === 'mysql' ? 'mysql' : 'mariadb';
const MOST_MB = SLOW ? 200 : 180;

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

const lives = SLOW ? ['in one life', 'over a kill in the middle'] : ['over a kill in the middle'];
for (const life of lives) {
  test(`D1: a transaction of ${ROWS} rows is published in bounded memory, ${life}`, async (t) => {
    await using pipeline = await Pipeline.create({ transport: 'log', sinks: ['redis'], source: SOURCE });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200))');
    const path = pipeline.checkpointFile;
    let reader = pipeline.start('reader');
    await reader.logged(/"msg":"started"/);
    await sql.query('BEGIN');
    const filler = 'v'.repeat(170);
    for (let from = 0; from < ROWS; from += 5000) {
      const rows = Array.from({ length: 5000 }, (_, i) => [from + i, filler]);
      await sql.query('INSERT INTO t VALUES ?', [rows]);
    }
    await sql.query('COMMIT');
    const [[end]] = (await sql.query(
      SOURCE === 'mysql' ? 'SHOW BINARY LOG STATUS' : 'SHOW MASTER STATUS',
    )) as unknown as [[Record<string, string>]];
    let own = 0;
    const isThere = (): boolean => {
      own = Math.max(own, memory(reader).own);
      const at = checkpoint(path);
      return at !== undefined && at.file === end?.['File'] && at.offset >= Number(end['Position']);
    };
    if (life !== 'in one life') {
      const log = join(pipeline.folder, 'log');
      const published = (): number =>
        readdirSync(log, { recursive: true, encoding: 'utf8' }).reduce(
          (sum, name) => sum + statSync(join(log, name)).blocks * 512,
          0,
        );
      await until('a part of it is published', () => isThere() || published() > 30 << 20, { timeoutMs: 300_000 });
      t.diagnostic(`killed with ${memory(reader).peak} MB at most`);
      await reader.kill();
      reader = pipeline.start('reader');
    }
    await until('all of it is acknowledged', isThere, { timeoutMs: 800_000, everyMs: 200 });
    const { peak } = memory(reader);
    t.diagnostic(`${ROWS} rows: at most ${peak} MB, ${own} MB without the log's pages`);
    assert.ok(own < MOST_MB, `${own} MB without the log's pages`);
    if (life === 'in one life') assert.ok(peak < MOST_MB, `${peak} MB`);
    await pipeline.stopped(reader);
  });
}
