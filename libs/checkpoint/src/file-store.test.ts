import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, utimes, watch, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { type Clock, isMysyncError, systemClock } from '@mysync/core';
import { checkpointStoreConformance, sampleCheckpoint } from './conformance.ts';
import { FileCheckpointStore, readCheckpointFile } from './file-store.ts';
import type { Checkpoint } from './port.ts';

const root = await mkdtemp(join(tmpdir(), 'mysync-checkpoint-'));
after(() => rm(root, { recursive: true, force: true }));
let places = 0;

async function place(): Promise<string> {
  const folder = join(root, String(++places));
  await mkdir(folder);
  return join(folder, 'shop.checkpoint');
}

checkpointStoreConformance('file', async () => {
  const path = await place();
  return {
    open: () => FileCheckpointStore.open({ path }),
    damage: async (kind) => {
      if (kind === 'truncated') await truncate(path, 100);
      else
        await writeFile(path, kind === 'foreign' ? '{"position":{"file":"binlog.000001"}}\n' : Buffer.alloc(300, 0xa5));
    },
    dispose: () => rm(join(path, '..'), { recursive: true, force: true }),
  };
});

/** Large enough that a save takes several writes. */
function large(transactionCounter: number, epoch = 1): Checkpoint {
  const [partition] = sampleCheckpoint().partitions;
  assert.ok(partition);
  return sampleCheckpoint({
    epoch,
    transactionCounter,
    topic: { name: 'shop', id: 'x', partitions: 3000 },
    partitions: Array.from({ length: 3000 }, () => partition),
  });
}

