import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { drillErrors } from './errors.ts';

const LAST_BYTES = 2000;
const STOP_MS = 30_000;

export interface DrillProcessOptions {
  readonly name: string;
  /** Arguments of this very program. It must end in order when its standard input does. */
  readonly args: readonly string[];
  readonly logFile: string;
}

/**
 * A process of ours that may be killed.
 *
 * It does not outlive us, however we end: a pipe of ours is its standard input, which ends with us, and its log is a file of its own. A frozen one is woken by a helper that waits for
 * the end of such a pipe, too.
 */
export class DrillProcess {
  readonly #options: DrillProcessOptions;
  #child: ChildProcess | undefined;
  #waker: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #mayEnd = false;

  constructor(options: DrillProcessOptions) {
    this.#options = options;
  }

  start(): void {
    const [command = ''] = process.argv.slice(1);
    const log = openSync(this.#options.logFile, 'a');
    try {
      const child = spawn(process.execPath, [...process.execArgv, command, ...this.#options.args], {
        stdio: ['pipe', 'ignore', log],
        // Ctrl-C in a terminal is for the drill, which then stops it in order
        detached: true,
      });
      this.#mayEnd = false;
      this.#child = child;
      this.#ended = ended(child);
    } finally {
      closeSync(log);
    }
  }

  /** Throws when it has ended without having been told to. */
  requireAlive(): void {
    const child = this.#child;
    if (this.#mayEnd || child === undefined || (child.exitCode === null && child.signalCode === null)) return;
    const { name, logFile } = this.#options;
    throw drillErrors.DRILL_PROCESS_ENDED({
      message: `${name} ended with ${child.exitCode ?? child.signalCode}: ${lastOf(logFile)}`,
      where: { process: name, log: logFile },
    });
  }

  freeze(): void {
    const child = this.#child;
    if (child?.pid === undefined) return;
    this.#waker = spawn('sh', ['-c', `read -r _; kill -CONT ${child.pid}`], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    child.kill('SIGSTOP');
  }

  wake(): void {
    this.#waker?.stdin?.end();
    this.#waker = undefined;
    this.#child?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#mayEnd = true;
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }

  /** In order; killed when that takes too long. */
  async stop(): Promise<void> {
    this.#mayEnd = true;
    this.wake();
    this.#child?.kill('SIGTERM');
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), STOP_MS);
    await this.#ended;
    clearTimeout(late);
  }
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
}

function lastOf(file: string): string {
  const log = openSync(file, 'r');
  try {
    const { size } = fstatSync(log);
    const bytes = Buffer.alloc(Math.min(size, LAST_BYTES));
    const text = bytes.toString('utf8', 0, readSync(log, bytes, 0, bytes.length, size - bytes.length)).trim();
    // what it ended with, without the lines of its log
    const said = text.split('\n').filter((line) => !line.startsWith('{'));
    return said.length === 0 ? text : said.join('\n');
  } finally {
    closeSync(log);
  }
}
