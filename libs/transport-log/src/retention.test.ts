import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isMysyncError, systemClock } from '@mysync/core';
import type { Publisher, TopicSpec } from '@mysync/transport';
import { LogTransport } from './index.ts';

/** Maintenance as it runs in the background, under a clock that the test moves. */

interface Setting {
  readonly transport: LogTransport;
  readonly publisher: Publisher;
  wait(ms: number): void;
  keys(): Promise<string[]>;
}

async function setting(t: TestContext, topic: Partial<TopicSpec>): Promise<Setting> {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  let nowMs = 1_000_000;
  const transport = await LogTransport.open({
    path,
    clock: { ...systemClock, now: () => nowMs },
    maintenance: { intervalMs: 5, minDirtyBytes: 0, minDirtyRatio: 0.001 },
    onProblem: (error) => assert.fail(String(error)),
  });
  t.after(async () => {
    await transport.close();
    rmSync(path, { recursive: true, force: true });
  });
  const times = { deleteRetentionMs: 1000, minCompactionLagMs: 100, retentionMs: 1000 };
  await transport.ensureTopic({ name: 't', partitions: 1, compacted: true, ...times, allowWeaker: true, ...topic });
  return {
    transport,
    publisher: await transport.openPublisher({ topic: 't', producer: 'p', previous: null }),
    wait: (ms) => {
      nowMs += ms;
    },
    keys: async () => {
      const [range] = await transport.offsetRanges('t');
      const keys: string[] = [];
      const { earliest = 0, end = 0 } = range ?? {};
      for await (const { records } of transport.read({ topic: 't', partition: 0, from: earliest, until: end })) {
        for (const { key } of records) keys.push(Buffer.from(key).toString());
      }
      return keys;
    },
  };
}

function record(key: string, value: string | null = 'v') {
  return { key: Buffer.from(key), value: value === null ? null : Buffer.from(value), headers: [] };
}

/** Waits for what maintenance does, which may drop offsets while they are read; the time limit of the test ends it. */
async function until(keys: () => Promise<string[]>, want: readonly string[]): Promise<void> {
  for (;;) {
    const got = await keys().catch((error: unknown) => {
      if (!isMysyncError(error, 'TRANSPORT_OFFSET_OUT_OF_RANGE')) throw error;
      return null;
    });
    if (got?.join() === want.join()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('a topic without compaction loses what is older than its retention, but never the newest batch', {
  timeout: 30_000,
}, async (t) => {
  const { transport, publisher, wait, keys } = await setting(t, { compacted: false });
  for (let index = 0; index < 250; index++) await publisher.publish(0, [record(`old-${index}`)]);
  wait(900);
  await publisher.publish(0, [record('young')]);
  wait(101);
  await until(keys, ['young']);
  assert.deepEqual(await transport.offsetRanges('t'), [{ earliest: 250, end: 251 }]);
  wait(1_000_000);
  await publisher.publish(0, [record('newest')]);
  await until(keys, ['newest']);
  wait(1_000_000);
  await publisher.publish(0, [record('next')]);
  await until(keys, ['next']);
});

test('a tombstone goes after its time, also out of a joined batch; the newest record stays even then', {
  timeout: 30_000,
}, async (t) => {
  const { publisher, wait, keys } = await setting(t, {});
  await publisher.publish(0, [record('a')]);
  await publisher.publish(0, [record('dead')]);
  await publisher.publish(0, [record('dead', null)]);
  await publisher.publish(0, [record('b')]);
  await publisher.publish(0, [record('last', null)]);
  wait(150);
  await until(keys, ['a', 'dead', 'b', 'last']);
  wait(900);
  await publisher.publish(0, [record('last', null)]);
  wait(99);
  // Not yet: 999 ms have passed since compaction saw the tombstone.
  await until(keys, ['a', 'dead', 'b', 'last', 'last']);
  wait(1001);
  // The newest batch is not looked into, so the record before it is still the last one of its key.
  await until(keys, ['a', 'b', 'last', 'last']);
  wait(10_000);
  await until(keys, ['a', 'b', 'last']);
  wait(10_000);
  for (let look = 0; look < 5; look++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(await keys(), ['a', 'b', 'last']);
});

test('a tombstone goes at its time, however many others come behind it', { timeout: 30_000 }, async (t) => {
  const { publisher, wait, keys } = await setting(t, {});
  await publisher.publish(0, [record('gone')]);
  await publisher.publish(0, [record('gone', null)]);
  let rounds = 0;
  const look = (): Promise<string[]> => keys().catch(() => ['gone']); // offsets may go while they are read
  for (; rounds < 50 && (await look()).includes('gone'); rounds++) {
    await publisher.publish(0, [record(`other-${rounds}`)]);
    await publisher.publish(0, [record(`other-${rounds}`, null)]);
    wait(200);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.ok(rounds < 50, 'it waits for as long as others come');
});
