import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Connection } from 'mysql2/promise';
import { type Difference, differences, readIndex, readRedisHashes, readTable, textConnection } from './compare.ts';
import { MysyncProcess } from './mysync.ts';
import { RedisCluster } from './redis-cluster.ts';
import { randomName, sharedServer, startServer, type TestServer } from './server.ts';
import { until } from './wait.ts';

export type SinkName = 'redis' | 'elasticsearch';

export interface PipelineOptions {
  /** Default mariadb. */
  readonly source?: 'mariadb' | 'mysql';
  readonly transport: 'log' | 'kafka';
  readonly sinks: readonly SinkName[];
  /** Redis is a cluster of three masters. */
  readonly redisCluster?: boolean;
  /** Servers of the caller's own, for tests that kill them; the rest is shared (Redis is always private). */
  readonly servers?: Partial<Record<'mariadb' | 'mysql' | 'kafka' | 'elasticsearch', TestServer>>;
  /** Key columns of each table; `id` for those not named. They make up the target key, joined by commas. */
  readonly keys?: Readonly<Record<string, readonly string[]>>;
  readonly partitions?: number;
  /** Merged over the sections of the configuration, for example `{ reader: { windowMessages: 100 } }`. */
  readonly config?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Merged into the source's section. */
  readonly sourceConfig?: Readonly<Record<string, unknown>>;
  /** Merged into every sink's section. */
  readonly sinkConfig?: Readonly<Record<string, unknown>>;
}

/**
 * A source database of its own, and the means to run MySync on it and to compare its tables with their copies. Everything it started is gone when it
 * is disposed of.
 */
export class Pipeline implements AsyncDisposable {
  readonly options: PipelineOptions;
  /** Also the name of the source and of the topic. */
  readonly database: string;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly processes: MysyncProcess[] = [];
  sql!: Connection;
  folder = '';
  /** One server, or those of a cluster. */
  redis: TestServer | null = null;
  redisCluster: RedisCluster | null = null;
  elasticsearchUrl = '';
  #sqlServer!: TestServer;
  #brokers = '';

  private constructor(options: PipelineOptions) {
    this.options = options;
    this.database = randomName('e2e');
  }

  static async create(options: PipelineOptions): Promise<Pipeline> {
    const pipeline = new Pipeline(options);
    try {
      await pipeline.#start();
      return pipeline;
    } catch (error) {
      await pipeline[Symbol.asyncDispose]();
      throw error;
    }
  }

  get configFile(): string {
    return join(this.folder, 'mysync.yaml');
  }

  /** Of checkpoints in files, the default. */
  get checkpointFile(): string {
    return join(this.folder, 'checkpoints', `${this.database}.json`);
  }

  /** The section `transport` as it was made, to be changed by `configure`. */
  get transportConfig(): Readonly<Record<string, unknown>> {
    return this.#config(this.options)['transport'] as Record<string, unknown>;
  }

  /** Starts a verb of the command, for example `run`, `reader` or `writer --sink redis`. */
  start(verb: string, options: { nodeArgs?: readonly string[] } = {}): MysyncProcess {
    const process = new MysyncProcess([...verb.split(' '), '--config', this.configFile], options);
    this.processes.push(process);
    return process;
  }

