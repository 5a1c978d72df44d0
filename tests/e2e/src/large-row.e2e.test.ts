/**
 * One row of many megabytes through everything. The reader's memory stays below 150 MB and five times the row's event. In CI the row has 16 MiB;
 * MYSYNC_LARGE_ROW_MB=64 is the size that is promised.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type MysyncProcess, Pipeline, startServer } from '@mysync/harness';

const MEBI = 2 ** 20;
const ROW_BYTES = Number(process.env['MYSYNC_LARGE_ROW_MB'] ?? '16') * MEBI;

/** The most memory that the process ever had, files mapped into it included. */
function peakBytes(process: MysyncProcess): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${process.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

for (const source of ['mariadb', 'mysql'] as const) {
  test(`${source}: a row of ${ROW_BYTES / MEBI} MiB`, async () => {
    await using server = await startServer(source, { args: ['--max-allowed-packet=1G'] });
    await using pipeline = await Pipeline.create({
      source,
      transport: 'log',
      sinks: ['redis'],
      partitions: 1,
      servers: { [source]: server },
    });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, small INT, v LONGTEXT)');
    const reader = pipeline.start('reader');
    const writer = pipeline.start('writer --sink redis');
    await sql.query("INSERT INTO t VALUES (1, 1, 'a')");
    await pipeline.equal(['t']);
    const before = peakBytes(reader);
    // one event of as many bytes
    await sql.query(`INSERT INTO t VALUES (2, 1, REPEAT('x', ${ROW_BYTES}))`);
    await pipeline.equal(['t']);
    const peak = peakBytes(reader);
    console.error(source, 'before', before / MEBI, 'insert', peak / MEBI, 'writer', peakBytes(writer) / MEBI);
    assert.ok(peak < 150e6 + 5 * ROW_BYTES, `${Math.round(peak / MEBI)} MiB`);
    // and one of twice as many: the row before it and after it
    await sql.query('UPDATE t SET small = 2 WHERE id = 2');
    await pipeline.equal(['t']);
    const peak2 = peakBytes(reader);
    console.error(source, 'update', peak2 / MEBI, 'writer', peakBytes(writer) / MEBI);
    assert.ok(peak2 < 150e6 + 10 * ROW_BYTES, `${Math.round(peak2 / MEBI)} MiB`);
    // the same row again, read again: its event is small
    await sql.query("SET SESSION binlog_row_image = 'MINIMAL'; UPDATE t SET small = 3 WHERE id = 2");
    await pipeline.equal(['t']);
    console.error(source, 'reread', peakBytes(reader) / MEBI, 'writer', peakBytes(writer) / MEBI);
    await pipeline.stopped(reader);
    await pipeline.stopped(writer);
  });
}
