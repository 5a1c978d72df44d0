/**
 * Case C8: sessions that log parts of rows (binlog_row_image), racing with others that log whole ones, while the reader is killed among them:
 * both sinks end equal to the tables.
 */
import { test } from 'node:test';
import { Pipeline } from '@mysync/harness';
import type { Connection } from 'mysql2/promise';
import { PacedLoad } from './paced-load.fixture.ts';

const WRITERS = 4;
const ROWS = 60;
const STATEMENTS = 400;
const KILLS = 4;
const IMAGES = ['MINIMAL', 'NOBLOB', 'FULL', 'MINIMAL'];

/** Random changes of rows that the other writers change, too. */
async function race(sql: Connection, image: string, load: PacedLoad): Promise<void> {
  const pick = (below: number): number => Math.floor(Math.random() * below);
  await sql.query(`SET SESSION binlog_row_image = '${image}'`);
  for (let i = 0; i < STATEMENTS && !load.isOver; i += 1, load.done += 1) {
    await load.turn();
    const id = pick(ROWS);
    const statement = [
      `UPDATE t SET a = a + 1 WHERE id = ${id}`,
      `UPDATE t SET a = a + 1, d = 'changed ${i}' WHERE id BETWEEN ${id} AND ${id + 10}`,
      `UPDATE t SET keep = CONCAT('kept by ${image} ', ${i}) WHERE id = ${id}`,
      `DELETE FROM t WHERE id = ${id}`,
      `INSERT INTO t (id, a) VALUES (${id}, ${i}) ON DUPLICATE KEY UPDATE a = a + 100`,
      `REPLACE INTO t (id, keep) VALUES (${id}, 'replaced')`,
      `UPDATE t SET id = ${pick(ROWS) + ROWS} WHERE id = ${id}`,
      `BEGIN; UPDATE t SET a = 0 WHERE id = ${id}; UPDATE t SET a = a - 1 WHERE id = ${id}; DELETE FROM t WHERE id = ${pick(ROWS) + ROWS}; COMMIT`,
      `BEGIN; UPDATE t SET a = -1 WHERE id = ${id}; ROLLBACK`,
    ][pick(9)];
    // two writers in each other's way, or the same key: one of them is told, and that is that
    await sql.query(statement ?? '').catch(() => sql.query('ROLLBACK'));
  }
}

for (const source of ['mariadb', 'mysql'] as const) {
  test(`${source}: columns that an image lacks are neither lost nor NULL in any sink`, async () => {
    await using pipeline = await Pipeline.create({
      source,
      transport: 'log',
      sinks: ['redis', 'elasticsearch'],
      partitions: 2,
      config: { reader: { checkpointMs: 200, heartbeatMs: 500 } },
    });
    const { sql } = pipeline;
    await sql.query(
      "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5, keep TEXT, d VARCHAR(40) DEFAULT 'default', g INT AS (a * 2) STORED, v INT AS (a * 3) VIRTUAL)",
    );
    await sql.query('INSERT INTO t (id, a, keep) VALUES ?', [
      Array.from({ length: ROWS }, (_, id) => [id, id, `kept ${id}`]),
    ]);
    const verbs = ['reader', 'writer --sink redis', 'writer --sink elasticsearch'];
    const processes = verbs.map((verb) => pipeline.start(verb));
    await pipeline.equal(['t']);
    await sql.query("SET SESSION binlog_row_image = 'MINIMAL'; UPDATE t SET a = 2 WHERE id < 10");
    await sql.query("SET SESSION binlog_row_image = 'NOBLOB'; UPDATE t SET a = 3 WHERE id BETWEEN 5 AND 15");
    await pipeline.equal(['t']);
    await processes[0]?.logged(/does not hold all columns: such rows are read again/);

    const load = new PacedLoad(WRITERS * STATEMENTS, KILLS);
    const connections: Connection[] = [];
    for (let i = 0; i < WRITERS; i += 1) connections.push(await pipeline.connect());
    const racing = Promise.all(connections.map((connection, i) => race(connection, IMAGES[i] ?? '', load)));
    try {
      for (let kill = 0; kill < KILLS; kill += 1) {
        await load.reached(kill + 0.5);
        await processes[0]?.kill();
        const next = pipeline.start('reader');
        processes[0] = next;
        // the next victim is one that works
        await next.atWork();
        load.next();
      }
      await racing;
    } finally {
      load.end();
      await racing;
    }
    await pipeline.equal(['t'], 180_000);
    for (const process of processes) await pipeline.stopped(process);
  });
}
