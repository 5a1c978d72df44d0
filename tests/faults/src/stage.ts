/**
 * The servers that the seeds of one run share, each behind a proxy that MySync goes through; load and checker go to them
 * directly. A server is started when a seed first needs it, and put in order again before the next seed.
 */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RedisCluster, startServer, type TestServer } from '@mysync/harness';
import { ElasticBackup } from './elastic-backup.ts';
import { FaultProxy } from './fault-proxy.ts';
import type { SourceName, StoreName } from './setting.ts';
import { tidy } from './tidy.ts';

export const BROKERS = ['n1', 'n2', 'n3'] as const;
export type Broker = (typeof BROKERS)[number];
/** Of the Redis Cluster. */
const NODES = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'] as const;
type NodeWay = `node ${string}`;
type StageServer = SourceName | StoreName | 'kafka';

const SERVICES = process.env['MYSYNC_SERVICES'] ?? fileURLToPath(new URL('../../../.cache/servers', import.meta.url));

export class Stage {
  readonly #servers = new Map<StageServer, TestServer>();
  #cluster: RedisCluster | null = null;
  /** Where Elasticsearch puts its snapshots. */
  #snapshots: string | null = null;
  /** By server, by broker, or by node of the Redis Cluster. */
  readonly proxies = new Map<StageServer | Broker | NodeWay, FaultProxy>();

  async need(name: StageServer): Promise<TestServer> {
    const found = this.#servers.get(name);
    if (found !== undefined) return found;
    const server = await this.#startAny(name);
    this.#servers.set(name, server);
    return server;
  }

  /** The nodes of the Redis Cluster. */
  cluster(): RedisCluster {
    this.#cluster ??= new RedisCluster(this.server('redis-cluster'));
    return this.#cluster;
  }

  server(name: StageServer): TestServer {
    const found = this.#servers.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  }

  proxy(name: StageServer | Broker | NodeWay): FaultProxy {
    const found = this.proxies.get(name);
    if (found === undefined) throw new Error(`there is no way to ${name}`);
    return found;
  }

  /** Every way to a store: there is one for each node of a cluster. */
  waysTo(store: StoreName): readonly FaultProxy[] {
    return store === 'redis-cluster' ? NODES.map((part) => this.proxy(`node ${part}`)) : [this.proxy(store)];
  }

  /** Everything runs and every way is open again. */
  async heal(): Promise<void> {
    for (const proxy of this.proxies.values()) proxy.mend();
    for (const server of this.#servers.values()) await server.up();
    if (!this.#servers.has('redis-cluster')) return;
    for (const node of this.cluster().clients) await node.config('SET', 'masterauth', '');
    await this.cluster().settled();
    await this.cluster().replicated();
  }

  /** A copy of what Redis has on disk, as a backup takes it: while it runs. */
  async backUpRedis(to: string): Promise<void> {
    await rm(to, { recursive: true, force: true });
    await cp(this.#redisData(), to, { recursive: true });
  }

  /** kill -9, an older state in place of the present one, and up again. */
  async restoreRedis(from: string): Promise<void> {
    const redis = this.server('redis');
    await redis.kill();
    await rm(this.#redisData(), { recursive: true, force: true });
    await cp(from, this.#redisData(), { recursive: true });
    await redis.up();
  }

  elasticBackup(): ElasticBackup {
    if (this.#snapshots === null) throw new Error('elasticsearch was not started');
    return new ElasticBackup(this.server('elasticsearch').get('ELASTICSEARCH_URL'), this.#snapshots);
  }

  /** kill -9 of all brokers, their disks emptied, and up again under the same names. */
  async wipeKafka(): Promise<void> {
    const kafka = this.server('kafka');
    await kafka.kill();
    for (const broker of BROKERS) {
      await rm(`${SERVICES}/kafka/instances/${kafka.instance}/${broker}`, { recursive: true, force: true });
    }
    await kafka.up();
  }

  /** No server and no way is left; gives what went wrong with that. */
  async clear(): Promise<readonly string[]> {
    return await tidy([
      ['the clients of the cluster did not close', async () => await this.#cluster?.[Symbol.asyncDispose]()],
      ...[...this.#servers].map(([name, server]) => [`${name} could not be removed`, () => server.wipe()] as const),
      ...[...this.proxies].map(
        ([name, proxy]) => [`the way to ${name} did not close`, () => proxy[Symbol.asyncDispose]()] as const,
      ),
      ['the snapshots could not be removed', () => rm(this.#snapshots ?? '', { recursive: true, force: true })],
    ]);
  }

  #redisData(): string {
    return `${SERVICES}/redis/instances/${this.server('redis').instance}/data`;
  }

  async #startAny(name: StageServer): Promise<TestServer> {
    if (name === 'kafka') return await this.#startKafka();
    return name === 'redis-cluster' ? await this.#startCluster() : await this.#start(name);
  }

  async #start(name: SourceName | Exclude<StoreName, 'redis-cluster'>): Promise<TestServer> {
    // what Redis has answered for is in its file before the answer, so a kill loses nothing; its file is only appended to
    const args =
      name === 'redis'
        ? ['--appendfsync', 'no', '--auto-aof-rewrite-percentage', '0']
        : name === 'elasticsearch'
          ? [`path.repo=${await this.#snapshotFolder()}`]
          : [];
    const server = await startServer(name, { args });
    const port =
      name === 'redis'
        ? server.get('REDIS_PORT')
        : name === 'elasticsearch'
          ? new URL(server.get('ELASTICSEARCH_URL')).port
          : server.get('MYSQL_PORT');
    this.proxies.set(name, await FaultProxy.open(Number(port)));
    return server;
  }

  async #snapshotFolder(): Promise<string> {
    this.#snapshots ??= await mkdtemp(join(tmpdir(), 'mysync-snapshots-'));
    return this.#snapshots;
  }

  /** Three masters with a replica each, which clients and replicas reach through the proxies; load, checker and administration go to the nodes. */
  async #startCluster(): Promise<TestServer> {
    for (const part of NODES) this.proxies.set(`node ${part}`, await FaultProxy.open());
    const ports = NODES.map((part) => this.proxy(`node ${part}`).port).join(' ');
    const server = await startServer('redis-cluster', {
      env: { REPLICAS: '1', ADVERTISED_PORTS: ports },
      args: [
        // a replica takes over however long it heard nothing
        ...['--cluster-replica-validity-factor', '0'],
        // one whose way to its master went silent goes another one soon
        ...['--repl-timeout', '5', '--repl-ping-replica-period', '1'],
      ],
    });
    const nodes = server.get('REDIS_CLUSTER_NODES').split(',');
    for (const [index, part] of NODES.entries()) {
      this.proxy(`node ${part}`).aim(Number(nodes[index]?.split(':')[1]));
    }
    return server;
  }

  /** Three brokers; clients that come through the proxies are told the proxies' ports, brokers and checker the real ones. */
  async #startKafka(): Promise<TestServer> {
    for (const name of BROKERS) this.proxies.set(name, await FaultProxy.open());
    const ports = BROKERS.map((name) => this.proxy(name).port).join(' ');
    const server = await startServer('kafka', { env: { NODES: '3', ADVERTISED_PORTS: ports } });
    const behind = server.get('KAFKA_ADVERTISED_LISTENERS').split(',');
    for (const [index, name] of BROKERS.entries()) this.proxy(name).aim(Number(behind[index]?.split(':')[1]));
    return server;
  }
}
