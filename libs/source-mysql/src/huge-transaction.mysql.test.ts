/** Case D1 at its full size: slow, so only with MYSYNC_SLOW=1. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FLAVORS, TestDatabase } from './testing.fixture.ts';

const ROWS = 2_000_000;

for (const flavor of FLAVORS) {
  describe(`a transaction of two million rows on ${flavor}`, {
    skip: process.env.MYSYNC_SLOW !== '1',
    timeout: 900_000,
  }, () => {
    it('is handed over in bounded memory', async () => {
      await using db = await TestDatabase.create(flavor);
      await db.run('CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))');
      const source = db.source();
      const from = await source.currentPosition();
      await db.run('BEGIN');
      for (let i = 0; i < ROWS; i += 10_000) {
        await db.run(
          `INSERT INTO t VALUES ${Array.from({ length: 10_000 }, (_, j) => `(${i + j}, 'value ${j}')`).join(',')}`,
        );
      }
      await db.run('COMMIT');
      const stop = new AbortController();
      const atStart = process.memoryUsage().rss;
      let most = 0;
      let rows = 0;
      for await (const batch of source.stream({ from, signal: stop.signal })) {
        for (const item of batch) {
          if (item.kind === 'row') {
            rows += 1;
            assert.equal(item.ordinal, rows);
          }
          if (item.kind === 'commit') stop.abort();
        }
        most = Math.max(most, process.memoryUsage().rss);
      }
      assert.equal(rows, ROWS);
      assert.ok(most - atStart < 256 << 20, `memory rose by ${Math.round((most - atStart) / 1e6)} MB`);
    });
  });
}
