import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@mysync/core';
import { LogTransport } from './index.ts';
import { metaKey, type PartitionState } from './layout.ts';
import { Store } from './store.ts';
import { requireTopic } from './topics.ts';

/** What the store remembers of a producer is what decides, not what the publisher believes. */
test('a batch that is there already is answered with its offset; one behind a missing one is refused', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  const transport = await LogTransport.open({ path, maintenance: false });
  const limits = {
    fsync: 'commit',
    fsyncIntervalMs: 1000,
    maxBytes: Number.MAX_SAFE_INTEGER,
    minFreeBytes: 0,
  } as const;
  const store = await Store.use({ path, ...limits, clock: systemClock, onProblem: () => {} });
  t.after(async () => {
    await store.release();
    await transport.close();
    rmSync(path, { recursive: true, force: true });
  });
  const times = { deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs: 1, retentionMs: -1 };
  await transport.ensureTopic({ name: 't', partitions: 1, compacted: true, ...times, allowWeaker: false });
  const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
  const batch = [{ key: Buffer.from('k'), value: Buffer.from('v'), headers: [] }];
  const key = metaKey.partition(requireTopic(store, 't').id, 0);
  const expectNext = (change: number): Promise<void> =>
    store.write(() => {
      const state = store.read<PartitionState>(key);
      const mine = state?.producers['p'];
      assert.ok(state !== undefined && mine !== undefined);
      const bases = change > 0 ? [...mine.bases, 77] : mine.bases;
      store.put(key, { ...state, producers: { p: { ...mine, next: mine.next + change, bases } } });
    });

  for (const baseOffset of [0, 1, 2]) assert.deepEqual(await publisher.publish(0, batch), { baseOffset });
  // As after a commit whose answer was lost: the batch that comes is stored already, at offset 77.
  await expectNext(1);
  assert.deepEqual(await publisher.publish(0, batch), { baseOffset: 77 });
  assert.deepEqual(await transport.offsetRanges('t'), [{ earliest: 0, end: 3 }], 'it was not stored again');
  assert.deepEqual(await publisher.publish(0, batch), { baseOffset: 3 });
  // As after a batch that was never stored.
  await expectNext(-1);
  await assert.rejects(publisher.publish(0, batch), { code: 'TRANSPORT_RENUMBER' });
  await assert.rejects(publisher.publish(0, batch), { code: 'TRANSPORT_RENUMBER' }, 'until renumbered');
  assert.deepEqual(await transport.offsetRanges('t'), [{ earliest: 0, end: 4 }]);
  await publisher.renumber();
  assert.deepEqual(await publisher.publish(0, batch), { baseOffset: 4 });
});
