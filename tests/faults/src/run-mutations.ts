/** Breaks MySync in a copy of the built tree, one mutation at a time, and runs the suite of that copy against it, or the test that is named. */
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestServer } from '@mysync/harness';
import { MUTATIONS, type SeedMutation, type TestMutation } from './mutations.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MOST_SEEDS = 10;

export interface Caught {
  readonly mutation: string;
  /** The seed or the test that caught it; null: nothing did. */
  readonly by: string | null;
  /** What the seed or the test said. */
  readonly complaint: string;
}

/** `only`: mutations whose name holds this text; '' for all. */
export async function runMutations(
  only: string,
  rate: number,
  say: (text: string) => void,
): Promise<readonly Caught[]> {
  const results: Caught[] = [];
  const chosen = MUTATIONS.filter(({ name }) => name.includes(only));
  for (const mutation of chosen) {
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
      const result = 'test' in mutation ? await runTest(folder, mutation) : await runSeeds(folder, mutation, rate);
      results.push(result);
      const how = result.by === null ? 'NOT CAUGHT' : `caught by ${result.by}`;
      say(`${mutation.name}: ${how}${result.complaint === '' ? '' : ` (${result.complaint})`}`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  // the server that tests share
  if (chosen.some((mutation) => 'test' in mutation)) await new TestServer('redis', { instance: 'shared' }).wipe();
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

async function runSeeds(folder: string, { name, transport, focus }: SeedMutation, rate: number): Promise<Caught> {
  const file = join(folder, 'results.jsonl');
  const seeds = `1..${MOST_SEEDS}`;
  const options = { seeds, transport, focus, results: file, rate: String(rate) };
  const flags = Object.entries(options).flatMap(([flag, value]) => [`--${flag}`, value]);
  const { printed } = await node(folder, ['tests/faults/dist/main.js', ...flags, '--stop-at-failure']);
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  // a copy that does not even run proves nothing
  if (lines.length === 0) throw new Error(`${name}: the copy ran no seed: ${printed.slice(-2000)}`);
  const last = JSON.parse(lines.at(-1) ?? '') as { seed: number; complaints: readonly string[] };
  const by = last.complaints.length > 0 ? `seed ${last.seed} of '${focus}', ${transport}` : null;
  return { mutation: name, by, complaint: last.complaints[0]?.slice(-200) ?? '' };
}

async function runTest(folder: string, { name, test }: TestMutation): Promise<Caught> {
  const { printed } = await node(folder, ['--test', '--test-reporter=tap', test]);
  if (!/^# tests [1-9]/m.test(printed)) throw new Error(`${name}: the copy ran no test: ${printed.slice(-2000)}`);
  // only what a test itself says: a file that cannot be loaded fails, too
  const failed = [...printed.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, title]) => title ?? '');
  const [title] = failed.filter((text) => !text.endsWith('.test.js'));
  return { mutation: name, by: title === undefined ? null : `a test of ${test}`, complaint: title ?? '' };
}

async function node(folder: string, args: readonly string[]): Promise<{ readonly printed: string }> {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, MYSYNC_SERVICES: process.env['MYSYNC_SERVICES'] ?? join(ROOT, '.cache/servers') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { printed };
}
