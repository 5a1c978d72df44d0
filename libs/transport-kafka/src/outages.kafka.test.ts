/** A member of a group whose broker does not answer says so, for its group and for what it reads, until it is answered again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Outage, systemClock } from '@mysync/core';
import { startServer, until } from '@mysync/harness';
import type { AssignedPartition } from '@mysync/transport';
import { record, spec, topicName, transportOn } from './testing.ts';

const outageOf = (who: { readonly outage: Outage | null }): Outage | null => who.outage;

test('a broker that says nothing more: partition and group are told as cut off, then the partition is lost; until it answers', async () => {
  await using server = await startServer('kafka');
  const transport = transportOn(server, { requestTimeoutMs: 1_000, connectionTimeoutMs: 500, sessionTimeoutMs: 6_000 });
  const stop = new AbortController();
  try {
    const topic = topicName();
    await transport.ensureTopic(spec(topic));
    const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
    const consumer = await transport.openConsumer({ topic, group: topic, maxBatchBytes: 2 ** 16, handoverMs: 1_000 });
    assert.equal(outageOf(consumer), null, 'nothing is asked for yet');
    const held: AssignedPartition[] = [];
    let records = 0;
    const running = consumer.run(async (partition) => {
      held.push(partition);
      for await (const batch of partition.batches(partition.committed ?? partition.range.earliest)) {
        records += batch.records.length;
      }
    }, stop.signal);
    running.catch(() => undefined);
    assert.match(outageOf(consumer)?.cause ?? '', /looking for the topic/);
    await publisher.publish(0, [record('1')]);
    await until('it reads', () => records === 1 && outageOf(consumer) === null);
    const first = held[0];
    assert.ok(first);
    assert.equal(outageOf(first), null);

    const before = systemClock.monotonic();
    await server.pause();
    const unread = await until('the partition is cut off', () => outageOf(first) ?? undefined, { everyMs: 10 });
    assert.ok(unread.sinceMs >= before && unread.cause !== '', JSON.stringify(unread));
    const outage = await until('the group is cut off', () => outageOf(consumer) ?? undefined);
    assert.ok(outage.sinceMs >= before && outage.cause !== '', JSON.stringify(outage));
    await until('the session is over', () => first.revoked.aborted);
    assert.equal(outageOf(consumer)?.sinceMs, outage.sinceMs, 'one outage, whatever was tried meanwhile');
    assert.equal(outageOf(first), null, 'nobody reads it');

    await server.resume();
    await until('it is a member again', () => held.length === 2 && outageOf(consumer) === null);
    await publisher.publish(0, [record('2')]);
    await until('it reads again', () => records >= 2 && held[1]?.outage === null);
    stop.abort();
    await running;
  } finally {
    await transport.close();
  }
});
