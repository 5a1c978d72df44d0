import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MysyncProcess, type SqlAddress, startServer, type TestServer } from '@mysync/harness';
import type { DemoOptions } from './options.ts';

export const DATABASE = 'shop';

/** Everything the demo started, in order; closed in reverse. */
export class Setup implements AsyncDisposable {
  readonly #closers: (() => Promise<void>)[] = [];
  sql: SqlAddress = { host: '', port: 0, user: '', password: '' };
  redisUrl = '';
  elasticsearchUrl = '';
  kafkaBrokers = '';
  folder = '';

  async start(options: DemoOptions, say: (text: string) => void): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'mysync-demo-'));
    this.#closers.push(() => rm(this.folder, { recursive: true, force: true }));
    say('starting MariaDB (the first time it is downloaded)');
    const mariadb = await this.#server('mariadb');
    this.sql = {
      host: mariadb.get('MYSQL_HOST'),
      port: Number(mariadb.get('MYSQL_PORT')),
      user: mariadb.get('MYSQL_USER'),
      password: mariadb.get('MYSQL_PASSWORD'),
    };
    if (options.sinks.includes('redis')) {
      say('starting Redis');
      this.redisUrl = (await this.#server('redis')).get('REDIS_URL');
    }
    if (options.sinks.includes('elasticsearch')) {
      say('starting Elasticsearch');
      this.elasticsearchUrl = (await this.#server('elasticsearch')).get('ELASTICSEARCH_URL');
    }
    if (options.transport === 'kafka') {
      say('starting Kafka');
      this.kafkaBrokers = (await this.#server('kafka')).get('KAFKA_BROKERS');
    }
  }

  /** Writes the configuration and starts `mysync run` with it. */
  async mysync(options: DemoOptions): Promise<MysyncProcess> {
    const file = join(this.folder, 'mysync.yaml');
    await writeFile(file, this.#config(options));
    const process = new MysyncProcess(['run', '--config', file], { env: { SHOP_PASSWORD: this.sql.password } });
    this.#closers.push(async () => {
      await process.stop();
    });
    return process;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  async #server(name: 'mariadb' | 'redis' | 'elasticsearch' | 'kafka'): Promise<TestServer> {
    const server = await startServer(name);
    this.#closers.push(() => server.wipe());
    return server;
  }

  #config(options: DemoOptions): string {
    const transport =
      options.transport === 'log'
        ? { kind: 'log', log: { path: join(this.folder, 'log') } }
        : {
            kind: 'kafka',
            allowWeakerTopic: true,
            kafka: { brokers: this.kafkaBrokers.split(','), replicationFactor: 1, minInsyncReplicas: 1 },
          };
    const sinks: Record<string, unknown> = {};
    if (options.sinks.includes('redis')) {
      const tables = [
        { match: [`${DATABASE}.order_items`], as: 'hash', key: '{table}:{order_id},{line}' },
        { match: [`${DATABASE}.*`], as: 'hash', key: '{table}:{key}' },
      ];
      sinks['redis'] = { kind: 'redis', url: this.redisUrl, tables };
    }
    if (options.sinks.includes('elasticsearch')) {
      const tables = [
        { match: [`${DATABASE}.order_items`], index: '{table}', id: '{order_id},{line}', sets: 'text' },
        { match: [`${DATABASE}.*`], index: '{table}', sets: 'text' },
      ];
      sinks['elasticsearch'] = { kind: 'elasticsearch', nodes: [this.elasticsearchUrl], tables };
    }
    // YAML is a superset of JSON
    return JSON.stringify(
      {
        sources: {
          [DATABASE]: {
            hosts: [`${this.sql.host}:${this.sql.port}`],
            user: this.sql.user,
            password: { env: 'SHOP_PASSWORD' },
            tables: [`${DATABASE}.*`],
            start: 'snapshot',
          },
        },
        transport: { ...transport, partitions: 4 },
        checkpoint: { kind: 'file', path: join(this.folder, 'checkpoints') },
        sinks,
        telemetry: { enabled: true, port: 0, logLevel: 'info' },
      },
      null,
      2,
    );
  }
}
