import { after, before } from 'node:test';
import { startServer, type TestServer } from '@mysync/harness';
import { sinkConformance } from '@mysync/sink/conformance';
import { Redis } from 'ioredis';
import { redisBench } from './testing.fixture.ts';

let server: TestServer;

before(async () => {
  server = await startServer('redis');
});
after(async () => {
  await server.wipe();
});

for (const as of ['hash', 'json'] as const) {
  sinkConformance({
    name: `Redis, ${as}`,
    mergesPartialRows: as === 'hash',
    open: async () => {
      const address = { host: server.get('REDIS_HOST'), port: Number(server.get('REDIS_PORT')) };
      return redisBench({
        sink: { hosts: [address], connectTimeoutMs: 2_000 },
        rule: { as },
        readers: () => [new Redis(address)],
      });
    },
  });
}

sinkConformance({
  name: 'Redis, hash with time to live and an index',
  open: async () => {
    const address = { host: server.get('REDIS_HOST'), port: Number(server.get('REDIS_PORT')) };
    return redisBench({
      sink: { hosts: [address], connectTimeoutMs: 2_000 },
      rule: { as: 'hash', ttlSeconds: 3600, indexes: [{ key: 'all:{database}', kind: 'set' }] },
      readers: () => [new Redis(address)],
    });
  },
});
