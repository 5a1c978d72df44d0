/** Ten histories per server; `npm run differential` runs as many as one likes. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '@mysync/harness';
import { SERVERS } from './options.ts';
import { runSeed } from './seed.ts';

const SEEDS = Array.from({ length: 10 }, (_, i) => i + 1);

for (const kind of SERVERS) {
  const { name, flavor, env } = kind;
  describe(`histories on ${name}, against the server's own SELECT`, { timeout: 300_000 }, () => {
    // one of its own: settings of the whole server change
    let server: TestServer;
    before(async () => {
      server = await startServer(flavor, { env });
    });
    after(async () => {
      await server.wipe();
    });

    for (const seed of SEEDS) {
      it(`seed ${seed}`, async () => {
        const address = {
          host: server.get('MYSQL_HOST'),
          port: Number(server.get('MYSQL_PORT')),
          user: server.get('MYSQL_USER'),
          password: server.get('MYSQL_PASSWORD'),
        };
        const { rows, failures } = await runSeed({ seed, server: kind, metadata: 'full', address });
        assert.deepEqual(failures, [], `npm run differential -- --seeds ${seed} --server ${name}`);
        assert.ok(rows > 0);
      });
    }
  });
}
