// What the entry scripts share. Plain JavaScript without dependencies: it runs before anything is installed or built.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

const MIN_NODE = [20, 19];

export function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1])) return;
  console.error(`MySync needs Node ${MIN_NODE.join('.')} or newer; this is ${process.versions.node}.`);
  process.exit(2);
}

/** Runs a command, all output to standard error (standard output is for results); ends the process with its status when it fails. */
export function run(what, command, args, options = {}) {
  const start = performance.now();
  console.error(`> ${what}`);
  const result = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2], ...options });
  if (result.status !== 0) {
    console.error(`${what} failed${result.error === undefined ? '' : `: ${result.error.message}`}`);
    process.exit(result.status ?? 1);
  }
  return (performance.now() - start) / 1000;
}

/** Installs the packages of the lock file when they are missing or older than it. */
export function installPackages() {
  checkNode();
  const marker = join(ROOT, 'node_modules/.package-lock.json');
  const lock = join(ROOT, 'package-lock.json');
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(lock).mtimeMs) return;
  run('npm ci', 'npm', ['ci', '--no-audit', '--no-fund']);
}

export function bin(name) {
  return join(ROOT, 'node_modules/.bin', name);
}

export function build() {
  run('build: the module that transcribes rows (WebAssembly)', process.execPath, [
    join(ROOT, 'libs/source-mysql/assembly/build.mjs'),
  ]);
  run('build', bin('tsc'), ['-b']);
}

/** Everything that can be said of the code without running it. */
export function checkCode() {
  run('lint and format', bin('biome'), ['ci', '--error-on-warnings', '.']);
  build();
  run('unused code', bin('knip'), ['--no-config-hints']);
}

export function servers(verb, ...args) {
  run(`servers: ${[verb, ...args].join(' ')}`, 'bash', [join(ROOT, 'tests/servers/all.sh'), verb, ...args]);
}

/** Folders of the workspaces, relative to the root. */
export function workspaces() {
  const { workspaces: patterns } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return patterns.flatMap((pattern) => {
    if (!pattern.endsWith('/*')) return [pattern];
    const parent = pattern.slice(0, -2);
    return readdirSync(join(ROOT, parent)).map((name) => `${parent}/${name}`);
  });
}

/**
 * Goes on as a compiled program, in this very process: a signal from the terminal then comes once, to the program itself.
 * Its arguments are ours.
 */
export async function become(file) {
  process.setSourceMapsEnabled(true);
  await import(join(ROOT, file));
}
