import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '@mysync/harness';

/**
 * Takes all of a file system but `keepFree` bytes, although others write there too; nothing where no more than that is left. Gives what gives it back: each
 * its own part, so that one may strike while another lasts.
 */
export async function fillUp(folder: string, keepFree: number): Promise<() => Promise<void>> {
  const balloon = join(folder, `balloon-${randomUUID()}`);
  await until('the disk is full', async () => {
    const { bavail, bsize } = await statfs(folder);
    const bytes = bavail * bsize - keepFree;
    if (bytes > 0) execFileSync('fallocate', ['-l', String(bytes), balloon], { stdio: 'pipe' });
    return true;
  });
  return () => rm(balloon, { force: true });
}
