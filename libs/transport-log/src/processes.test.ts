import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '@mysync/core';
import type { TopicSpec } from '@mysync/transport';
import { LogTransport } from './index.ts';
import { Store } from './store.ts';
import type { ChildMessage, ChildTask } from './test-child.ts';

/** Several processes on one log: they die, freeze and wake, and the log stays right. */

class Child {
  readonly process: ChildProcess;
  readonly messages: ChildMessage[] = [];
  readonly exited: Promise<unknown>;
  #look: () => void = () => {};
  #fail: (error: Error) => void = () => {};

  constructor(task: ChildTask) {
    this.process = fork(new URL('./test-child.js', import.meta.url), [JSON.stringify(task)]);
    this.exited = once(this.process, 'exit');
    this.process.on('message', (message) => {
      this.messages.push(message as ChildMessage);
      this.#look();
    });
  }

  async until(predicate: (messages: readonly ChildMessage[]) => boolean): Promise<void> {
    const ended = (): void => this.#fail(new Error('the child ended'));
    this.process.once('exit', ended);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#fail = reject;
        this.#look = () => {
          if (predicate(this.messages)) resolve();
        };
        this.#look();
      });
    } finally {
      this.process.off('exit', ended);
    }
  }

  of<K extends ChildMessage['kind']>(kind: K): Extract<ChildMessage, { kind: K }>[] {
    return this.messages.filter((message): message is Extract<ChildMessage, { kind: K }> => message.kind === kind);
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.exited;
  }
}

interface Setting {
  readonly path: string;
  open(fsync?: 'commit' | 'interval'): Promise<LogTransport>;
  child(task: ChildTask): Child;
}

function setting(t: TestContext): Setting {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  const transports: LogTransport[] = [];
  const children: Child[] = [];
  t.after(async () => {
    await Promise.all(children.map((child) => child.kill()));
    await Promise.all(transports.map((transport) => transport.close()));
    rmSync(path, { recursive: true, force: true });
  });
  return {
    path,
    open: async (fsync = 'commit') => {
      const transport = await LogTransport.open({ path, fsync, maintenance: false, memberLeaseMs: 1500 });
      transports.push(transport);
      return transport;
    },
    child: (task) => {
      const child = new Child(task);
      children.push(child);
      return child;
    },
  };
}

function spec(name: string, partitions = 1, minCompactionLagMs = 3_600_000): TopicSpec {
  const times = { deleteRetentionMs: 7 * 86_400_000, minCompactionLagMs, retentionMs: -1 };
  return { name, partitions, compacted: true, ...times, allowWeaker: true };
}

/**
 * A process that dies in the very act of committing may leave a transaction that is stored and not yet shown; the next
 * write shows it, as a publisher's successor does before it looks at the tail.
 */
async function settle(transport: LogTransport, topic: string): Promise<void> {
  await transport.openPublisher({ topic, producer: 'nobody', previous: null });
}

async function readAll(
  transport: LogTransport,
  topic: string,
): Promise<{ offset: number; key: string; value: number }[]> {
  const [range] = await transport.offsetRanges(topic);
  const seen: { offset: number; key: string; value: number }[] = [];
  for await (const batch of transport.read({ topic, partition: 0, from: 0, until: range?.end ?? 0 })) {
    for (const { offset, key, value } of batch.records) {
      seen.push({ offset, key: Buffer.from(key).toString(), value: Number(Buffer.from(value ?? []).toString()) });
    }
  }
  return seen;
}

for (const fsync of ['commit', 'interval'] as const) {
  test(`kill -9 at any point: what was acked is there, contiguous and intact (fsync ${fsync})`, {
    timeout: 120_000,
  }, async (t) => {
    const { path, open, child } = setting(t);
    let transport = await open(fsync);
    await transport.ensureTopic(spec('t'));
    let expected = 0;
    for (let round = 0; round < 12; round++) {
      // Every other round nobody else has the log open, so that the next one recovers it alone.
      if (round % 2 === 1) await transport.close();
      const victim = child({ kind: 'publish', path, topic: 't', producer: 'p', from: expected, fsync });
      const acks = 1 + Math.floor(Math.random() * 60);
      await victim.until((messages) => messages.filter(({ kind }) => kind === 'stored').length >= acks);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
      await victim.kill();
      if (round % 2 === 1) transport = await open(fsync);
      await settle(transport, 't');
      const seen = await readAll(transport, 't');
      // Values count up and offsets too, from 0: nothing is missing, nothing twice.
      for (const [index, { offset, value }] of seen.entries()) {
        assert.ok(offset === index && value === index, `at ${index}`);
      }
      for (const { first, count, baseOffset } of victim.of('stored')) {
        assert.equal(baseOffset, first);
        assert.ok(first + count <= seen.length, 'what was acked is there');
      }
      assert.ok(seen.length >= expected);
      expected = seen.length;
    }
  });
}

test('kill -9 of publisher and compaction at any point loses no last record of a key', {
  timeout: 120_000,
}, async (t) => {
  const { path, open, child } = setting(t);
  const transport = await open('interval');
  await transport.ensureTopic(spec('t', 1, 0));
  let expected = 0;
  let compacted = 0;
  for (let round = 0; round < 10 || compacted === 0; round++) {
    const publisher = child({ kind: 'publish', path, topic: 't', producer: 'p', from: expected, fsync: 'interval' });
    const compactor = child({ kind: 'compact', path, fsync: 'interval' });
    await compactor.until((messages) => messages.length > 0);
    await publisher.until((messages) => messages.length > 40 + Math.random() * 60);
    await compactor.kill();
    await publisher.kill();
    assert.deepEqual(compactor.of('failed'), []);
    await settle(transport, 't');
    const seen = await readAll(transport, 't');
    const [range] = await transport.offsetRanges('t');
    for (const { offset, key, value } of seen) {
      assert.equal(value, offset);
      assert.equal(key, `k${offset % 50}`);
    }
    const end = range?.end ?? 0;
    const there = new Set(seen.map(({ offset }) => offset));
    for (let offset = Math.max(0, end - 50); offset < end; offset++) assert.ok(there.has(offset), `lost ${offset}`);
    compacted += end - seen.length;
    for (const { first, count } of publisher.of('stored')) assert.ok(first + count <= end);
    expected = end;
  }
});