/** A process that takes the lock and saves for ever, a line for each save; its last line is the code of what stopped it. */
function startSaver(path: string): { child: ChildProcess; lines: AsyncIterator<string> } {
  const script = `
    import { FileCheckpointStore } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)};
    const store = await FileCheckpointStore.open({ path: ${JSON.stringify(path)} });
    const first = await store.load();
    console.log(first.transactionCounter);
    try {
      for (let n = first.transactionCounter + 1; ; n++) {
        await store.save({ ...first, transactionCounter: n }, first.epoch);
        console.log(n);
      }
    } catch (error) {
      console.log(error.code);
    }
    await store.close();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  assert.ok(child.stdout);
  return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
}

async function nextNumber(lines: AsyncIterator<string>): Promise<number> {
  const { value } = await lines.next();
  return Number(value);
}

async function lastLine(lines: AsyncIterator<string>): Promise<string> {
  let last = '';
  for (let line = await lines.next(); !line.done; line = await lines.next()) last = line.value;
  return last;
}

/** Resolves as soon as some process creates the text of its next save. */
async function newTextBegun(path: string): Promise<void> {
  for await (const { filename } of watch(join(path, '..'))) {
    if (filename?.endsWith('.tmp')) return;
  }
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

test('kill -9 in the middle of saves always leaves a whole checkpoint, not older than the last one confirmed', async (context) => {
  const path = await place();
  const store = await FileCheckpointStore.open({ path });
  await store.save(large(0), null);
  await store.close();
  let caughtWriting = 0;
  let round = 0;
  for (; round < 8 || (caughtWriting < 3 && round < 30); round++) {
    const { child, lines } = startSaver(path);
    let confirmed = 0;
    for (let n = 0; n <= round % 4; n++) confirmed = await nextNumber(lines);
    await newTextBegun(path);
    // Somewhere within the write, the sync or the rename.
    if (round % 2 === 1) await systemClock.sleep(Math.random() * 4);
    await kill(child);
    confirmed = Math.max(confirmed, Number(await lastLine(lines)));
    const found = await readCheckpointFile(path);
    assert.ok(found && found.transactionCounter >= confirmed, `${found?.transactionCounter} after ${confirmed}`);
    if ((await readdir(join(path, '..'))).some((file) => file.endsWith('.tmp'))) caughtWriting++;
    const next = await FileCheckpointStore.open({ path });
    assert.deepEqual(await next.load(), found);
    const files = await readdir(join(path, '..'));
    assert.deepEqual(files.sort(), ['shop.checkpoint', 'shop.checkpoint.lock']);
    await next.close();
  }
  context.diagnostic(`${round} kills, ${caughtWriting} of them while the new text was being written`);
  assert.ok(caughtWriting > 0);
});

test('what an owner was writing when it died is removed by the next one, other files are left alone', async () => {
  const path = await place();
  await writeFile(`${path}.0123456789abcdef.tmp`, '{"format":');
  await writeFile(`${path}.backup.tmp`, 'mine');
  await (await FileCheckpointStore.open({ path })).close();
  assert.deepEqual(await readdir(join(path, '..')), ['shop.checkpoint.backup.tmp']);
});

test('the lock of a living process is respected, also while it is frozen, and that of a dead one is taken over', async () => {
  const path = await place();
  const store = await FileCheckpointStore.open({ path });
  await store.save(large(0), null);
  const locked = { code: 'CHECKPOINT_LOCKED' };
  await assert.rejects(FileCheckpointStore.open({ path }), locked);
  await store.close();
  const { child, lines } = startSaver(path);
  await nextNumber(lines);
  await assert.rejects(FileCheckpointStore.open({ path }), (error: unknown) => {
    assert.ok(isMysyncError(error, 'CHECKPOINT_LOCKED'));
    assert.match(error.message, new RegExp(`process ${child.pid} on `));
    return true;
  });
  child.kill('SIGSTOP');
  await assert.rejects(FileCheckpointStore.open({ path }), locked);
  await kill(child);
  await (await FileCheckpointStore.open({ path })).close();
});

async function changeOwner(path: string, changes: Record<string, unknown>): Promise<void> {
  const owner = JSON.parse(await readFile(`${path}.lock`, 'utf8'));
  await writeFile(`${path}.lock`, `${JSON.stringify({ ...owner, ...changes })}\n`);
}

/** Sleeping takes no time; what happens meanwhile is given. */
function clockWith(meanwhile: () => Promise<void>): Clock & { slept: number[] } {
  const slept: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    slept.push(ms);
    await meanwhile();
  };
  return { ...systemClock, slept, sleep };
}

test("a later process with the dead owner's number does not count as the owner", async () => {
  const path = await place();
  const first = await FileCheckpointStore.open({ path });
  await changeOwner(path, { startTime: '1' });
  const clock = clockWith(async () => undefined);
  const second = await FileCheckpointStore.open({ path, clock });
  assert.deepEqual(clock.slept, []);
  await second.close();
  await first.close();
});

test('an owner on another machine is watched: taken over only if it shows no sign of life', async () => {
  for (const changes of [{ host: 'elsewhere' }, { bootId: 'another' }, { pidNamespace: 'pid:[1]' }]) {
    const path = await place();
    const owner = await FileCheckpointStore.open({ path });
    await changeOwner(path, changes);
    const alive = clockWith(() => utimes(`${path}.lock`, 1, 1));
    await assert.rejects(FileCheckpointStore.open({ path, clock: alive, leaseMs: 777 }), { code: 'CHECKPOINT_LOCKED' });
    assert.deepEqual(alive.slept, [777]);
    const silent = clockWith(async () => undefined);
    const next = await FileCheckpointStore.open({ path, clock: silent });
    assert.equal(silent.slept.length, 1);
    await next.save(sampleCheckpoint(), null);
    await assert.rejects(owner.save(sampleCheckpoint(), 1), { code: 'CHECKPOINT_FENCED' });
    await owner.close();
    await assert.rejects(
      FileCheckpointStore.open({ path }),
      { code: 'CHECKPOINT_LOCKED' },
      'the other lock is left alone',
    );
    await next.close();
  }
});

test('a lock that cannot be read as one is watched, too', async () => {
  const path = await place();
  await writeFile(`${path}.lock`, 'garbage');
  const clock = clockWith(async () => undefined);
  const store = await FileCheckpointStore.open({ path, clock });
  assert.equal(clock.slept.length, 1);
  await store.close();
});

test('an abort ends the watching', async () => {
  const path = await place();
  await writeFile(`${path}.lock`, 'garbage');
  const signal = AbortSignal.abort(new Error('stop'));
  await assert.rejects(FileCheckpointStore.open({ path, signal }), /stop/);
  assert.deepEqual(await readdir(join(path, '..')), ['shop.checkpoint.lock']);
});

test('a predecessor frozen in the middle of saves cannot put an older checkpoint back', async () => {
  for (let round = 0; round < 8; round++) {
    const path = await place();
    const store = await FileCheckpointStore.open({ path });
    await store.save(large(0), null);
    await store.close();
    const { child, lines } = startSaver(path);
    await nextNumber(lines);
    await newTextBegun(path);
    if (round % 2 === 1) await systemClock.sleep(Math.random() * 4);
    child.kill('SIGSTOP');
    await changeOwner(path, { host: 'elsewhere' });
    const successor = await FileCheckpointStore.open({ path, clock: clockWith(async () => undefined) });
    const found = await successor.load();
    const mine = large((found?.transactionCounter ?? 0) + 1000, 2);
    await successor.save(mine, 1);
    child.kill('SIGCONT');
    assert.equal(await lastLine(lines), 'CHECKPOINT_FENCED');
    assert.deepEqual(await successor.load(), mine);
    await successor.close();
  }
});

test('a full disk is retriable and leaves the old checkpoint', async (context) => {
  const path = await place();
  const folder = join(path, '..');
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder]).status !== 0) {
    context.skip('mounting a small file system needs root');
    return;
  }
  try {
    const store = await FileCheckpointStore.open({ path });
    await store.save(sampleCheckpoint(), null);
    await assert.rejects(store.save(large(1), 1), (error: unknown) => {
      assert.ok(isMysyncError(error, 'CHECKPOINT_DISK_FULL'), String(error));
      assert.equal(error.retriable, true);
      assert.match(error.remedy, /Free some space/);
      return true;
    });
    assert.deepEqual(await store.load(), sampleCheckpoint());
    assert.deepEqual((await readdir(folder)).sort(), ['shop.checkpoint', 'shop.checkpoint.lock']);
    assert.equal(spawnSync('mount', ['-o', 'remount,size=4m', folder]).status, 0);
    await store.save(large(1), 1);
    assert.equal((await store.load())?.transactionCounter, 1);
    await store.close();
  } finally {
    spawnSync('umount', [folder]);
  }
});

test('missing folders are made; a path that cannot be is refused', async () => {
  const path = await place();
  const deep = join(path, '..', 'a', 'b', 'c.checkpoint');
  const store = await FileCheckpointStore.open({ path: deep });
  await store.save(sampleCheckpoint(), null);
  await store.close();
  assert.deepEqual(await readCheckpointFile(deep), sampleCheckpoint());
  await assert.rejects(FileCheckpointStore.open({ path: join(deep, 'x') }), { code: 'CHECKPOINT_UNWRITABLE' });
  await assert.rejects(readCheckpointFile(join(path, '..', 'a')), { code: 'CHECKPOINT_INVALID' });
});

test('what could not be loaded again is not saved', async () => {
  const path = await place();
  const store = await FileCheckpointStore.open({ path });
  await assert.rejects(store.save(sampleCheckpoint({ epoch: Number.NaN }), null), { code: 'INTERNAL' });
  assert.equal(await store.load(), null);
  await store.close();
});
