import { Redis } from 'ioredis';
import type { TestServer } from './server.ts';
import { until } from './wait.ts';

const COMMAND_TIMEOUT_MS = 10_000;

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The nodes of a Redis Cluster of tests/servers, each by a client of its own: administered as redis-cli does it. */
export class RedisCluster implements AsyncDisposable {
  /** Where the nodes listen. */
  readonly addresses: readonly Address[];
  /** Where they tell their clients to connect; elsewhere when there are proxies in front of them. */
  readonly announced: readonly Address[];
  readonly clients: readonly Redis[];

  constructor(server: TestServer) {
    const nodes = server.get('REDIS_CLUSTER_NODES');
    this.addresses = parse(nodes);
    this.announced = parse(server.vars['REDIS_CLUSTER_ANNOUNCED'] ?? nodes);
    this.clients = this.addresses.map((address) => {
      const client = new Redis({ ...address, commandTimeout: COMMAND_TIMEOUT_MS, retryStrategy: () => 100 });
      client.on('error', () => undefined);
      return client;
    });
  }

  /** Those that take themselves for masters; nodes that do not answer are left out. */
  async masters(): Promise<Redis[]> {
    const roles = await Promise.all(this.clients.map(roleOf));
    return this.clients.filter((_, at) => roles[at] === 'master');
  }

  /** For clients that are not to go through the proxies: from what is announced to where it is. */
  get natMap(): Readonly<Record<string, Address>> {
    return Object.fromEntries(
      this.addresses.map((address, at) => {
        const { host, port } = this.announced[at] ?? address;
        return [`${host}:${port}`, address];
      }),
    );
  }

  /** The server's name for a node, for its verbs. */
  partOf(node: Redis): string {
    return `n${this.clients.indexOf(node) + 1}`;
  }

  /** A replica of a master, or undefined. */
  async replicaOf(master: Redis): Promise<Redis | undefined> {
    const id = String(await master.cluster('MYID'));
    const lines = await Promise.all(this.clients.map((client) => ownLine(client).catch(() => [])));
    return this.clients.find((_, at) => {
      const [, , flags, masterId] = lines[at] ?? [];
      return flags?.includes('slave') === true && masterId === id;
    });
  }

  /** Waits until every node that is no master has a connection to its master, and the data. */
  async replicated(): Promise<void> {
    await until('the replicas have what their masters have', async () => {
      const states = await Promise.all(this.clients.map((client) => client.info('replication')));
      return states.every((state) => /role:master|master_link_status:up/.test(state));
    });
  }

  async isMaster(node: Redis): Promise<boolean> {
    return (await roleOf(node)) === 'master';
  }

  async owner(slot: number): Promise<Redis> {
    return await until(`an owner of slot ${slot}`, async () => {
      for (const client of await this.masters()) {
        if ((await ownRanges(client)).some(([first, last]) => first <= slot && slot <= last)) return client;
      }
      return undefined;
    });
  }

  /** Slots of a master that hold keys, at most `most`. */
  async filledSlots(master: Redis, most: number): Promise<readonly number[]> {
    const slots: number[] = [];
    for (const [first, last] of await ownRanges(master)) {
      for (let slot = first; slot <= last; slot++) {
        if (slots.length >= most) return slots;
        if (Number(await master.call('CLUSTER', 'COUNTKEYSINSLOT', String(slot))) > 0) slots.push(slot);
      }
    }
    return slots;
  }

  /** Begins to move a slot; `finish` moves its keys one by one and ends it. */
  async beginMove(slot: number, target: Redis): Promise<() => Promise<void>> {
    const source = await this.owner(slot);
    const [sourceId, targetId] = [await source.cluster('MYID'), await target.cluster('MYID')];
    const { host, port } = this.#addressOf(target);
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
      const [role, info, ranges] = [
        await roleOf(client),
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

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.clients) client.disconnect();
  }

  #addressOf(node: Redis): Address {
    const address = this.addresses[this.clients.indexOf(node)];
    if (address === undefined) throw new Error('not a node of this cluster');
    return address;
  }
}

function parse(nodes: string): readonly Address[] {
  return nodes.split(',').map((node) => ({ host: node.split(':')[0] ?? '', port: Number(node.split(':')[1]) }));
}

async function roleOf(node: Redis): Promise<string> {
  return String((await node.role().catch(() => ['']))[0]);
}

/** The slots that a node takes for its own, by ranges. */
async function ownRanges(client: Redis): Promise<readonly (readonly [number, number])[]> {
  return (await ownLine(client))
    .slice(8)
    .filter((range) => !range.startsWith('['))
    .map((range) => {
      const [first = '', last = first] = range.split('-');
      return [Number(first), Number(last)] as const;
    });
}

/** What a node says of itself: its id, address, flags, master's id, … */
async function ownLine(client: Redis): Promise<readonly string[]> {
  return (await nodeLines(client)).find(([, , flags]) => flags?.includes('myself')) ?? [];
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
