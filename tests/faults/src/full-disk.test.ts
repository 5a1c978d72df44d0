import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rmdir, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { canMount } from './abilities.ts';
import { fillUp } from './full-disk.ts';

const MB = 2 ** 20;

test('a disk is filled, also one that is full already', {
  skip: !canMount() && 'no file system can be mounted here',
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mysync-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder], { stdio: 'pipe' });
  try {
    const free = async (): Promise<number> => {
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize;
    };
    const first = await fillUp(folder, 2 * MB);
    assert.equal(await free(), 2 * MB);
    // as much is left already; and more than that is asked for than there is
    const second = await fillUp(folder, 2 * MB);
    const third = await fillUp(folder, 4 * MB);
    assert.equal(await free(), 2 * MB);
    const fourth = await fillUp(folder, 0);
    assert.equal(await free(), 0);
    const fifth = await fillUp(folder, 0);
    assert.equal(await free(), 0);
    await first();
    assert.equal(await free(), 6 * MB);
    for (const giveBack of [second, third, fourth, fifth]) await giveBack();
    assert.deepEqual(await readdir(folder), []);
  } finally {
    execFileSync('umount', [folder], { stdio: 'pipe' });
    await rmdir(folder);
  }
});
