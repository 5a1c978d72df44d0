/** The nodes of a Redis Cluster by their addresses: administered as redis-cli does it, and read by another client. */
import { type TestServer, until } from '@mysync/harness';
import { Redis } from 'ioredis';
import type { RedisAddress, RedisSinkOptions } from './options.ts';
import { RedisSink } from './sink.ts';

const COMMAND_TIMEOUT_MS = 10_000;

export class ClusterNodes implements AsyncDisposable {
  readonly addresses: readonly RedisAddress[];
  readonly clients: readonly Redis[];

  constructor(server: TestServer) {
    this.addresses = server
      .get('REDIS_CLUSTER_NODES')
      .split(',')
      .map((node) => ({ host: node.split(':')[0] ?? '', port: Number(node.split(':')[1]) }));
    this.clients = this.addresses.map((address) => {
      const client = new Redis({ ...address, commandTimeout: COMMAND_TIMEOUT_MS, retryStrategy: () => 100 });
      client.on('error', () => undefined);
      return client;
    });
  }

  sink(options: Partial<RedisSinkOptions> = {}): RedisSink & AsyncDisposable {
    const tables = [{ match: '*.*', as: 'hash' as const }];
    const sink = new RedisSink({ hosts: this.addresses, cluster: true, tables, connectTimeoutMs: 2_000, ...options });
    return Object.assign(sink, { [Symbol.asyncDispose]: () => sink.close() });
  }

  async masters(): Promise<Redis[]> {
    const roles = await Promise.all(
      this.clients.map(async (client) => (await client.role())[0]).map((role) => role.catch(() => '')),
    );
    return this.clients.filter((_, at) => roles[at] === 'master');
  }

  async owner(slot: number): Promise<Redis> {
    return await until(`an owner of slot ${slot}`, async () => {
      for (const client of await this.masters()) {
        if ((await ownRanges(client)).some(([first, last]) => first <= slot && slot <= last)) return client;
      }
      return undefined;
    });
  }

  /** Begins to move a slot; `finish` moves its keys one by one and ends it. */
  async beginMove(slot: number, target: Redis): Promise<() => Promise<void>> {
    const source = await this.owner(slot);
    const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')];
    const { host, port } = this.addresses[this.clients.indexOf(target)] as RedisAddress;
    await target.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', String(sourceId));
    await source.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', String(targetId));
    return async () => {
      for (;;) {
        const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '1')) as string[];
        if (keys.length === 0) break;
        await source.call('MIGRATE', host, String(port), '', '0', '5000', 'KEYS', ...keys);
      }
      await this.assign(slot, target, source);
    };
  }

  /** Tells `owner`, then `other`, then all masters that the slot is `owner`'s. */
  async assign(slot: number, owner: Redis, other: Redis = owner): Promise<void> {
    const id = String(await owner.cluster('MYID'));
    for (const client of [owner, other, ...(await this.masters())]) {
      await client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', id);
    }
  }

  /**
   * Waits until all masters know the same owners and configuration epochs. To be awaited between two moves: a target that does not
   * know of the highest epoch yet takes one that is not above the others', and a packet that was sent before the move then undoes it;
   * in the end a slot is nobody's, its keys are dropped, and gossip does not mend it (twice in 2,300 hasty moves on a busy machine).
   */
  async settled(): Promise<void> {
    await until('the nodes to agree on their slots', async () => {
      const views = await Promise.all((await this.masters()).map(viewOf));
      return views.every((view) => view === views[0]);
    }).catch(async (error: unknown) => {
      throw new Error(await this.state(), { cause: error });
    });
  }

  /** What each node says of itself, a line each, for the messages of tests that fail. */
  async state(): Promise<string> {
    const lines = this.clients.map(async (client) => {
      const [[role], info, ranges] = [
        await client.role(),
        String(await client.cluster('INFO')),
        await ownRanges(client),
      ];
      const field = (name: string): string => new RegExp(`${name}:(\\w+)`).exec(info)?.[1] ?? '';
      const slots = ranges.map(([first, last]) => `${first}-${last}`).join(' ');
      return `${role} ${field('cluster_state')} epoch ${field('cluster_my_epoch')} slots ${slots}`;
    });
    const settled = await Promise.allSettled(lines);
    return settled
      .map((line, at) => `n${at + 1} ${line.status === 'fulfilled' ? line.value : String(line.reason)}`)
      .join('\n');
  }

  async names(): Promise<Map<number, string>> {
    const names = new Map<number, string>();
    for (const client of await this.masters()) {
      for (const key of await client.keys('items:*')) {
        const { id, name } = await client.hgetall(key);
        names.set(Number(id), name ?? '');
      }
    }
    return names;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client.disconnect();
  }
}

/** The slots that a node takes for its own, by ranges. */
async function ownRanges(client: Redis): Promise<readonly (readonly [number, number])[]> {
  const own = (await nodeLines(client)).find(([, , flags]) => flags?.includes('myself')) ?? [];
  return own
    .slice(8)
    .filter((range) => !range.startsWith('['))
    .map((range) => {
      const [first = '', last = first] = range.split('-');
      return [Number(first), Number(last)] as const;
    });
}

/** Id, configuration epoch and slots of each master, as the node sees them. */
async function viewOf(client: Redis): Promise<string> {
  const masters = (await nodeLines(client)).filter(([, , flags]) => flags?.includes('master'));
  return masters
    .map((line) => [line[0], line[6], ...line.slice(8)].join(' '))
    .sort()
    .join('\n');
}

async function nodeLines(client: Redis): Promise<readonly (readonly string[])[]> {
  const lines = String(await client.cluster('NODES'))
    .trim()
    .split('\n');
  return lines.map((line) => line.trim().split(' '));
}
