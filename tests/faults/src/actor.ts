import { readFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MysyncProcess } from '@mysync/harness';
import { untilMysync } from './finding.ts';
import type { SinkName } from './setting.ts';

export type Role = 'run' | 'reader' | 'writer';

export interface ActorOptions {
  readonly name: string;
  readonly role: Role;
  readonly sink: SinkName | null;
  readonly configFile: string;
  readonly logFolder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Told when it ended although nobody ended it. True: it is started again, as a supervisor does. */
  readonly onDeath: (what: string, printed: string) => boolean;
  /** The system did not let us start it. */
  readonly onNoStart: (error: Error) => void;
}

/** After which a supervisor starts again what ended with an error. */
const RESTART_MS = 300;

/** One place for a `mysync` process: it is killed, frozen and started again as the schedule says. */
export class Actor {
  readonly #options: ActorOptions;
  #process: MysyncProcess | null = null;
  #wanted = false;
  #retired = false;
  #written = Promise.resolve();
  #peakMb = 0;
  starts = 0;

  constructor(options: ActorOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  get role(): Role {
    return this.#options.role;
  }

  get running(): boolean {
    return this.#process?.running ?? false;
  }

  /** What it printed since it was started last. */
  get printed(): string {
    return this.#process?.stderr ?? '';
  }

  get pid(): number | null {
    return this.running ? (this.#process?.pid ?? null) : null;
  }

  /** Most memory that any process of this place ever had, in MB, as far as it was looked at. */
  get peakMb(): number {
    return this.#peakMb;
  }

  /** Looks how much memory the running process had at most: the system keeps count, so a look right before its end is enough. */
  notePeak(): void {
    if (this.pid === null) return;
    try {
      const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
      this.#peakMb = Math.max(this.#peakMb, Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024));
    } catch {
      // it has ended, which we are about to be told
    }
  }

  /** Nothing happens when it runs: another fault's end has started it. */
  start(): void {
    if (this.running || this.#retired) return;
    const { role, sink, configFile, env, onDeath, onNoStart, name } = this.#options;
    const verb = sink === null || role !== 'writer' ? [role] : [role, '--sink', sink];
    const process = new MysyncProcess([...verb, '--config', configFile], { env });
    this.#process = process;
    this.#wanted = true;
    this.starts += 1;
    const start = this.starts;
    process.exited.then(
      (exit) => {
        this.#keep(start, process);
        if (this.#wanted && this.#process === process) {
          const how = `${name} ended by itself with ${exit.code ?? exit.signal}`;
          if (onDeath(`${how}: ${process.stderr.slice(-1500)}`, exit.code === 1 ? process.stderr : '')) this.#again();
        }
      },
      (error: unknown) => onNoStart(new Error(`${name} could not be started`, { cause: error })),
    );
  }

  #again(): void {
    setTimeout(() => {
      if (this.#wanted) this.start();
    }, RESTART_MS);
  }

  /** Its end is expected: it was told to halt. */
  mayEnd(): void {
    this.#wanted = false;
  }

  /** Another takes its place for good: its end is expected, and the end of an earlier fault does not start it again. */
  retire(): void {
    this.#wanted = false;
    this.#retired = true;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.signal(signal);
  }

  async kill(): Promise<void> {
    this.#wanted = false;
    this.notePeak();
    if (this.running) await this.#process?.kill();
  }

  /** In order; gives what was wrong with that. A process that is just starting is given the time to. */
  async stop(timeoutMs = 40_000): Promise<string | null> {
    const process = this.#process;
    this.#wanted = false;
    if (process === null || !process.running) return null;
    try {
      await process.logged(/"msg":"started"/, timeoutMs);
      this.notePeak();
      process.signal('SIGTERM');
      const exit = await process.ended(timeoutMs);
      return exit.code === 0
        ? null
        : `${this.name} stopped with ${exit.code ?? exit.signal}: ${process.stderr.slice(-1500)}`;
    } catch (error) {
      await process.kill();
      return `${this.name} did not stop in order: ${String(error).slice(0, 1500)}`;
    }
  }

  async logged(pattern: RegExp, timeoutMs: number): Promise<void> {
    await untilMysync(`${this.name} prints ${pattern}`, () => pattern.test(this.printed), { timeoutMs });
  }

  /** Logs are on disk. */
  async settled(): Promise<void> {
    // one that could not be started was told of
    await this.#process?.exited.catch(() => undefined);
    await this.#written;
  }

  #keep(start: number, process: MysyncProcess): void {
    const file = join(this.#options.logFolder, `${this.name}-${start}.log`);
    this.#written = this.#written.then(() => appendFile(file, process.stdout + process.stderr)).catch(() => undefined);
  }
}
