/** The two ends of a measured process that is not the command: one message back, then it waits to be ended. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Usage, usageOf } from './meter.ts';

export interface ChildRun<T> {
  readonly answer: T;
  readonly usage: Usage;
  readonly wallSeconds: number;
}

/** Starts children/NAME, waits for what it tells, and measures it from its start until then. */
export async function runChild<T>(
  name: string,
  input: unknown,
  options: { readonly profile?: string; readonly profileName?: string; readonly signal?: AbortSignal } = {},
): Promise<ChildRun<T>> {
  const { profile = '', profileName = name } = options;
  const execArgv =
    profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`, `--cpu-prof-name=${profileName}.cpuprofile`];
  const startedAt = performance.now();
  const child = fork(fileURLToPath(new URL(`./children/${name}.js`, import.meta.url)), [JSON.stringify(input)], {
    execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  try {
    const answer = await new Promise<T>((resolve, reject) => {
      child.once('message', (message) => resolve(message as T));
      child.once('error', reject);
      child.once('exit', (code, signal) => reject(new Error(`${name} ended with ${code ?? signal}`)));
    });
    const wallSeconds = (performance.now() - startedAt) / 1000;
    return { answer, usage: usageOf(child.pid ?? 0), wallSeconds };
  } finally {
    // Its end of the line is closed, so it ends by itself (and writes its profile).
    if (child.connected) child.disconnect();
    await ended;
  }
}

/** In the child: the input, and how to answer. */
export function childInput<T>(): T {
  return JSON.parse(process.argv[2] ?? '{}') as T;
}

/** Tells the result and lives on until the parent has measured. */
export async function childAnswer(answer: unknown): Promise<void> {
  const parted = new Promise<void>((resolve) => process.once('disconnect', resolve));
  process.send?.(answer);
  await parted;
}
