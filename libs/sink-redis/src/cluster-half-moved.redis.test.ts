/** H6: one slot that is moved half way and changes its master, beneath pipelines of about 1000 commands to it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMysyncError } from '@mysync/core';
import { RedisCluster, startServer, until } from '@mysync/harness';
import type { Sink } from '@mysync/sink';
import { del, itemRow, items, put } from '@mysync/sink/conformance';
import type { Redis } from 'ioredis';
import { namesIn, sinkOn } from './cluster-nodes.fixture.ts';
import { redisNames } from './names.ts';
import { keySlot } from './slot.ts';

const ROWS = 2_000;
/** Rows of one MIGRATE. */
const AT_ONCE = 20;
/** The share of a batch's changes. */
const DELETED = 0.3;
const RETRY_MS = 20;
const LIMIT_MS = 60_000;

const schema = items('db');
const stream = { topic: 't', partition: 0 };
const rowKey = (id: number): string => `items:{one}:${id}`;
const SLOT = keySlot(rowKey(0));
const IDS = Array.from({ length: ROWS }, (_, id) => id);
const { companion } = redisNames('mysync');

/** The versions of all rows, read again and again as any client of the cluster reads them: no redirection is left out. */
class VersionWatch {
  readonly #nodes: RedisCluster;
  readonly #batches: Batches;
  /** By id: the newest seen, 16 hex digits. */
  readonly versions = new Map<number, string>();
  /** What was wrong. */
  readonly findings: string[] = [];
  rounds = 0;
  /** Rows that were read by way of ASK. */
  asked = 0;

  constructor(nodes: RedisCluster, batches: Batches) {
    this.#nodes = nodes;
    this.#batches = batches;
  }

  async look(): Promise<void> {
    const { confirmed } = this.#batches;
    const owner = await this.#nodes.owner(SLOT);
    const elsewhere = new Map<string, number[]>();
    for (const [id, answer] of await this.#read(owner, IDS)) {
      if (!(answer instanceof Error)) this.#note(id, answer, confirmed.get(id));
      else {
        const [code, , address = ''] = answer.message.split(' ');
        if (code === 'ASK') elsewhere.set(address, [...(elsewhere.get(address) ?? []), id]);
      }
    }
    for (const [address, ids] of elsewhere) {
      const node = this.#nodes.clients.find(
        (_, at) => Number(address.split(':')[1]) === this.#nodes.addresses[at]?.port,
      );
      if (node === undefined) throw new Error(`no node at ${address}`);
      for (const [id, answer] of await this.#read(node, ids, true)) {
        if (answer instanceof Error) continue;
        this.asked += 1;
        this.#note(id, answer, confirmed.get(id));
      }
    }
    this.rounds += 1;
  }

  async #read(
    node: Redis,
    ids: readonly number[],
    asking = false,
  ): Promise<(readonly [number, string | null | Error])[]> {
    const pipeline = node.pipeline();
    for (const id of ids) {
      if (asking) pipeline.call('ASKING');
      pipeline.get(companion(rowKey(id)));
    }
    const replies = ((await pipeline.exec()) ?? []).filter((_, at) => !asking || at % 2 === 1);
    return ids.map((id, at) => {
      const [error, value] = replies[at] ?? [new Error('no reply'), null];
      return [id, error ?? (value as string | null)] as const;
    });
  }

  #note(id: number, record: string | null, confirmed = ''): void {
    const before = this.versions.get(id) ?? '';
    const version = record?.slice(0, 16) ?? '';
    if (version < before) this.findings.push(`row ${id} fell from '${before}' to '${version}'`);
    if (version < confirmed) this.findings.push(`row ${id} has '${version}', '${confirmed}' had been confirmed`);
    this.versions.set(id, version);
  }
}

