/** Some histories per server; `npm run differential` runs as many as one likes. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '@mysync/harness';
import { SERVERS } from './options.ts';
import { runSeed } from './seed.ts';

const SEEDS = { full: 10, minimal: 5 } as const;

for (const kind of SERVERS) {
  const { name, flavor, env } = kind;
  describe(`histories on ${name}, against the server's own SELECT`, { timeout: 300_000 }, () => {
    // one of its own: settings of the whole server change
    let server: TestServer;
    const compared = { full: 0, minimal: 0 };
    before(async () => {
      server = await startServer(flavor, { env });
    });
    after(async () => {
      await server.wipe();
    });

    for (const metadata of ['full', 'minimal'] as const) {
      for (let seed = 1; seed <= SEEDS[metadata]; seed += 1) {
        it(`seed ${seed}, ${metadata} metadata`, async () => {
          const address = {
            host: server.get('MYSQL_HOST'),
            port: Number(server.get('MYSQL_PORT')),
            user: server.get('MYSQL_USER'),
            password: server.get('MYSQL_PASSWORD'),
          };
          const { rows, failures } = await runSeed({ seed, server: kind, metadata, address });
          const again = `npm run differential -- --seeds ${seed} --server ${name} --metadata ${metadata}`;
          assert.deepEqual(failures, [], again);
          compared[metadata] += rows;
        });
      }
      // a history may lose all its tables: what is told as unseen is read again, which is not compared here
      it(`${metadata} metadata: enough was compared`, () => {
        assert.ok(compared[metadata] > 20 * SEEDS[metadata], `${compared[metadata]} rows`);
      });
    }
  });
}
