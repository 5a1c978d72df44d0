import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { stopAtExit } from './at-exit.ts';
import { until } from './wait.ts';

const COMMAND = fileURLToPath(new URL('../../../services/mysync/bin/mysync.js', import.meta.url));

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A running `mysync` command, with what it printed. Stopped by its own handle; it does not outlive us. */
export class MysyncProcess {
  readonly #child: ChildProcess;
  readonly exited: Promise<Exit>;
  stdout = '';
  stderr = '';

  constructor(
    args: readonly string[],
    options: { env?: Readonly<Record<string, string>>; nodeArgs?: readonly string[] } = {},
  ) {
    this.#child = spawn(process.execPath, ['--enable-source-maps', ...(options.nodeArgs ?? []), COMMAND, ...args], {
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // a group of its own: Ctrl-C in a terminal is for whoever started us, who then stops us in order
      detached: true,
    });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => resolve({ code, signal }));
    });
    const forget = stopAtExit(() => this.signal('SIGKILL'));
    this.#child.once('error', forget).once('close', forget);
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('not started');
    return this.#child.pid;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** SIGTERM, and waits for the end. */
  async stop(): Promise<Exit> {
    this.signal('SIGTERM');
    return await this.exited;
  }

  /** kill -9, and waits for the end. */
  async kill(): Promise<Exit> {
    this.signal('SIGKILL');
    return await this.exited;
  }

  /** Waits until it has ended by itself; throws when it goes on. */
  async ended(timeoutMs = 60_000): Promise<Exit> {
    await until('the process has ended', () => !this.running, { timeoutMs });
    return await this.exited;
  }

  /** Waits until the pattern was printed on standard error. */
  async logged(pattern: RegExp, timeoutMs = 60_000): Promise<void> {
    const probe = (): boolean => {
      if (pattern.test(this.stderr)) return true;
      if (!this.running) throw new Error(`ended without printing ${pattern}: ${this.stderr.slice(-4000)}`);
      return false;
    };
    await until(`${pattern} on standard error`, probe, { timeoutMs }).catch((cause: unknown) => {
      throw new Error(`${pattern} was not printed, the last was: ${this.stderr.slice(-4000)}`, { cause });
    });
  }

  /** Where its telemetry listens; NaN before it says so. */
  get telemetryPort(): number {
    return Number(/"port":(\d+)/.exec(this.stderr)?.[1]);
  }

  /** What it tells Prometheus. */
  async metrics(): Promise<string> {
    return await (await fetch(`http://127.0.0.1:${this.telemetryPort}/metrics`)).text();
  }

  /** The values of one metric, over all its labels; none before it has any. */
  async values(metric: string): Promise<number[]> {
    const lines = (await this.metrics()).matchAll(new RegExp(`^${metric}(?:\\{.*\\})? (\\S+)$`, 'gm'));
    return [...lines].map(([, value]) => Number(value));
  }

  async total(metric: string): Promise<number> {
    return (await this.values(metric)).reduce((sum, value) => sum + value, 0);
  }

  /** Waits until it has published or applied something since it started: heartbeats count. */
  async atWork(timeoutMs = 60_000): Promise<void> {
    const probe = async (): Promise<boolean> => {
      const published = await this.total('mysync_reader_published_messages_total');
      return published + (await this.total('mysync_writer_applied_messages_total')) > 0;
    };
    await until('it is at work', probe, { timeoutMs }).catch((cause: unknown) => {
      throw new Error(`it did not begin to work: ${this.stderr.slice(-4000)}`, { cause });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.running) await this.kill();
  }
}

/** Runs a `mysync` command to its end; one that goes on for longer than `timeoutMs` is killed. */
export async function runMysync(
  args: readonly string[],
  options: { env?: Readonly<Record<string, string>>; timeoutMs?: number } = {},
): Promise<Exit & { stdout: string; stderr: string }> {
  const child = new MysyncProcess(args, options);
  const deadline = setTimeout(() => child.signal('SIGKILL'), options.timeoutMs ?? 120_000);
  const exit = await child.exited;
  clearTimeout(deadline);
  return { ...exit, stdout: child.stdout, stderr: child.stderr };
}
