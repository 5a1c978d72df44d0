import { createHash } from 'node:crypto';
import type { RedisAddress } from './options.ts';
import { SLOTS } from './slot.ts';

export interface ClusterMaster {
  readonly name: string;
  /** 40 hex digits. */
  readonly id: string;
  readonly address: RedisAddress;
  readonly lowestSlot: number;
}

/** Which master owns which slot, as one node told. */
export class SlotMap {
  readonly masters: readonly ClusterMaster[];
  /**
   * Names the masters by their ids, wherever their slots are: a slot that moves takes its keys along, confirmed by both sides (MIGRATE);
   * a replica that becomes a master may lack what its master had confirmed.
   */
  readonly holders: string;
  readonly #owners: readonly (ClusterMaster | undefined)[];

  private constructor(owners: readonly (ClusterMaster | undefined)[], masters: readonly ClusterMaster[]) {
    this.#owners = owners;
    this.masters = masters;
    this.holders = createHash('sha1')
      .update(
        masters
          .map(({ id }) => id)
          .sort()
          .join(),
      )
      .digest('hex')
      .slice(0, 16);
  }

  /** `reply` to CLUSTER SLOTS: [first, last, [host, port, id …], replicas …] per range. A node without a host is the one asked. */
  static parse(reply: unknown, asked: RedisAddress): SlotMap {
    const lowest = new Map<string, number>();
    const ranges = (reply as unknown[][]).map(([first, last, node]) => {
      const [host, port, id] = node as [string | null, number, string];
      const address = { host: host === null || host === '' || host === '?' ? asked.host : host, port };
      const name = addressName(address);
      lowest.set(name, Math.min(lowest.get(name) ?? SLOTS, first as number));
      return { first: first as number, last: last as number, name, id, address };
    });
    const masters = new Map<string, ClusterMaster>();
    const owners = new Array<ClusterMaster | undefined>(SLOTS).fill(undefined);
    for (const { first, last, name, id, address } of ranges) {
      const master = masters.get(name) ?? { name, id, address, lowestSlot: lowest.get(name) ?? 0 };
      masters.set(name, master);
      owners.fill(master, first, last + 1);
    }
    return new SlotMap(owners, [...masters.values()]);
  }

  owner(slot: number): ClusterMaster | undefined {
    return this.#owners[slot];
  }

  equals(other: SlotMap): boolean {
    return this.#owners.every((owner, slot) => owner?.name === other.#owners[slot]?.name);
  }
}

export function addressName(address: RedisAddress): string {
  return `${address.host}:${address.port}`;
}

/** `127.0.0.1:7001`, `::1:7001`, `:7001` (the node that was asked). */
export function parseAddress(text: string, asked: RedisAddress): RedisAddress {
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon);
  return { host: host === '' ? asked.host : host, port: Number(text.slice(colon + 1)) };
}
