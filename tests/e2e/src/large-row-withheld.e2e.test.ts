/** A row that is larger than the transport takes: its key is set aside, everything else flows, and it comes back by itself once it fits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClean, Pipeline, until } from '@mysync/harness';
import { dlq } from './dlq.fixture.ts';

const LIMIT = 64 * 1024;
const LARGE = 3 * LIMIT;

interface Item {
  readonly key: string;
  readonly code: string;
}

async function setAside(pipeline: Pipeline): Promise<readonly string[]> {
  return (await dlq<Item[]>(pipeline, ['list'])).map(({ key, code }) => `${key} ${code}`).sort();
}

async function untilSetAside(pipeline: Pipeline, keys: readonly string[]): Promise<void> {
  const wanted = keys.map((key) => `${key} WRITER_ROW_WITHHELD`).join();
  await until(`set aside: ${wanted}`, async () => (await setAside(pipeline)).join() === wanted);
}

for (const transport of ['log', 'kafka'] as const) {
  test(`${transport}: a row too large for it is withheld, others go on, and its next change that fits is applied`, async () => {
    await using pipeline = await Pipeline.create({
      transport,
      sinks: ['redis'],
      partitions: 2,
      sourceConfig: { onLargeRow: 'withhold' },
      sinkConfig: { onPoison: 'park' },
    });
    const { transportConfig: made } = pipeline;
    const limited = { ...(made[transport] as object), maxRecordBytes: LIMIT };
    await pipeline.configure({ ...pipeline.options, config: { transport: { [transport]: limited } } });
    const { sql } = pipeline;
    await sql.query('CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)');
    await sql.query(`INSERT INTO t VALUES (1, 'one'), (2, REPEAT('x', ${LARGE})), (3, 'three')`);
    let mysync = pipeline.start('run');
    await mysync.logged(/"msg":"reader started"/);
    // of the snapshot, and of the log; an update whose two images are too large only together; a deletion of a row that never fitted
    await sql.query(`INSERT INTO t VALUES (4, REPEAT('y', ${LARGE})), (5, 'five'), (6, REPEAT('z', ${LIMIT / 2}))`);
    await sql.query(
      `UPDATE t SET v = REPEAT('u', ${LIMIT / 2}) WHERE id = 6; UPDATE t SET v = REPEAT('w', ${LARGE}) WHERE id = 1`,
    );
    await sql.query(
      `INSERT INTO t VALUES (7, REPEAT('d', ${LARGE})); DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (8, 'behind it')`,
    );
    await untilSetAside(pipeline, ['1', '2', '4']);
    const found = await pipeline.differences('redis', ['t']);
    assert.deepEqual(found.map(({ key }) => key).sort(), ['1', '2', '4']);
    const port = Number(/"port":(\d+)/.exec(mysync.stderr)?.[1]);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    assert.match(metrics, /^mysync_reader_withheld_rows_total\{.*\} [1-9]/m);
    assert.match(mysync.stderr, /row withheld/);

    await mysync.kill();
    mysync = pipeline.start('run');
    await mysync.logged(/"msg":"started"/);
    // smaller, gone, and moved to another key
    await sql.query(
      "UPDATE t SET v = 'fits' WHERE id = 2; DELETE FROM t WHERE id = 4; UPDATE t SET id = 11, v = 'moved' WHERE id = 1",
    );
    await pipeline.equal(['t']);
    await untilSetAside(pipeline, []);
    await pipeline.stopped(mysync);
    assertClean(mysync.stderr, []);
  });
}
