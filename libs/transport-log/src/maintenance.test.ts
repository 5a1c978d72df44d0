import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isMysyncError, systemClock } from '@mysync/core';
import { LogTransport } from './index.ts';
import { batchKey, metaKey, type PartitionState } from './layout.ts';
import { Maintenance, type MaintenanceOptions } from './maintenance.ts';
import { Store } from './store.ts';
import { requireTopic } from './topics.ts';

/** What maintenance does about other processes and about partitions that are damaged. */

interface Setting {
  readonly store: Store;
  readonly transport: LogTransport;
  readonly problems: unknown[];
  readonly topicId: string;
  publish(partition: number, key: string, bytes: number): Promise<void>;
  state(partition: number): PartitionState;
  maintain(options: Partial<MaintenanceOptions>): Maintenance;
}

async function setting(t: TestContext): Promise<Setting> {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  const problems: unknown[] = [];
  const transport = await LogTransport.open({ path, fsync: 'interval', maintenance: false });
  const limits = { fsyncIntervalMs: 1000, maxBytes: Number.MAX_SAFE_INTEGER, minFreeBytes: 0 };
  // the first that opens a log says whom its problems are told to
  await transport.close();
  const onProblem = (error: unknown): unknown => problems.push(error);
  const store = await Store.use({ path, fsync: 'interval', ...limits, clock: systemClock, onProblem });
  const again = await LogTransport.open({ path, fsync: 'interval', maintenance: false });
  const running: Maintenance[] = [];
  t.after(async () => {
    for (const each of running) await each.stop();
    await store.release();
    await again.close();
    rmSync(path, { recursive: true, force: true });
  });
  const times = { deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs: 0, retentionMs: -1 };
  await again.ensureTopic({ name: 't', partitions: 2, compacted: true, ...times, allowWeaker: true });
  const publisher = await again.openPublisher({ topic: 't', producer: 'p', previous: null });
  const topicId = requireTopic(store, 't').id;
  return {
    store,
    transport: again,
    problems,
    topicId,
    publish: async (partition, key, bytes) => {
      await publisher.publish(partition, [{ key: Buffer.from(key), value: Buffer.alloc(bytes, 'v'), headers: [] }]);
    },
    state: (partition) => {
      store.refresh();
      const state = store.partition(topicId, partition);
      assert.ok(state !== undefined);
      return state;
    },
    maintain: (options) => {
      const limits = { minDirtyRatio: 0, minDirtyBytes: 1, memoryBytes: 2 ** 26, leaseMs: 60_000, intervalMs: 5 };
      const maintenance = new Maintenance(store, { ...limits, ...options });
      running.push(maintenance);
      return maintenance;
    },
  };
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

test('who reads for longer than its lease keeps it, and ends what it began', { timeout: 60_000 }, async (t) => {
  const { store, publish, state, maintain } = await setting(t);
  for (let n = 0; n < 20; n++) await publish(0, 'k', 2 ** 20);
  await publish(0, 'newest', 1);
  // Ten pauses for the look and ten for the walk: far more than the lease, though each is far less.
  const options = { leaseMs: 300, pause: () => later(60) };
  maintain(options);
  maintain(options);
  const holders = new Set<string | undefined>();
  while (state(0).cleanedTo < 20) {
    const holder = store.read<{ token: string }>(metaKey.maintenance)?.token;
    if (holder !== undefined) holders.add(holder);
    await later(5);
  }
  assert.equal(holders.size, 1);
  assert.ok(state(0).bytes < 2 * 2 ** 20);
});

test('a damaged partition is told; the others are compacted as before', { timeout: 60_000 }, async (t) => {
  const { store, publish, state, maintain, problems, topicId, transport } = await setting(t);
  for (const partition of [0, 1]) for (let n = 0; n < 10; n++) await publish(partition, 'k', 1000);
  await store.write(() => store.putBatch(batchKey(topicId, 0, 3), Buffer.alloc(1000, 'x')));
  maintain({});
  while (state(1).cleanedTo < 9) await later(5);
  assert.ok(problems.length > 0 && problems.every((error) => isMysyncError(error, 'LOG_CORRUPT')), String(problems[0]));
  assert.equal(state(0).cleanedTo, 0);
  const offsets: number[] = [];
  for await (const { records } of transport.read({ topic: 't', partition: 1, from: 0, until: 10 })) {
    for (const { offset } of records) offsets.push(offset);
  }
  assert.deepEqual(offsets, [8, 9]);
});

test('batches that are four thousand million offsets apart are not joined', { timeout: 60_000 }, async (t) => {
  const { store, publish, state, maintain, problems, topicId, transport } = await setting(t);
  await publish(0, 'cold', 10);
  await publish(0, 'warm', 10);
  const far = 5_000_000_000;
  await store.write(() => {
    const now = store.partition(topicId, 0);
    store.put(metaKey.partition(topicId, 0), { ...now, end: far });
  });
  for (const key of ['warm', 'hot', 'hot', 'newest']) await publish(0, key, 10);
  maintain({});
  while (state(0).cleanedTo < far + 3) {
    assert.deepEqual(problems, []);
    await later(5);
  }
  const seen: [number, string][] = [];
  for await (const { records } of transport.read({ topic: 't', partition: 0, from: 0, until: far + 4 })) {
    for (const { offset, key } of records) seen.push([offset, Buffer.from(key).toString()]);
  }
  assert.deepEqual(seen, [
    [0, 'cold'],
    [far, 'warm'],
    [far + 2, 'hot'],
    [far + 3, 'newest'],
  ]);
});