test('a reader in another process wakes for each append', { timeout: 120_000 }, async (t) => {
  const { path, open, child } = setting(t);
  const transport = await open();
  await transport.ensureTopic(spec('t'));
  const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
  const follower = child({ kind: 'follow', path, topic: 't' });
  await follower.until((messages) => messages.length > 0);
  // A safety look each second would take longer than the test may.
  for (let round = 0; round < 300; round++) {
    await publisher.publish(0, [{ key: Buffer.from(`r${round}`), value: Buffer.from('v'), headers: [] }]);
    await follower.until(() => follower.of('read').at(-1)?.key === `r${round}`);
  }
});

test('a publisher that was frozen cannot append behind its successor', { timeout: 120_000 }, async (t) => {
  const { path, open, child } = setting(t);
  const transport = await open();
  await transport.ensureTopic(spec('t'));
  for (let round = 0; round < 6; round++) {
    const [before] = await transport.offsetRanges('t');
    const zombie = child({ kind: 'publish', path, topic: 't', producer: 'p', from: before?.end ?? 0, fsync: 'commit' });
    await zombie.until((messages) => messages.length > 5 + round);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
    zombie.process.kill('SIGSTOP');
    const opening = transport.openPublisher({ topic: 't', producer: 'p', previous: null });
    // Frozen inside LMDB's lock it holds everybody up; then it has to go on before anything can be said.
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), 1000);
    });
    if ((await Promise.race([opening, late])) === 'late') zombie.process.kill('SIGCONT');
    clearTimeout(timer);
    const successor = await opening;
    const { baseOffset } = await successor.publish(0, [{ key: Buffer.from('fence'), value: null, headers: [] }]);
    zombie.process.kill('SIGCONT');
    await zombie.until(() => zombie.of('failed').length > 0);
    assert.equal(zombie.of('failed')[0]?.code, 'TRANSPORT_FENCED');
    await zombie.kill();
    const [after] = await transport.offsetRanges('t');
    assert.equal(after?.end, baseOffset + 1, 'nothing landed behind the successor');
    await successor.close();
  }
});

test('the partitions of a killed member go over at once, those of a frozen one when its lease is over', {
  timeout: 120_000,
}, async (t) => {
  const { path, open, child } = setting(t);
  const transport = await open();
  await transport.ensureTopic(spec('t', 4));
  const publisher = await transport.openPublisher({ topic: 't', producer: 'p', previous: null });
  for (let partition = 0; partition < 4; partition++) {
    await publisher.publish(partition, [{ key: Buffer.from('k'), value: null, headers: [] }]);
  }
  const task = { kind: 'member', path, topic: 't', group: 'g' } as const;
  // Its lease is far longer than the test: only its death can be what hands over.
  const first = child({ ...task, leaseMs: 3_600_000 });
  await first.until(() => first.of('assigned').length === 4);
  const second = child({ ...task, leaseMs: 1500 });
  await second.until(() => second.of('assigned').length === 2);
  await first.kill();
  await second.until(() => second.of('assigned').length === 4);

  second.process.kill('SIGSTOP');
  const third = child({ ...task, leaseMs: 1500 });
  await third.until(() => third.of('assigned').length === 4);
  third.process.send(0);
  await third.until(() => third.of('committed').length === 1);
  assert.equal(third.of('committed')[0]?.code, '');
  // The frozen one wakes up and commits what it believes to hold.
  second.process.send(1);
  second.process.kill('SIGCONT');
  await second.until(() => second.of('committed').length === 1);
  assert.equal(second.of('committed')[0]?.code, 'TRANSPORT_NOT_OWNER');
  await second.until(() => second.of('revoked').length === 4);
  assert.deepEqual(await transport.committedOffsets('t', 'g'), [1, null, null, null]);
  // It joins again and gets its share.
  await second.until(() => second.of('assigned').length === 6);
});

test('a process that ends while its write waits for the lock ends, and nobody waits for it afterwards', {
  timeout: 60_000,
}, async (t) => {
  const { path, open, child } = setting(t);
  const transport = await open();
  await transport.ensureTopic(spec('t'));
  const limits = { fsyncIntervalMs: 1000, maxBytes: Number.MAX_SAFE_INTEGER, minFreeBytes: 0 };
  const store = await Store.use({ path, fsync: 'commit', ...limits, clock: systemClock, onProblem: () => {} });
  const [held, leaving] = [`${path}-held`, `${path}-leaving`];
  t.after(async () => {
    await store.release();
    for (const file of [held, leaving]) rmSync(file, { force: true });
  });
  const leaver = child({ kind: 'leave', path, topic: 't', held, leaving });
  await leaver.until((messages) => messages.some(({ kind }) => kind === 'ready'));
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  // the lock is held until the child is amid its exit
  await store.write(() => {
    writeFileSync(held, '');
    for (let waited = 0; waited < 20_000 && !existsSync(leaving); waited += 10) Atomics.wait(sleeper, 0, 0, 10);
    Atomics.wait(sleeper, 0, 0, 300);
  });
  assert.ok(existsSync(leaving), 'the child never came to its end');
  await leaver.exited;
  await settle(transport, 't');
});
