/** The nodes of a Redis Cluster on the stage send clients and replicas through the proxies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { until } from '@mysync/harness';
import { Cluster } from 'ioredis';
import { RedisClusterEye } from './cluster-eye.ts';
import { Stage } from './stage.ts';

/** Of what a node answers to CLUSTER SLOTS: every port that a client is told, of masters and replicas. */
function portsTold(slots: unknown): readonly number[] {
  const nodes = (slots as [number, number, ...[string, number, string][]][]).flatMap(([, , ...each]) => each);
  return [...new Set(nodes.map(([, port]) => port))].sort();
}

test('clients and replicas are told the ports of the proxies, also by a node that was started again, with the options of the others; the checker goes past them', async () => {
  const stage = new Stage();
  try {
    const server = await stage.need('redis-cluster');
    const cluster = stage.cluster();
    const ways = stage.waysTo('redis-cluster');
    const ports = ways.map(({ port }) => port).sort();
    assert.deepEqual(cluster.announced.map(({ port }) => port).sort(), ports);
    const allAreTold = async (): Promise<true> => {
      for (const node of cluster.clients) assert.deepEqual(portsTold(await node.cluster('SLOTS')), ports);
      await cluster.replicated();
      for (const node of cluster.clients) {
        const [, port] = /master_port:(\d+)/.exec(await node.info('replication')) ?? [];
        if (port !== undefined) assert.ok(ports.includes(Number(port)), `${cluster.partOf(node)} follows ${port}`);
      }
      return true;
    };
    await allAreTold();
    for (const part of ['n1', 'n5']) {
      await server.kill(part);
      await server.upPart(part);
    }
    await until('all are told', allAreTold);
    for (const node of cluster.clients)
      assert.deepEqual(await node.config('GET', 'repl-timeout'), ['repl-timeout', '5'], cluster.partOf(node));

    const [first] = cluster.announced;
    assert.ok(first !== undefined);
    const client = new Cluster([first], { enableOfflineQueue: false, maxRedirections: 1 });
    client.on('error', () => undefined);
    const eye = new RedisClusterEye(cluster, 'db');
    try {
      await once(client, 'ready');
      for (let key = 0; key < 30; key += 1) await client.hset(`db:t:${key}`, 'n', key);
      const targets = Array.from({ length: 30 }, (_, key) => ({ table: 't', key: String(key) }));
      for (const way of ways) way.strike({ kind: 'drop' });
      await until('the client is cut off', () =>
        client.hget('db:t:1', 'n').then(
          () => false,
          () => true,
        ),
      );
      assert.deepEqual(await eye.look(targets), [...targets.keys()]);
    } finally {
      client.disconnect();
      eye.close();
    }
    await stage.heal();
  } finally {
    assert.deepEqual(await stage.clear(), []);
  }
});