/** Batches of changes, one behind the other without a pause, as a writer applies them. Each is of about half of the rows: what one loses, the next few do not hide. */
class Batches {
  /** By id: the names of the rows that are there, and the versions that all have at least. */
  readonly names = new Map<number, string>();
  confirmed: ReadonlyMap<number, string> = new Map();
  readonly #sink: Sink;
  #marker: string | null = null;
  #version = 0;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** While `what` goes on, and three more. `deletes`: their share. */
  async beneath(what: () => Promise<void>, deletes = 0): Promise<void> {
    let over = false;
    const going = what().finally(() => {
      over = true;
    });
    for (let more = 3; more > 0; ) {
      if (over) more -= 1;
      await this.#apply(deletes);
    }
    await going;
  }

  async #apply(deletes: number): Promise<void> {
    const first = this.confirmed.size === 0;
    const versions = new Map(this.confirmed);
    const changes = IDS.filter(() => first || Math.random() < 0.5).map((id) => {
      this.#version += 1;
      const name = `v${this.#version}`;
      versions.set(id, this.#version.toString(16).padStart(16, '0'));
      const row = itemRow(id, name);
      if (Math.random() < deletes) {
        this.names.delete(id);
        return del(schema, row, this.#version);
      }
      this.names.set(id, name);
      return put(schema, row, this.#version);
    });
    const next = String(this.#version);
    const { signal } = new AbortController();
    const deadline = performance.now() + LIMIT_MS;
    while (this.#marker !== next) {
      try {
        const outcome = await this.#sink.apply({ stream, changes, marker: { expected: this.#marker, next } }, signal);
        assert.notEqual(outcome.status, 'refused');
        this.#marker = outcome.status === 'applied' ? next : await this.#sink.readMarker(stream);
      } catch (error) {
        if (!(isMysyncError(error) && error.retriable) || performance.now() > deadline) throw error;
        await sleep(RETRY_MS);
      }
    }
    this.confirmed = versions;
  }
}

test('H6: a slot is moved half way, then whole, beneath pipelines of 1000 commands, and its master fails over: no version falls, none is lost', async () => {
  await using server = await startServer('redis-cluster', { env: { REPLICAS: '1' } });
  await using nodes = new RedisCluster(server);
  // a script for each row: 1000 commands in one pipeline
  const tables = [{ match: '*.*', as: 'hash' as const, key: 'items:{{one}}:{key}' }];
  await using sink = sinkOn(nodes, { tables, chunkRows: 1 });
  const batches = new Batches(sink);
  const source = await nodes.owner(SLOT);
  const target = (await nodes.masters()).find((master) => master !== source) as Redis;
  const watch = new VersionWatch(nodes, batches);
  let over = false;
  const watching = (async () => {
    while (!over) await watch.look();
  })();
  const { host, port } = target.options;
  const assertAllThere = async (): Promise<void> => {
    const { rounds } = watch;
    await until('another look from the beginning', () => watch.rounds > rounds + 1);
    assert.deepEqual(watch.findings, []);
    assert.deepEqual(watch.versions, batches.confirmed);
  };
  /** A row and its companion move together. */
  const migrate = async (ids: readonly number[]): Promise<void> => {
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const keys = ids.slice(from, from + AT_ONCE).flatMap((id) => [rowKey(id), companion(rowKey(id))]);
      await source.call('MIGRATE', String(host), String(port), '', '0', '5000', 'KEYS', ...keys);
    }
  };
  try {
    await batches.beneath(async () => undefined);
    const finish = await nodes.beginMove(SLOT, target);
    await batches.beneath(() => migrate(IDS.slice(0, ROWS / 2)));
    await assertAllThere();
    assert.ok(watch.asked > 0, 'rows were read where they had been moved to');
    // rows that are new, or deleted, wait until their slot has moved
    await batches.beneath(async () => {
      await migrate(IDS.slice(ROWS / 2));
      await finish();
    }, DELETED);
    await nodes.settled();
    await assertAllThere();
    await batches.beneath(async () => {
      const replica = await until('a replica', () => nodes.replicaOf(target));
      await replica.call('CLUSTER', 'FAILOVER');
      await until('it has taken over', async () => (await nodes.owner(SLOT)) === replica);
    }, DELETED);
    await assertAllThere();
  } finally {
    over = true;
    await watching;
  }
  assert.deepEqual(await namesIn(nodes), batches.names);
});
