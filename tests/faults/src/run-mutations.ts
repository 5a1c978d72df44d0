/** Breaks MySync in a copy of the built tree, one mutation at a time, and runs the suite of that copy against it, or the test that is named. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stopAtExit } from '@mysync/harness';
import { textOf } from './findings.ts';
import type { Mutation, SeedMutation, TestMutation } from './mutations.ts';
import type { SeedResult } from './run-seed.ts';
import type { TestEnd } from './test-reporter.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MOST_SEEDS = 10;
const run = promisify(execFile);

/** `suite error`: no seed, and no test, came to a verdict. */
export type MutationResult = {
  readonly mutation: string;
  /** What the suite itself could not do on the way: none of it counts as a catch. */
  readonly suiteErrors: readonly string[];
} & (
  | { readonly outcome: 'caught'; readonly by: string; readonly complaint: string }
  | { readonly outcome: 'not caught' | 'suite error' }
);

export interface MutationRunOptions {
  readonly mutations: readonly Mutation[];
  /** Rows per second of the load. */
  readonly rate: number;
  readonly say: (text: string) => void;
}

export class MutationRun {
  readonly #options: MutationRunOptions;
  /** The suite of a copy, while seeds run. */
  #suite: ChildProcess | null = null;

  constructor(options: MutationRunOptions) {
    this.#options = options;
  }

  /** Once the signal aborts: ends after the seed that runs. Gives the mutations that came to an end. */
  async play(signal: AbortSignal): Promise<readonly MutationResult[]> {
    const { mutations, say } = this.#options;
    const results: MutationResult[] = [];
    const pass = (): void => void this.#suite?.kill('SIGTERM');
    signal.addEventListener('abort', pass);
    for (const mutation of mutations) {
      if (signal.aborted) break;
      const result = await this.#try(mutation);
      if (signal.aborted && result.outcome !== 'caught') break;
      results.push(result);
      say(textOfResult(result));
    }
    signal.removeEventListener('abort', pass);
    return results;
  }

  /** The seed that runs is given up; `play` ends when nothing of it is left. */
  stopAtOnce(): void {
    // its second signal, whichever the first was
    this.#suite?.kill('SIGTERM');
    this.#suite?.kill('SIGINT');
  }

  async #try(mutation: Mutation): Promise<MutationResult> {
    const folder = await mkdtemp(join(tmpdir(), 'mysync-mutation-'));
    try {
      await copyTree(folder);
      await breakIt(folder, mutation);
      return 'test' in mutation ? await runTest(folder, mutation) : await this.#runSeeds(folder, mutation);
    } catch (error) {
      return { mutation: mutation.name, outcome: 'suite error', suiteErrors: [textOf(error)] };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #runSeeds(folder: string, { name, transport, focus }: SeedMutation): Promise<MutationResult> {
    const file = join(folder, 'results.jsonl');
    const seeds = `1..${MOST_SEEDS}`;
    const options = { seeds, transport, focus, results: file, rate: String(this.#options.rate) };
    const flags = Object.entries(options).flatMap(([flag, value]) => [`--${flag}`, value]);
    const suite = node(folder, ['tests/faults/dist/main.js', ...flags, '--stop-at-failure']);
    this.#suite = suite;
    // two signals: it stops at once
    const forget = stopAtExit(() => this.stopAtOnce());
    const printed = await printedBy(suite);
    forget();
    this.#suite = null;
    const results = await readLines<SeedResult>(file);
    // a copy that does not even run proves nothing
    if (results.length === 0) throw new Error(`the copy ran no seed: ${printed.slice(-2000)}`);
    const suiteErrors = results.flatMap((result) => result.suiteErrors.map((error) => `seed ${result.seed}: ${error}`));
    const caught = results.find(({ outcome }) => outcome === 'failed');
    if (caught !== undefined) {
      const by = `seed ${caught.seed} of '${focus}', ${transport}`;
      return { mutation: name, outcome: 'caught', by, complaint: caught.complaints[0]?.slice(-200) ?? '', suiteErrors };
    }
    const judged = results.some(({ outcome }) => outcome === 'passed');
    return { mutation: name, outcome: judged ? 'not caught' : 'suite error', suiteErrors };
  }
}

function textOfResult(result: MutationResult): string {
  const own = result.suiteErrors.map((error) => `  suite error, no catch: ${error}`);
  return [`${result.mutation}: ${howOf(result)}`, ...own].join('\n');
}

function howOf(result: MutationResult): string {
  switch (result.outcome) {
    case 'caught':
      return `caught by ${result.by} (${result.complaint})`;
    case 'not caught':
      return 'NOT CAUGHT';
    case 'suite error':
      return 'NOTHING SHOWN: the suite itself failed';
  }
}

/** What is broken is still JavaScript. */
async function breakIt(folder: string, { edits }: Mutation): Promise<void> {
  for (const { file, find, replace } of edits) {
    const path = join(folder, file);
    const text = await readFile(path, 'utf8');
    if (text.split(find).length !== 2) throw new Error(`'${find}' is not in ${file} once`);
    await writeFile(
      path,
      text.replace(find, () => replace),
    );
    await run(process.execPath, ['--check', path]);
  }
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

/** Only an assertion that does not hold is a catch. */
async function runTest(folder: string, { name, test }: TestMutation): Promise<MutationResult> {
  const file = join(folder, 'tests.jsonl');
  const reporter = [`--test-reporter=./tests/faults/dist/test-reporter.js`, `--test-reporter-destination=${file}`];
  const printed = await printedBy(node(folder, ['--test', ...reporter, test]));
  const ends = await readLines<TestEnd>(file);
  if (ends.length === 0) throw new Error(`the copy ran no test: ${printed.slice(-2000)}`);
  const suiteErrors = ends.filter(({ end }) => end === 'error').map((each) => `'${each.name}' ended by an error`);
  const found = ends.find(({ end }) => end === 'found');
  if (found !== undefined) {
    return { mutation: name, outcome: 'caught', by: `a test of ${test}`, complaint: found.name, suiteErrors };
  }
  return { mutation: name, outcome: suiteErrors.length > 0 ? 'suite error' : 'not caught', suiteErrors };
}

/** None where there is no such file. */
async function readLines<T>(file: string): Promise<readonly T[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as T);
}

/** A group of its own: Ctrl-C in a terminal is for us, who then stop it in order. */
function node(folder: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, MYSYNC_SERVICES: process.env['MYSYNC_SERVICES'] ?? join(ROOT, '.cache/servers') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
}

/** Waits for its end. */
async function printedBy(child: ChildProcess): Promise<string> {
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return printed;
}
