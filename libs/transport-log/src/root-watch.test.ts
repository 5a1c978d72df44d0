import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LogTransport } from './index.ts';

/** Where lmdb-js has the number of the newest transaction in the lock file. */
const NEWEST_AT = 8;

function newestOf(lock: number): bigint {
  const word = Buffer.alloc(8);
  readSync(lock, word, 0, 8, NEWEST_AT);
  return word.readBigUInt64LE(0);
}

for (const fsync of ['commit', 'interval'] as const) {
  test(`commits that an opening process rolled back are there for the next write (fsync ${fsync})`, async (t) => {
    const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
    const transport = await LogTransport.open({ path, fsync, maintenance: false });
    const lock = openSync(join(path, 'lock.mdb'), 'r+');
    t.after(async () => {
      await transport.close();
      closeSync(lock);
      rmSync(path, { recursive: true, force: true });
    });
    const times = { deleteRetentionMs: 86_400_000, minCompactionLagMs: 86_400_000, retentionMs: -1 };
    await transport.ensureTopic({ name: 't', partitions: 1, compacted: true, ...times, allowWeaker: true });
    const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
    const record = (n: number) => ({ key: Buffer.from(`k${n}`), value: Buffer.from(`v${n}`), headers: [] });
    const word = Buffer.alloc(8);
    for (let n = 0; n < 200; n++) {
      const before = newestOf(lock);
      const { baseOffset } = await publisher.publish(0, [record(n)]);
      assert.equal(baseOffset, n);
      assert.ok(newestOf(lock) > before);
      if (n % 3 > 0) continue;
      // as `mdb_env_open2` of another process does
      word.writeBigUInt64LE(before);
      writeSync(lock, word, 0, 8, NEWEST_AT);
    }
    const seen: string[] = [];
    for await (const batch of transport.read({ topic: 't', partition: 0, from: 0, until: 200 })) {
      for (const { value } of batch.records) seen.push(String(value));
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 200 }, (_, n) => `v${n}`),
    );
  });
}
