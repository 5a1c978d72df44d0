/** Asking the cluster while one of its brokers takes connections and says nothing. */
import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { Cluster } from './cluster.ts';
import { resolveOptions } from './options.ts';
import { brokersOf, sharedKafka } from './testing.ts';

test('a broker that is silent does not hold up what any other can answer, and is asked last from then on', {
  timeout: 120_000,
}, async (context) => {
  const kafka = await sharedKafka();
  const taken: Socket[] = [];
  const silent = createServer((socket) => taken.push(socket));
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
  const { port } = silent.address() as AddressInfo;
  // the limit of a request is far longer than the test's
  const options = resolveOptions({
    brokers: [`127.0.0.1:${port}`, ...brokersOf(kafka)],
    requestTimeoutMs: 3_600_000,
    connectionTimeoutMs: 3_600_000,
  });
  const cluster = new Cluster(options);
  context.after(() => {
    cluster.close();
    for (const socket of taken) socket.destroy();
    silent.close();
  });
  for (let round = 0; round < 6; round++) {
    const { nodes } = await cluster.metadata([]);
    assert.equal(nodes.length, 1);
    // what is known of the cluster is given up: the brokers of the configuration are asked
    if (round === 2) cluster.reset();
  }
  assert.equal(taken.length, 1);
});
