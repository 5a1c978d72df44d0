import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Abilities } from './setting.ts';

const TOOLS = fileURLToPath(new URL('../../servers/tools.sh', import.meta.url));

export interface Found {
  readonly can: Abilities;
  readonly clockLibrary: string;
}

/** What this machine lets the suite do; what is missing is said once, and its faults are left out. */
export async function findAbilities(say: (text: string) => void): Promise<Found> {
  const disk = canMount();
  if (!disk) say('no file system can be mounted here: no seed fills a disk');
  let clockLibrary = '';
  try {
    const { stdout } = await promisify(execFile)('bash', [TOOLS, 'faketime']);
    clockLibrary = /FAKETIME=(\S+)/.exec(stdout)?.[1] ?? '';
  } catch (error) {
    say(`libfaketime could not be unpacked: no seed sets a clock (${String(error).slice(0, 200)})`);
  }
  return { can: { disk, clock: clockLibrary !== '' }, clockLibrary };
}

export function canMount(): boolean {
  if (process.getuid?.() !== 0) return false;
  const folder = mkdtempSync(join(tmpdir(), 'mysync-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'pipe' });
    execFileSync('umount', [folder], { stdio: 'pipe' });
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(folder);
  }
}
