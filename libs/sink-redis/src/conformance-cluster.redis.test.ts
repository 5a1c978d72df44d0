import { after, before } from 'node:test';
import { startServer, type TestServer } from '@mysync/harness';
import { sinkConformance } from '@mysync/sink/conformance';
import { Redis } from 'ioredis';
import { redisBench } from './testing.fixture.ts';

let server: TestServer;

before(async () => {
  server = await startServer('redis-cluster');
});
after(async () => {
  await server.wipe();
});

for (const as of ['hash', 'json'] as const) {
  sinkConformance({
    name: `Redis Cluster, ${as}`,
    mergesPartialRows: as === 'hash',
    open: async () => {
      const hosts = server
        .get('REDIS_CLUSTER_NODES')
        .split(',')
        .map((node) => ({ host: node.split(':')[0] ?? '', port: Number(node.split(':')[1]) }));
      return redisBench({
        sink: { hosts: hosts.slice(1), cluster: true, connectTimeoutMs: 2_000 },
        rule: { as },
        readers: () => hosts.map((address) => new Redis(address)),
      });
    },
  });
}
