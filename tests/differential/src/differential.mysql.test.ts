/** Ten histories per server; `npm run differential` runs as many as one likes. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '@mysync/harness';
import { runSeed } from './seed.ts';

const SEEDS = Array.from({ length: 10 }, (_, i) => i + 1);

for (const flavor of ['mariadb', 'mysql'] as const) {
  describe(`histories on ${flavor}, against the server's own SELECT`, { timeout: 300_000 }, () => {
    // one of its own: settings of the whole server change
    let server: TestServer;
    before(async () => {
      server = await startServer(flavor);
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
        const { rows, failures } = await runSeed({ seed, flavor, metadata: 'full', address });
        assert.deepEqual(failures, [], `npm run differential -- --seeds ${seed} --server ${flavor}`);
        assert.ok(rows > 0);
      });
    }
  });
}
