import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '@mysync/core';
import { logErrors } from './errors.ts';
import { LogTransport } from './index.ts';
import { metaKey } from './layout.ts';
import { Store } from './store.ts';
import { requireTopic } from './topics.ts';

async function opened(t: TestContext, partitions: number): Promise<LogTransport> {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  const transport = await LogTransport.open({ path, maintenance: false });
  t.after(async () => {
    await transport.close();
    rmSync(path, { recursive: true, force: true });
  });
  const times = { deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs: 1, retentionMs: -1 };
  await transport.ensureTopic({ name: 't', partitions, compacted: true, ...times, allowWeaker: false });
  return transport;
}

/** The store that the transport has open. */
function storeOf(transport: LogTransport): Promise<Store> {
  const limits = { fsyncIntervalMs: 1000, maxBytes: Number.MAX_SAFE_INTEGER, minFreeBytes: 0 };
  return Store.use({ path: transport.path, fsync: 'commit', ...limits, clock: systemClock, onProblem: () => {} });
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened: promise, open };
}

test('a partition is not handled twice in one member, however late the first handler ends', {
  timeout: 30_000,
}, async (t) => {
  const transport = await opened(t, 1);
  const options = { topic: 't', group: 'g', maxBatchBytes: 1000, handoverMs: 10 };
  const slow = await transport.openConsumer(options);
  const [began, lost, finish, again] = [gate(), gate(), gate(), gate()];
  let running = 0;
  let calls = 0;
  const stop = new AbortController();
  const slowRun = slow.run(async ({ revoked }) => {
    assert.equal(running++, 0, 'the first handler has ended');
    if (++calls === 1) {
      began.open();
      revoked.addEventListener('abort', () => lost.open());
      await finish.opened;
    } else {
      again.open();
      await new Promise((resolve) => revoked.addEventListener('abort', resolve));
    }
    running--;
  }, stop.signal);
  await began.opened;
  // A member that is put out (as after a freeze) is revoked, joins anew, and the partition is free to be taken again.
  await putOut(transport);
  await lost.opened;
  for (let look = 0; look < 10; look++) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(calls, 1);
  finish.open();
  await again.opened;
  stop.abort();
  await slowRun;
});

test('a member that was put out between its look and its beat, and has joined again, takes its partition anew', {
  timeout: 30_000,
}, async (t) => {
  const transport = await opened(t, 1);
  const member = await transport.openConsumer({ topic: 't', group: 'g', maxBatchBytes: 1000, handoverMs: 1000 });
  const calls = [gate(), gate()];
  let call = 0;
  const stop = new AbortController();
  const run = member.run(async ({ commit, revoked }) => {
    const mine = call++;
    calls[mine]?.open();
    await new Promise((resolve) => revoked.addEventListener('abort', resolve));
    if (mine === 0) await assert.rejects(commit(0), { code: 'TRANSPORT_NOT_OWNER' });
    else await commit(0);
  }, stop.signal);
  await calls[0]?.opened;
  await putOut(transport, { joinsAgain: true });
  await calls[1]?.opened;
  stop.abort();
  await run;
});

for (const ends of ['when it is asked back', 'long after that'] as const) {
  test(`a partition whose handler ends ${ends} is handled by another member, also when giving it up failed`, {
    timeout: 30_000,
  }, async (t) => {
    const transport = await opened(t, 2);
    const store = await storeOf(transport);
    t.after(() => store.release());
    const write = store.write.bind(store);
    let failing = 0;
    let failed = 0;
    store.write = (action, bytes) => {
      // Beats fail as well; they are tried again.
      if (failing === 0 || !String(action).includes('giveUp')) return write(action, bytes);
      failing--;
      failed++;
      return Promise.reject(logErrors.LOG_WRITE_FAILED({ message: 'the disk refused a write' }));
    };
    const options = { topic: 't', group: 'g', maxBatchBytes: 1000, handoverMs: 10 };
    const [first, second] = [await transport.openConsumer(options), await transport.openConsumer(options)];
    const [both, taken, finish] = [gate(), gate(), gate()];
    const stop = new AbortController();
    const has = new Set<number>();
    const firstRun = first.run(async ({ partition, revoked }) => {
      if (has.add(partition).size === 2) both.open();
      await new Promise((resolve) => revoked.addEventListener('abort', resolve));
      if (ends === 'long after that') await finish.opened;
    }, stop.signal);
    await both.opened;
    failing = 2;
    const secondRun = second.run(async ({ partition, revoked, commit }) => {
      await commit(0);
      assert.ok(has.has(partition));
      taken.open();
      await new Promise((resolve) => revoked.addEventListener('abort', resolve));
    }, stop.signal);
    await taken.opened;
    assert.ok(failed > 0);
    finish.open();
    stop.abort();
    await Promise.all([firstRun, secondRun]);
  });
}

/** What another member does with one whose lease is over; `joinsAgain`: and what that one does with its next beat. */
async function putOut(transport: LogTransport, { joinsAgain = false } = {}): Promise<void> {
  const store = await storeOf(transport);
  const { id } = requireTopic(store, 't');
  await store.write(() => {
    if (!joinsAgain) store.put(metaKey.group(id, 'g'), { members: [] });
    store.put(metaKey.ownership(id, 'g', 0), { member: null, token: null, committed: null });
    store.announce(metaKey.group(id, 'g'));
  });
  await store.release();
}

test('a topic that is deleted ends its readers and members with TRANSPORT_TOPIC_MISSING', {
  timeout: 30_000,
}, async (t) => {
  const transport = await opened(t, 1);
  const consumer = await transport.openConsumer({ topic: 't', group: 'g', maxBatchBytes: 1000, handoverMs: 1000 });
  const began = gate();
  const run = consumer.run(async ({ batches, revoked }) => {
    began.open();
    for await (const _ of batches(0)) assert.fail('there is nothing');
    assert.ok(revoked.aborted);
  }, new AbortController().signal);
  const read = transport.read({ topic: 't', partition: 0, from: 0 })[Symbol.asyncIterator]().next();
  await began.opened;
  const ends = [read, run].map((each) => assert.rejects(Promise.resolve(each), { code: 'TRANSPORT_TOPIC_MISSING' }));
  await transport.deleteTopic('t');
  await Promise.all(ends);
});
