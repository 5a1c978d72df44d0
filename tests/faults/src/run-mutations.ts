/** Breaks MySync in a copy of the built tree, one mutation at a time, and runs the suite of that copy against it. */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MUTATIONS, type Mutation } from './mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MOST_SEEDS = 10;

export interface Caught {
  readonly mutation: string;
  readonly transport: string;
  readonly focus: string;
  /** The seed that caught it; null: none did. */
  readonly seed: number | null;
  /** What it said. */
  readonly complaint: string;
}

/** `only`: mutations whose name holds this text; '' for all. */
export async function runMutations(
  only: string,
  rate: number,
  say: (text: string) => void,
): Promise<readonly Caught[]> {
  const results: Caught[] = [];
  for (const mutation of MUTATIONS.filter(({ name }) => name.includes(only))) {
    const folder = await mkdtemp(join(tmpdir(), 'mysync-mutation-'));
    try {
      await copyTree(folder);
      for (const { file, find, replace } of mutation.edits) {
        const path = join(folder, file);
        const text = await readFile(path, 'utf8');
        if (text.split(find).length !== 2) throw new Error(`${mutation.name}: '${find}' is not in ${file} once`);
        await writeFile(
          path,
          text.replace(find, () => replace),
        );
      }
      const result = await runCopy(folder, mutation, rate);
      results.push(result);
      const how = result.seed === null ? 'NOT CAUGHT' : `caught by seed ${result.seed}`;
      say(`${mutation.name}: ${how}${result.complaint === '' ? '' : ` (${result.complaint})`}`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  return results;
}

/** Our packages are copied, those of others linked. */
async function copyTree(to: string): Promise<void> {
  const folders = ['tests/harness', 'tests/faults'];
  for (const parent of ['libs', 'services']) {
    for (const name of await readdir(join(ROOT, parent))) folders.push(`${parent}/${name}`);
  }
  for (const folder of folders) {
    for (const part of ['dist', 'bin', 'package.json']) {
      await cp(join(ROOT, folder, part), join(to, folder, part), { recursive: true }).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      });
    }
  }
  await cp(join(ROOT, 'tests/servers'), join(to, 'tests/servers'), { recursive: true });
  await cp(join(ROOT, 'package.json'), join(to, 'package.json'));
  await mkdir(join(to, 'node_modules/@mysync'), { recursive: true });
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name !== '@mysync') await symlink(join(ROOT, 'node_modules', name), join(to, 'node_modules', name));
  }
  for (const folder of folders) {
    const { name } = JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8')) as { name: string };
    await symlink(join(to, folder), join(to, 'node_modules', name));
  }
}

async function runCopy(folder: string, { name, transport, focus }: Mutation, rate: number): Promise<Caught> {
  const file = join(folder, 'results.jsonl');
  const args = [
    '--seeds',
    `1..${MOST_SEEDS}`,
    '--transport',
    transport,
    '--focus',
    focus,
    '--results',
    file,
    '--rate',
    String(rate),
  ];
  const child = spawn(process.execPath, [join(folder, 'tests/faults/dist/main.js'), ...args, '--stop-at-failure'], {
    env: { ...process.env, MYSYNC_SERVICES: process.env['MYSYNC_SERVICES'] ?? join(ROOT, '.cache/servers') },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let printed = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  const last = JSON.parse(lines.at(-1) ?? '{"complaints":[]}') as { seed?: number; complaints: readonly string[] };
  // a copy that does not even run proves nothing
  if (lines.length === 0) throw new Error(`${name}: the copy ran no seed: ${printed.slice(-2000)}`);
  const seed = last.complaints.length > 0 ? (last.seed ?? null) : null;
  return { mutation: name, transport, focus, seed, complaint: last.complaints[0]?.slice(-200) ?? '' };
}
