import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '@mysync/core';
import type { OutgoingRecord } from '@mysync/transport';
import { LogTransport } from './index.ts';
import { Store } from './store.ts';

async function opened(t: TestContext): Promise<{ path: string; transport: LogTransport; store: Store }> {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  const transport = await LogTransport.open({ path, maintenance: false });
  const limits = { fsyncIntervalMs: 1000, maxBytes: Number.MAX_SAFE_INTEGER, minFreeBytes: 0 };
  const store = await Store.use({ path, fsync: 'commit', ...limits, clock: systemClock, onProblem: () => {} });
  t.after(async () => {
    await store.release();
    await transport.close();
    rmSync(path, { recursive: true, force: true });
  });
  const times = { deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs: 1, retentionMs: -1 };
  await transport.ensureTopic({ name: 't', partitions: 1, compacted: true, ...times, allowWeaker: false });
  return { path, transport, store };
}

const record = (key: string): OutgoingRecord => ({ key: Buffer.from(key), value: Buffer.from('v'), headers: [] });

test('an action that throws leaves nothing of itself, gets what it threw, and the others of its group are stored', async (t) => {
  const { store } = await opened(t);
  class Thrown extends Error {}
  const size = store.size();
  const spoilt = store.write(() => {
    store.put('spoilt', 1);
    store.addSize(1000);
    throw new Thrown();
  });
  const results = await Promise.allSettled([
    store.write(() => store.put('before', 1)),
    spoilt,
    store.write(() => {
      assert.equal(store.read('before'), 1, 'what an earlier action of the group stored is there');
      assert.equal(store.read('spoilt'), undefined);
      store.put('after', 1);
      store.addSize(10);
    }),
  ]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  await assert.rejects(spoilt, Thrown);
  store.refresh();
  assert.deepEqual(
    ['before', 'spoilt', 'after'].map((key) => store.read(key)),
    [1, undefined, 1],
  );
  assert.equal(store.size(), size + 10, 'only what was stored is counted');
});

test('what is published and renumbered beside an action that throws is stored, and told so', async (t) => {
  const { transport, store } = await opened(t);
  const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
  const beside = (): Promise<unknown> =>
    assert.rejects(
      store.write(() => {
        throw new Error('beside');
      }),
      { message: 'beside' },
    );
  const [first, , second] = await Promise.all([
    publisher.publish(0, [record('a')]),
    beside(),
    publisher.publish(0, [record('b')]),
  ]);
  assert.deepEqual([first, second], [{ baseOffset: 0 }, { baseOffset: 1 }]);
  const [identity] = await Promise.all([publisher.renumber(), beside()]);
  assert.deepEqual(publisher.identity, identity);
  assert.deepEqual(await publisher.publish(0, [record('c')]), { baseOffset: 2 });
});

test('a log that is removed while it is open is told, by what appends and by what does not', async (t) => {
  const { path, transport, store } = await opened(t);
  const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
  await publisher.publish(0, [record('a')]);
  rmSync(path, { recursive: true });
  await assert.rejects(publisher.publish(0, [record('b')]), { code: 'LOG_PATH' });
  const findings = await transport.check({
    name: 't',
    partitions: 1,
    compacted: true,
    deleteRetentionMs: 1,
    minCompactionLagMs: 1,
    retentionMs: -1,
    allowWeaker: true,
  });
  assert.ok(findings.some(({ code, level }) => code === 'LOG_PATH' && level === 'error'));
  for (let isTold = false; !isTold; ) {
    // The look is taken once a second.
    await new Promise((resolve) => setTimeout(resolve, 50));
    isTold = await store
      .write(() => store.put('k', 1))
      .then(
        () => false,
        (error: unknown) => {
          assert.equal((error as { code?: unknown }).code, 'LOG_PATH');
          return true;
        },
      );
  }
});
