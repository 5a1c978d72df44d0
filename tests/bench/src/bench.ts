import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServerName, startServer, type TestServer } from '@mysync/harness';
import { loadTable, logPosition, type ServerAddress } from './load.ts';
import { mysyncConfig, type SinkChoice, type TransportChoice } from './mysync-config.ts';
import { measureMysync } from './mysync-run.ts';
import type { BenchOptions } from './options.ts';
import { type MessageBytes, type Ratio, type Result, ratioOf, type Skipped } from './result.ts';
import { DATABASE } from './table.ts';

export type TransportKind = 'log' | 'kafka';

/** A topic that holds every row. */
export interface Filled {
  readonly transport: TransportChoice;
  readonly partitions: number;
  readonly topic: string;
  readonly checkpoints: string;
  readonly measured: Result;
}

/**
 * What the suites share: servers of its own, started when first asked for; the loaded table; topics that hold it. All gone
 * when it is disposed of.
 */
export class Bench implements AsyncDisposable {
  readonly options: BenchOptions;
  readonly results: Result[] = [];
  readonly ratios: Ratio[] = [];
  readonly skipped: Skipped[] = [];
  messageBytes: MessageBytes | undefined;
  readonly #say: (text: string) => void;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #servers = new Map<ServerName, Promise<TestServer>>();
  readonly #fills = new Map<string, Promise<Filled>>();
  #folder: Promise<string> | null = null;
  #loaded: Promise<string> | null = null;

  constructor(options: BenchOptions, say: (text: string) => void) {
    this.options = options;
    this.#say = say;
  }

  say(text: string): void {
    this.#say(text);
  }

  wants(name: string): boolean {
    return name.includes(this.options.only);
  }

  add(result: Result): Result {
    this.results.push(result);
    this.say(`${result.name}: ${Math.round(result.rows / result.wallSeconds)} rows/s`);
    return result;
  }

  compare(result: Result, baseline: Result, goal?: number): void {
    this.ratios.push(ratioOf(result, baseline, goal));
  }

  skip(name: string, why: string): void {
    this.skipped.push({ name, why });
    this.say(`${name} is skipped: ${why}`);
  }

  async folder(name: string): Promise<string> {
    this.#folder ??= mkdtemp(join(tmpdir(), 'mysync-bench-')).then((folder) => {
      this.#closers.push(() => rm(folder, { recursive: true, force: true }));
      return folder;
    });
    const folder = join(await this.#folder, name);
    await mkdir(folder, { recursive: true });
    return folder;
  }

  /** One server of a kind for the whole run. */
  async server(name: ServerName): Promise<TestServer> {
    let server = this.#servers.get(name);
    if (server === undefined) {
      server = this.freshServer(name);
      this.#servers.set(name, server);
    }
    return await server;
  }

  /** A server that nobody else uses; the caller may wipe it early. */
  async freshServer(name: ServerName, env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
    this.say(`starting ${name}`);
    const server = await startServer(name, { env });
    this.#closers.push(() => server.wipe());
    return server;
  }

  /** Of the server whose log is read. */
  async address(): Promise<ServerAddress> {
    const server = await this.server(this.options.server);
    return {
      host: server.get('MYSQL_HOST'),
      port: Number(server.get('MYSQL_PORT')),
      user: server.get('MYSQL_USER'),
      password: server.get('MYSQL_PASSWORD'),
    };
  }

  /** Where the binlog begins that holds the table's rows, as FILE:OFFSET. */
  async loaded(): Promise<string> {
    this.#loaded ??= this.#load();
    return await this.#loaded;
  }

  async configure(
    name: string,
    choice: {
      readonly transport: TransportChoice;
      readonly partitions: number;
      readonly topic: string;
      readonly checkpoints: string;
      readonly start: string;
      readonly sink: SinkChoice | null;
    },
  ): Promise<string> {
    const file = join(await this.folder(name), 'mysync.yaml');
    await writeFile(
      file,
      JSON.stringify(
        mysyncConfig({ ...choice, sinkName: name, server: await this.server(this.options.server) }),
        null,
        2,
      ),
    );
    return file;
  }

  async transport(kind: TransportKind, name: string): Promise<TransportChoice> {
    if (kind === 'log') return { kind, path: join(await this.folder(name), 'log') };
    return { kind, brokers: (await this.server('kafka')).get('KAFKA_BROKERS') };
  }

  /** Runs `mysync reader` over all rows into a topic, once for each kind. */
  async filled(kind: TransportKind, partitions: number): Promise<Filled> {
    const name = `publish-${kind}-${partitions}`;
    let filled = this.#fills.get(name);
    if (filled === undefined) {
      filled = this.#fill(name, kind, partitions);
      this.#fills.set(name, filled);
    }
    return await filled;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) {
      await close().catch((error: unknown) => this.say(`cleaning up failed: ${String(error)}`));
    }
  }

  async #fill(name: string, kind: TransportKind, partitions: number): Promise<Filled> {
    const start = await this.loaded();
    const transport = await this.transport(kind, name);
    const checkpoints = join(await this.folder(name), 'checkpoints');
    const topic = { transport, partitions, topic: name, checkpoints };
    const configFile = await this.configure(name, { ...topic, start, sink: null });
    this.say(`${name}: reading the binlog`);
    const { rows, profile } = this.options;
    const measured = await measureMysync({
      name,
      verb: ['reader'],
      configFile,
      rows,
      counter: 'mysync_reader_published_messages_total',
      profile,
    });
    return { ...topic, measured };
  }

  async #load(): Promise<string> {
    const { server, rows, transactionRows } = this.options;
    const address = await this.address();
    const { file, offset } = await logPosition(address, server);
    this.say(`loading ${rows} rows, ${transactionRows} in a transaction`);
    await loadTable(address, { database: DATABASE, rows, transactionRows });
    return `${file}:${offset}`;
  }
}
