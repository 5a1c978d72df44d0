/** Whatever ends a run, nothing that it started is left: looked at through /proc, by what only its processes know. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '@mysync/harness';
import type { SeedResult } from './run-seed.ts';

const FIXTURE = fileURLToPath(new URL('leavings.fixture.js', import.meta.url));
const SCRIPTS = fileURLToPath(new URL('../../servers/', import.meta.url));
const SERVICES = process.env['MYSYNC_SERVICES'] ?? fileURLToPath(new URL('../../../.cache/servers', import.meta.url));
/** Its writers, its two readers, the database, Redis, and itself. */
const PROCESSES = 7;

let mark: string;

before(async () => {
  mark = await mkdtemp(join(tmpdir(), 'mysync-leavings-'));
  // servers of its own, with the programs that are there
  for (const name of ['mariadb', 'redis']) {
    execFileSync('bash', [`${SCRIPTS}${name}.sh`, 'install'], { stdio: 'ignore' });
    await mkdir(join(mark, 'servers', name), { recursive: true });
    await symlink(join(SERVICES, name, 'prefix'), join(mark, 'servers', name, 'prefix'));
  }
  await symlink(join(SERVICES, 'tools'), join(mark, 'servers/tools'));
});

// what a test that failed has found is not left either
after(async () => {
  for (const line of await processes()) process.kill(Number.parseInt(line, 10), 'SIGKILL');
  for (const disk of await disks()) execFileSync('umount', ['-l', disk]);
  await rm(mark, { recursive: true, force: true });
});

/** Those whose surroundings, command line or folder name our folder. */
async function processes(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const texts = [
      command,
      await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''),
      await readlink(`/proc/${pid}/cwd`).catch(() => ''),
    ];
    if (texts.some((text) => text.includes(mark))) found.push(`${pid} ${command.replaceAll('\0', ' ')}`);
  }
  return found;
}

async function disks(): Promise<readonly string[]> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  const points = mounts.split('\n').map((line) => line.split(' ')[1] ?? '');
  return points.filter((point) => point.startsWith(mark));
}

/** It has struck, and everything runs. */
async function struck(): Promise<{ readonly child: ChildProcess; readonly printed: () => string }> {
  await rm(join(mark, 'seeds'), { recursive: true, force: true });
  const child = spawn(process.execPath, ['--enable-source-maps', FIXTURE, join(mark, 'seeds')], {
    env: { ...process.env, MYSYNC_SERVICES: join(mark, 'servers') },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let text = '';
  const printed = (): string => text;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  }
  await until('the fault strikes', () => {
    if (child.exitCode !== null) throw new Error(text);
    return text.includes('struck\n');
  });
  assert.ok((await processes()).length >= PROCESSES, text);
  return { child, printed };
}

async function nothingIsLeft(): Promise<void> {
  // a killed process is gone a moment later
  await until('all have ended', async () => (await processes()).length === 0, { timeoutMs: 10_000 }).catch(async () => {
    assert.deepEqual(await processes(), []);
  });
  assert.deepEqual(await disks(), []);
  for (const name of ['mariadb', 'redis']) {
    const instances = join(mark, 'servers', name, 'instances');
    assert.deepEqual(existsSync(instances) ? await readdir(instances) : [], []);
  }
}

async function results(): Promise<readonly SeedResult[]> {
  const text = await readFile(join(mark, 'seeds/results.jsonl'), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SeedResult);
}

test('an error of the suite itself: told as such, the next seed runs, nothing is left', async () => {
  const { child } = await struck();
  child.stdin?.write('throw\n');
  const [code] = await once(child, 'exit');
  await nothingIsLeft();
  assert.equal(code, 2);
  const [first, second] = await results();
  assert.equal(first?.outcome, 'suite error');
  assert.deepEqual(first.suiteErrors, ['it cannot be struck']);
  assert.deepEqual(first.complaints, []);
  assert.equal(second?.outcome, 'passed', JSON.stringify(second));
});

test('an error that nobody caught', async () => {
  const { child, printed } = await struck();
  child.stdin?.write('uncaught\n');
  const [code] = await once(child, 'exit');
  await nothingIsLeft();
  assert.equal(code, 1);
  assert.match(printed(), /nobody catches this/);
});

for (const [first, second] of [
  ['SIGINT', 'SIGINT'],
  ['SIGTERM', 'SIGINT'],
] as const) {
  test(`${first}, and ${second}: it stops at once`, async () => {
    const { child, printed } = await struck();
    child.kill(first);
    await until('it was told', () => printed().includes('stopping after this seed'));
    assert.equal(child.exitCode, null);
    child.kill(second);
    const [code] = await once(child, 'exit');
    await nothingIsLeft();
    assert.equal(code, 130);
  });
}

test('SIGTERM: it stops after the seed', async () => {
  const { child, printed } = await struck();
  child.kill('SIGTERM');
  await until('it was told', () => printed().includes('stopping after this seed'));
  child.stdin?.write('throw\n');
  const [code] = await once(child, 'exit');
  await nothingIsLeft();
  assert.equal(code, 2);
  assert.equal((await results()).length, 1);
});