  /** A connection with the pipeline's database; values come as the server's text. */
  async connect(): Promise<Connection> {
    const connection = await textConnection(this.#address());
    await connection.query(`USE \`${this.database}\``);
    this.#closers.push(() => connection.end());
    return connection;
  }

  /** The differences between the tables and one sink. */
  async differences(sink: SinkName, tables: readonly string[]): Promise<Difference[]> {
    const found: Difference[] = [];
    for (const table of tables) {
      const keyColumns = this.options.keys?.[table];
      const source = await readTable(this.sql, this.database, table, keyColumns);
      const copy =
        sink === 'redis'
          ? await this.#readRedis(`${this.database}:${table}:`)
          : await readIndex(this.elasticsearchUrl, `${this.database}-${table}`, keyColumns);
      found.push(...differences(source, copy));
    }
    return found;
  }

  /** Waits until every sink equals the tables, row by row; fails with the differences. */
  async equal(tables: readonly string[], timeoutMs = 120_000): Promise<void> {
    for (const sink of this.options.sinks) {
      let found: Difference[] = [];
      const probe = async (): Promise<boolean> => {
        found = await this.differences(sink, tables);
        return found.length === 0;
      };
      try {
        await until(`${sink} equals the source`, probe, { timeoutMs, everyMs: 200 });
      } catch (cause) {
        const logs = this.processes.map((process) => process.stderr.slice(-3000)).join('\n---\n');
        throw new Error(`${sink} differs: ${JSON.stringify(found, null, 1)}\n${logs}`, { cause });
      }
    }
  }

  /** Waits until the reader's first snapshot is over: a reader that ends before begins it anew. Checkpoints must be in files. */
  async snapshotDone(): Promise<void> {
    await until('the snapshot is done', async () => {
      const text = await readFile(this.checkpointFile, 'utf8').catch(() => '');
      const { snapshot } = JSON.parse(text.split('\n')[1] ?? '{}') as { snapshot?: { state: string } };
      return snapshot?.state === 'done';
    });
  }

  /** Stops a process in order; fails when it does not end with 0. */
  async stopped(process: MysyncProcess): Promise<void> {
    await process.logged(/"msg":"started"/);
    const exit = await process.stop();
    if (exit.code !== 0) throw new Error(`ended with ${exit.code ?? exit.signal}: ${process.stderr.slice(-3000)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.processes) if (process.running) await process.kill();
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  /** Writes the configuration again, with other settings. */
  async configure(options: PipelineOptions = this.options): Promise<void> {
    await writeFile(this.configFile, JSON.stringify(this.#config(options), null, 2));
  }

  async #start(): Promise<void> {
    const { source = 'mariadb', transport, sinks, servers } = this.options;
    this.folder = await mkdtemp(join(tmpdir(), 'mysync-e2e-'));
    this.#closers.push(() => rm(this.folder, { recursive: true, force: true }));
    this.#sqlServer = servers?.[source] ?? (await sharedServer(source));
    this.sql = await textConnection(this.#address());
    this.#closers.push(() => this.sql.end());
    await this.sql.query(`CREATE DATABASE \`${this.database}\` CHARACTER SET utf8mb4; USE \`${this.database}\``);
    this.#closers.push(async () => {
      await this.sql.query(`DROP DATABASE \`${this.database}\``).catch(() => undefined);
    });
    if (sinks.includes('redis')) {
      const redis = await startServer(this.options.redisCluster === true ? 'redis-cluster' : 'redis');
      this.redis = redis;
      this.#closers.push(() => redis.wipe());
      if (redis.name === 'redis-cluster') {
        const cluster = new RedisCluster(redis);
        this.redisCluster = cluster;
        this.#closers.push(() => cluster[Symbol.asyncDispose]());
      }
    }
    if (sinks.includes('elasticsearch')) {
      const server = servers?.elasticsearch ?? (await sharedServer('elasticsearch'));
      this.elasticsearchUrl = server.get('ELASTICSEARCH_URL');
      this.#closers.push(async () => {
        await fetch(`${this.elasticsearchUrl}/${this.database}-*`, { method: 'DELETE' }).catch(() => undefined);
      });
    }
    if (transport === 'kafka') this.#brokers = (servers?.kafka ?? (await sharedServer('kafka'))).get('KAFKA_BROKERS');
    await this.configure();
  }

  /** Of all masters. */
  async #readRedis(prefix: string): ReturnType<typeof readRedisHashes> {
    const { redis, redisCluster } = this;
    if (redisCluster === null) return await readRedisHashes(redis?.get('REDIS_URL') ?? '', prefix);
    const found = await Promise.all(
      (await redisCluster.masters()).map(({ options: { host, port } }) =>
        readRedisHashes(`redis://${host}:${port}`, prefix),
      ),
    );
    return new Map(found.flatMap((each) => [...each]));
  }

  #redisAddress(): Readonly<Record<string, unknown>> {
    const { redis, redisCluster } = this;
    if (redisCluster === null) return { url: redis?.get('REDIS_URL') };
    return { cluster: true, hosts: redisCluster.addresses.map(({ host, port }) => `${host}:${port}`) };
  }

  #address() {
    const server = this.#sqlServer;
    return {
      host: server.get('MYSQL_HOST'),
      port: Number(server.get('MYSQL_PORT')),
      user: server.get('MYSQL_USER'),
      password: server.get('MYSQL_PASSWORD'),
    };
  }

  #config(options: PipelineOptions): Record<string, unknown> {
    const { host, port, user, password } = this.#address();
    const brokers = this.#brokers.split(',');
    const replicas = Math.min(brokers.length, 3);
    const config: Record<string, Record<string, unknown>> = {
      sources: {
        [this.database]: {
          hosts: [`${host}:${port}`],
          user,
          password,
          tables: [`${this.database}.*`],
          ...options.sourceConfig,
        },
      },
      transport:
        options.transport === 'log'
          ? { kind: 'log', partitions: options.partitions ?? 4, log: { path: join(this.folder, 'log') } }
          : {
              kind: 'kafka',
              partitions: options.partitions ?? 4,
              allowWeakerTopic: replicas < 3,
              kafka: { brokers, replicationFactor: replicas, minInsyncReplicas: Math.max(1, replicas - 1) },
            },
      checkpoint: { path: join(this.folder, 'checkpoints') },
      sinks: this.#sinks(options),
      telemetry: { port: 0, logLevel: 'info' },
    };
    for (const [section, values] of Object.entries(options.config ?? {})) {
      config[section] = { ...config[section], ...values };
    }
    return config;
  }

  #sinks(options: PipelineOptions): Record<string, unknown> {
    const rules = Object.entries({ ...options.keys, '*': ['id'] }).map(([table, columns]) => ({
      match: [`${this.database}.${table}`],
      target: columns.map((column) => `{column:${column}}`).join(','),
    }));
    const sinks: Record<string, unknown> = {};
    for (const sink of options.sinks) {
      const common = options.sinkConfig ?? {};
      sinks[sink] =
        sink === 'redis'
          ? {
              kind: 'redis',
              ...this.#redisAddress(),
              tables: rules.map(({ match, target }) => ({ match, as: 'hash', key: `{database}:{table}:${target}` })),
              ...common,
            }
          : {
              kind: 'elasticsearch',
              nodes: [this.elasticsearchUrl],
              tables: rules.map(({ match, target }) => ({
                match,
                index: '{database}-{table}',
                id: target,
                sets: 'text',
              })),
              ...common,
            };
    }
    return sinks;
  }
}
