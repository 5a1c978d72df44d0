import { type ExecFileException, execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { stopAtExit } from './at-exit.ts';

const WIPED_AT_EXIT_MS = 60_000;
const SCRIPTS = fileURLToPath(new URL('../../servers/', import.meta.url));

export type ServerName = 'mariadb' | 'mysql' | 'redis' | 'redis-cluster' | 'kafka' | 'elasticsearch';

export interface ServerOptions {
  /**
   * Name of the instance. Omitted: a random one that belongs to the caller alone. `shared` is one that all test files
   * use with random names of their own; the test run wipes it at the end.
   */
  readonly instance?: string;
  /** Server options, given after `--`. */
  readonly args?: readonly string[];
  /** Settings of the script, for example `{ NODES: '3' }`. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A real server of tests/servers, started on demand and stopped by its own pid. One under a random name does not outlive us. */
export class TestServer {
  readonly name: ServerName;
  readonly instance: string;
  readonly #options: ServerOptions;
  #forget: (() => void) | null = null;
  /** What the script's `up` printed. */
  vars: Readonly<Record<string, string>> = {};

  constructor(name: ServerName, options: ServerOptions = {}) {
    this.name = name;
    this.instance = options.instance ?? `t${randomBytes(5).toString('hex')}`;
    this.#options = options;
  }

  /** Nobody else can know of it. */
  get isOurs(): boolean {
    return this.#options.instance === undefined;
  }

  /** Starts what is missing and waits until it answers. */
  async up(args: readonly string[] = this.#options.args ?? []): Promise<this> {
    if (this.isOurs) this.#forget ??= stopAtExit(() => this.#wipeNow());
    const out = await this.#up(args);
    const pairs = out
      .trim()
      .split(/\s+/)
      .map((pair) => {
        const at = pair.indexOf('=');
        return [pair.slice(0, at), pair.slice(at + 1)] as const;
      });
    this.vars = Object.fromEntries(pairs);
    return this;
  }

  /** An orderly stop; the data stay. `part` narrows it to one node, for example `n2`. */
  async down(part?: string): Promise<void> {
    await this.#script('down', [], part);
  }

  /** kill -9; the data stay. */
  async kill(part?: string): Promise<void> {
    await this.#script('kill', [], part);
  }

  /** Starts one node again, with the options of the others. */
  async upPart(part: string): Promise<void> {
    await this.#up(this.#options.args ?? [], part);
  }

  /** SIGSTOP, and SIGCONT. */
  async pause(part?: string): Promise<void> {
    await this.#script('pause', [], part);
  }

  async resume(part?: string): Promise<void> {
    await this.#script('resume', [], part);
  }

  /** Runs the server's own client, as its administrator: `sql` of the databases, `cli` of Redis. */
  async client(verb: 'sql' | 'cli', args: readonly string[]): Promise<string> {
    return await this.#script(verb, ['--', ...args]);
  }

  /** kill -9, and the data are gone. */
  async wipe(): Promise<void> {
    await this.#script('wipe', []);
    this.#forget?.();
    this.#forget = null;
  }

  /** A command line that does it, for whoever runs commands by a shell. */
  commandLine(verb: 'kill' | 'up'): string {
    const set = Object.entries({ ...this.#options.env, INSTANCE: this.instance }).map(
      ([key, value]) => `${key}='${value}'`,
    );
    return [...set, 'bash', `'${this.#file}'`, verb, '>/dev/null'].join(' ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.instance !== 'shared') await this.wipe();
  }

  /** One of the printed values; throws when the server did not print it. */
  get(key: string): string {
    const value = this.vars[key];
    if (value === undefined) throw new Error(`${this.name} printed no ${key}: ${JSON.stringify(this.vars)}`);
    return value;
  }

  async #up(args: readonly string[], part?: string): Promise<string> {
    return await this.#script('up', args.length > 0 ? ['--', ...args] : [], part);
  }

  async #script(verb: string, args: readonly string[], part?: string): Promise<string> {
    const env = this.#env(part);
    return await new Promise<string>((resolve, reject) => {
      const done = (error: ExecFileException | null, stdout: string, stderr: string): void => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${this.name}.sh ${verb} failed: ${stderr.trim()}`, { cause: error }));
      };
      execFile('bash', [this.#file, verb, ...args], { env, maxBuffer: 64 << 20 }, done);
    });
  }

  #wipeNow(): void {
    execFileSync('bash', [this.#file, 'wipe'], { env: this.#env(), stdio: 'ignore', timeout: WIPED_AT_EXIT_MS });
  }

  get #file(): string {
    return `${SCRIPTS}${this.name}.sh`;
  }

  #env(part?: string): NodeJS.ProcessEnv {
    return {
      ...process.env,
      ...this.#options.env,
      INSTANCE: this.instance,
      ...(part === undefined ? {} : { PART: part }),
    };
  }
}

/** Starts a server; `await using server = await startServer('redis')` wipes it at the end of the block. What has started of one that fails to is gone. */
export async function startServer(name: ServerName, options: ServerOptions = {}): Promise<TestServer> {
  const server = new TestServer(name, options);
  try {
    return await server.up();
  } catch (error) {
    // tried once more at our exit
    if (server.isOurs) await server.wipe().catch(() => undefined);
    throw error;
  }
}

/** The instance that all test files share: use random database, topic, key and index names on it. */
export async function sharedServer(name: ServerName, env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  return await startServer(name, { instance: 'shared', env });
}

/** A short random name for databases, topics, indices and the like. */
export function randomName(prefix: string): string {
  return `${prefix}_${randomBytes(4).toString('hex')}`;
}
