import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import { drillErrors } from './errors.ts';

const LAST_LINES = 2000;
const STOP_MS = 30_000;

export interface DrillProcessOptions {
  readonly name: string;
  /** Arguments of this very program. */
  readonly args: readonly string[];
  readonly logFile: string;
}

/** A process of ours that may be killed. */
export class DrillProcess {
  readonly #options: DrillProcessOptions;
  readonly #log: WriteStream;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #tail = '';
  #mayEnd = false;

  constructor(options: DrillProcessOptions) {
    this.#options = options;
    this.#log = createWriteStream(options.logFile, { flags: 'a' });
  }

  start(): void {
    const [command = ''] = process.argv.slice(1);
    const child = spawn(process.execPath, [...process.execArgv, command, ...this.#options.args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      // Ctrl-C in a terminal is for the drill, which then stops it in order
      detached: true,
    });
    this.#mayEnd = false;
    this.#child = child;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log.write(text);
      this.#tail = (this.#tail + text).slice(-LAST_LINES);
    });
    this.#ended = new Promise((resolve) => {
      child.once('error', () => resolve());
      child.once('close', () => resolve());
    });
  }

  /** Throws when it has ended without having been told to. */
  requireAlive(): void {
    const child = this.#child;
    if (this.#mayEnd || child === undefined || (child.exitCode === null && child.signalCode === null)) return;
    throw drillErrors.DRILL_PROCESS_ENDED({
      message: `${this.#options.name} ended with ${child.exitCode ?? child.signalCode}: ${this.#tail.trim()}`,
      where: { process: this.#options.name, log: this.#options.logFile },
    });
  }

  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  wake(): void {
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
    this.#child?.kill('SIGCONT');
    this.#child?.kill('SIGTERM');
    const late = setTimeout(() => this.#child?.kill('SIGKILL'), STOP_MS);
    await this.#ended;
    clearTimeout(late);
    await new Promise((resolve) => this.#log.end(resolve));
  }
}
