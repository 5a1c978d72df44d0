import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '@mysync/core';
import { Campaign } from './campaign.ts';
import { compactPartition } from './compaction.ts';
import { LogTransport } from './index.ts';
import type { PartitionState } from './layout.ts';
import { Store } from './store.ts';
import { requireTopic } from './topics.ts';

/** Partitions with far more keys than compaction has memory for. */

const VALUE_BYTES = 200;
const MEMORY_BYTES = 20_000;

interface Setting {
  publish(keys: Iterable<string>): Promise<void>;
  /** Looks until there is nothing to do, or so often; answers with the number of passes. */
  look(campaign: Campaign, times: number): Promise<number>;
  state(): PartitionState;
  /** The newest value of each key, in the order of its place. */
  latest(): Promise<Map<string, string>>;
}

async function setting(t: TestContext): Promise<Setting> {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  let nowMs = 1_000_000;
  const clock = { ...systemClock, now: () => nowMs };
  const transport = await LogTransport.open({ path, fsync: 'interval', maintenance: false, clock });
  const limits = { fsyncIntervalMs: 1000, maxBytes: Number.MAX_SAFE_INTEGER, minFreeBytes: 0 };
  const store = await Store.use({ path, fsync: 'interval', ...limits, clock, onProblem: () => {} });
  t.after(async () => {
    await store.release();
    await transport.close();
    rmSync(path, { recursive: true, force: true });
  });
  const times = { deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs: 1000, retentionMs: -1 };
  await transport.ensureTopic({ name: 't', partitions: 1, compacted: true, ...times, allowWeaker: true });
  const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
  const entry = requireTopic(store, 't');
  let serial = 0;
  const state = (): PartitionState => {
    store.refresh();
    const found = store.partition(entry.id, 0);
    assert.ok(found !== undefined);
    return found;
  };
  return {
    state,
    publish: async (keys) => {
      const all = [...keys].map((key) => {
        const value = Buffer.alloc(VALUE_BYTES, ' ');
        value.write(String(serial++));
        return { key: Buffer.from(key), value, headers: [] };
      });
      for (let at = 0; at < all.length; at += 20) await publisher.publish(0, all.slice(at, at + 20));
      nowMs += 10_000;
    },
    look: async (campaign, times) => {
      let passes = 0;
      for (let time = 0; time < times; time++) {
        const options = { store, topic: 't', entry, partition: 0, nowMs, memoryBytes: MEMORY_BYTES };
        const run = { checkLease: () => {}, pause: async () => {}, minDirtyRatio: 0.3, campaign };
        if (await compactPartition({ ...options, ...run, joinedBytes: 4096 })) passes++;
      }
      return passes;
    },
    latest: async () => {
      const values = new Map<string, string>();
      const { end } = state();
      for await (const { records } of transport.read({ topic: 't', partition: 0, from: 0, until: end })) {
        for (const { key, value } of records) {
          values.delete(Buffer.from(key).toString());
          values.set(
            Buffer.from(key).toString(),
            Buffer.from(value ?? [])
              .toString()
              .trim(),
          );
        }
      }
      return values;
    },
  };
}

function* range(name: string, from: number, to: number): Generator<string> {
  for (let n = from; n < to; n++) yield `${name}-${n}`;
}

test('even updates of more keys than fit into memory: the log stays small, and every key keeps its newest value', async (t) => {
  const { publish, look, state, latest } = await setting(t);
  const campaign = new Campaign();
  await publish(range('k', 0, 2000));
  const live = state().bytes;
  for (let round = 0; round < 8; round++) {
    await publish(range('k', 0, 2000));
    await look(campaign, 20);
    const { bytes } = state();
    assert.ok(bytes < 2 * live, `round ${round}: ${bytes} bytes for ${live} of living rows`);
  }
  const values = await latest();
  assert.equal(values.size, 2000);
  for (const [at, key] of [...range('k', 0, 2000)].entries()) assert.equal(values.get(key), String(8 * 2000 + at));
});

test('rows that were only added cost no passes; updates behind them are found', async (t) => {
  const { publish, look, state, latest } = await setting(t);
  const campaign = new Campaign();
  for (let part = 0; part < 10; part++) {
    await publish(range('k', part * 1000, part * 1000 + 1000));
    assert.equal(await look(campaign, 3), 0, `part ${part}`);
  }
  const live = state().bytes;
  for (let round = 0; round < 3; round++) await publish(range('k', 7000, 10_000));
  assert.ok((await look(campaign, 60)) > 10);
  assert.ok(state().bytes < 1.3 * live, `${state().bytes} of ${live} bytes`);
  assert.equal((await latest()).size, 10_000);
});
