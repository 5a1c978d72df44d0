import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import type { OutgoingRecord, Publisher, TopicSpec } from '@mysync/transport';
import { open } from 'lmdb';
import { LogTransport, type LogTransportOptions } from './index.ts';

const undoing = new WeakMap<TestContext, (() => unknown)[]>();

/** What was done last is undone first. */
function undo(t: TestContext, action: () => unknown): void {
  let actions = undoing.get(t);
  if (actions === undefined) {
    actions = [];
    undoing.set(t, actions);
    const all = actions;
    t.after(async () => {
      for (const each of all.reverse()) await each();
    });
  }
  actions.push(action);
}

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
  undo(t, () => rmSync(path, { recursive: true, force: true }));
  return path;
}

const topic: TopicSpec = {
  name: 't',
  partitions: 1,
  compacted: true,
  deleteRetentionMs: 7 * 86_400_000,
  minCompactionLagMs: 3_600_000,
  retentionMs: -1,
  allowWeaker: false,
};

function batch(first: number, count: number, bytes: number): OutgoingRecord[] {
  return Array.from({ length: count }, (_, index) => ({
    key: Buffer.from(String(first + index)),
    value: Buffer.alloc(bytes, 'v'),
    headers: [],
  }));
}

async function opened(
  t: TestContext,
  options: LogTransportOptions,
): Promise<{ transport: LogTransport; publisher: Publisher }> {
  const transport = await LogTransport.open({ maintenance: false, ...options });
  undo(t, () => transport.close());
  await transport.ensureTopic(topic);
  return { transport, publisher: await transport.openPublisher({ topic: 't', producer: 'p', previous: null }) };
}

async function count(transport: LogTransport): Promise<number> {
  const [range] = await transport.offsetRanges('t');
  let next = 0;
  for await (const { records } of transport.read({ topic: 't', partition: 0, from: 0, until: range?.end ?? 0 })) {
    for (const { offset, key } of records) {
      assert.equal(offset, next++);
      assert.equal(Buffer.from(key).toString(), String(offset));
    }
  }
  assert.equal(next, range?.end);
  return next;
}

async function refusedWith(code: string, call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(isMysyncError(error, code), String(error));
    assert.notEqual(error.remedy, '');
    return true;
  });
}

/** Publishes until the log says it is full; every batch is there or not at all, and nothing lands behind the gap. */
async function fill(publisher: Publisher, from: number, bytes: number): Promise<number> {
  let next = from;
  for (;;) {
    const first = next;
    const answers = await Promise.allSettled(
      [0, 1, 2, 3, 4].map((each) => publisher.publish(0, batch(first + each * 100, 100, bytes))),
    );
    const codes = answers.map((each) => (each.status === 'fulfilled' ? '' : (each.reason as { code: string }).code));
    const stored = codes.filter((code) => code === '').length;
    assert.ok(
      codes.slice(0, stored).every((code) => code === ''),
      `nothing behind the first refusal: ${codes}`,
    );
    next += stored * 100;
    if (stored === 5) continue;
    assert.equal(codes[stored], 'TRANSPORT_DISK_FULL');
    assert.ok(codes.slice(stored).every((code) => code === 'TRANSPORT_DISK_FULL' || code === 'TRANSPORT_RENUMBER'));
    return next;
  }
}

for (const minFreeBytes of [0, 4 * 2 ** 20]) {
  const how = minFreeBytes === 0 ? 'to the last byte' : 'down to what is kept free';
  test(`a full disk, ${how}: told, nothing half stored, and it goes on when there is space`, async (t) => {
    const path = directory(t);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', path], { stdio: 'pipe' });
    } catch {
      t.skip('mounting a small disk needs root');
      return;
    }
    undo(t, () => execFileSync('umount', [path]));
    const ballast = join(path, 'ballast');
    writeFileSync(ballast, Buffer.alloc(8 * 2 ** 20));
    const { transport, publisher } = await opened(t, { path: join(path, 'log'), minFreeBytes });
    const stored = await fill(publisher, 0, 1000);
    assert.ok(stored > 0);
    const { bavail, bsize } = statfsSync(path);
    assert.ok(bavail * bsize >= minFreeBytes / 2, 'what is kept free is free');
    assert.equal(await count(transport), stored);
    // The caller may try again at any time; nothing changes while the disk is full.
    await publisher.renumber().catch((error: unknown) => assert.ok(isMysyncError(error, 'TRANSPORT_DISK_FULL')));
    await assert.rejects(publisher.publish(0, batch(stored, 5000, 1000)));
    assert.equal(await count(transport), stored);
    const findings = await transport.check(topic);
    assert.ok(findings.some(({ code, level }) => code === 'LOG_DISK' && (minFreeBytes === 0 || level !== 'ok')));
    unlinkSync(ballast);
    await publisher.renumber();
    const more = await fill(publisher, stored, 1000);
    assert.ok(more > stored);
    assert.equal(await count(transport), more);
  });
}

test('a log that is opened on a full disk is told so, by a process that lives', async (t) => {
  const path = directory(t);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', path], { stdio: 'pipe' });
  } catch {
    t.skip('mounting a small disk needs root');
    return;
  }
  undo(t, () => execFileSync('umount', [path]));
  const ballast = join(path, 'ballast');
  const fillUp = (): void => {
    const { bavail, bsize } = statfsSync(path);
    execFileSync('fallocate', ['-l', String(bavail * bsize), ballast], { stdio: 'pipe' });
  };
  // in a process of its own: without the look beforehand it is killed by SIGBUS
  const openIt = `import { LogTransport } from '${new URL('index.js', import.meta.url).href}';
    try {
      const transport = await LogTransport.open({ path: ${JSON.stringify(join(path, 'log'))}, maintenance: false });
      await transport.close();
      process.stdout.write('opened');
    } catch (error) {
      process.stdout.write(error.code);
    }`;
  const run = (): string => execFileSync(process.execPath, ['--input-type=module', '-e', openIt]).toString();
  mkdirSync(join(path, 'log'));
  fillUp();
  assert.equal(run(), 'TRANSPORT_DISK_FULL');
  unlinkSync(ballast);
  assert.equal(run(), 'opened');
  // every page of the lock file has a place on the disk
  const { size, blocks } = statSync(join(path, 'log/lock.mdb'));
  assert.ok(blocks * 512 >= size, `${blocks} blocks of ${size} bytes`);
  fillUp();
  assert.equal(run(), 'TRANSPORT_DISK_FULL');
  unlinkSync(ballast);
  assert.equal(run(), 'opened');
});

test('maxBytes is a limit that compaction and retention make room under', async (t) => {
  const { transport, publisher } = await opened(t, { path: directory(t), maxBytes: 2 ** 20 });
  const stored = await fill(publisher, 0, 1000);
  assert.ok(stored >= 900 && stored < 1048, `${stored} records of 1 KB fit into 1 MiB`);
  await transport.deleteBefore('t', 0, 500);
  await publisher.renumber();
  assert.ok((await fill(publisher, stored, 1000)) >= stored + 400);
});

test('a damaged batch is told with its place, and never read', async (t) => {
  const path = directory(t);
  const first = await LogTransport.open({ path, maintenance: false });
  await first.ensureTopic(topic);
  const publisher = await first.openPublisher({ topic: 't', producer: 'p', previous: null });
  await publisher.publish(0, batch(0, 10, 5000));
  await publisher.publish(0, [{ key: Buffer.from('10'), value: Buffer.from('needle'.repeat(2000)), headers: [] }]);
  await first.close();
  const file = join(path, 'data.mdb');
  const bytes = readFileSync(file);
  const at = bytes.indexOf('needleneedle');
  assert.ok(at > 0);
  bytes[at + 100] = 0;
  writeFileSync(file, bytes);
  const transport = await LogTransport.open({ path, maintenance: false });
  undo(t, () => transport.close());
  await refusedWith('LOG_CORRUPT', count(transport));
  // What lies before it can still be read.
  for await (const { records } of transport.read({ topic: 't', partition: 0, from: 0, until: 10 })) {
    assert.equal(records.length, 10);
  }
});

test('a foreign file, a cut one and a garbled one are refused', async (t) => {
  const foreign = directory(t);
  writeFileSync(join(foreign, 'data.mdb'), 'this is not a log\n'.repeat(10_000));
  await refusedWith('LOG_CORRUPT', LogTransport.open({ path: foreign }));

  const path = directory(t);
  const first = await LogTransport.open({ path, maintenance: false });
  await first.ensureTopic(topic);
  const publisher = await first.openPublisher({ topic: 't', producer: 'p', previous: null });
  for (let index = 0; index < 100; index++) await publisher.publish(0, batch(index * 10, 10, 5000));
  await first.close();
  const file = join(path, 'data.mdb');
  const whole = readFileSync(file);
  for (const size of [100, 8192, Math.floor(statSync(file).size / 2 / 4096) * 4096]) {
    truncateSync(file, size);
    await refusedWith('LOG_CORRUPT', LogTransport.open({ path }));
    writeFileSync(file, whole);
  }
  writeFileSync(file, Buffer.concat([Buffer.alloc(8192, 0x5a), whole.subarray(8192)]));
  await refusedWith('LOG_CORRUPT', LogTransport.open({ path }));
  writeFileSync(file, whole);
  const again = await LogTransport.open({ path, maintenance: false });
  assert.equal(await count(again), 1000);
  await again.close();
});

test('a log of another format, a path that is none, and options that differ are refused', async (t) => {
  const path = directory(t);
  const first = await LogTransport.open({ path, maintenance: false });
  await refusedWith('LOG_OPTIONS_DIFFER', LogTransport.open({ path, fsync: 'interval' }));
  await first.close();
  const root = open<Buffer, string>({ path, noSubdir: false, maxDbs: 4, overlappingSync: false, encoding: 'binary' });
  await root.openDB<Buffer, string>('meta', { encoding: 'binary' }).put('format', Buffer.from('99'));
  await root.close();
  await refusedWith('LOG_VERSION', LogTransport.open({ path }));

  const file = join(path, 'plain-file');
  writeFileSync(file, 'x');
  await refusedWith('LOG_PATH', LogTransport.open({ path: join(file, 'log') }));
});
