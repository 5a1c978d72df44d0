import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer, until } from '@mysync/harness';
import type { Transport } from '@mysync/transport';
import kafkajs, { CompressionTypes } from 'kafkajs';
import {
  brokersOf,
  kafkajsOn,
  readAll,
  record,
  sharedKafka,
  spec,
  topicName,
  transportOn,
  withAdmin,
} from './testing.ts';

let server: TestServer;
let transport: Transport;

before(async () => {
  server = await sharedKafka();
  transport = transportOn(server);
});

after(() => transport.close());

async function newTopic(partitions = 1): Promise<string> {
  const topic = topicName();
  await transport.ensureTopic(spec(topic, partitions));
  return topic;
}

const code = (wanted: string) => (error: unknown) => {
  assert.ok(isMysyncError(error), String(error));
  assert.equal(error.code, wanted, String(error));
  return true;
};

test('records of another writer between our batches are counted', async () => {
  const topic = await newTopic();
  const seen: { count: number; offset: number }[] = [];
  const observed = transportOn(server, {
    observer: { foreignRecords: ({ count, offset }) => seen.push({ count, offset }) },
  });
  const publisher = await observed.openPublisher({ topic, producer: topic, previous: null });
  await publisher.publish(0, [record('a'), record('b')]);
  await publisher.publish(0, [record('c')]);
  const producer = kafkajsOn(server).producer();
  await producer.connect();
  await producer.send({
    topic,
    messages: [
      { key: 'x', value: '1' },
      { key: 'y', value: '2' },
    ],
  });
  await producer.disconnect();
  await publisher.publish(0, [record('d')]);
  await publisher.publish(0, [record('e')]);
  assert.deepEqual(seen, [{ count: 2, offset: 5 }]);
  await observed.close();
});

test('gzip: kafkajs reads ours, and we read that of kafkajs', async () => {
  const topic = await newTopic();
  const packing = transportOn(server, { compression: 'gzip' });
  const publisher = await packing.openPublisher({ topic, producer: topic, previous: null });
  const records = Array.from({ length: 100 }, (_, index) => record(`k${index}`, 'value '.repeat(50)));
  await publisher.publish(0, records);
  const producer = kafkajsOn(server).producer();
  await producer.connect();
  await producer.send({
    topic,
    compression: CompressionTypes.GZIP,
    messages: [{ key: 'theirs', value: 'v'.repeat(500) }],
  });
  await producer.disconnect();
  const seen = await readAll(transport, topic);
  assert.equal(seen.length, 101);
  assert.deepEqual(seen.at(-1), { offset: 100, key: 'theirs', value: 'v'.repeat(500) });
  const consumer = kafkajsOn(server).consumer({ groupId: topic });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const keys: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const eachMessage = async ({ message }: { message: { key: Buffer | null } }): Promise<void> => {
      keys.push(String(message.key));
      if (keys.length === 101) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  assert.deepEqual(keys, [...records.map(({ key }) => String(key)), 'theirs']);
  await packing.close();
});

test('a topic that was deleted and made anew is not written to', async () => {
  const topic = await newTopic();
  const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
  await publisher.publish(0, [record('a'), record('b')]);
  await withAdmin(server, (admin) => admin.deleteTopics({ topics: [topic] }));
  await until('it is gone', async () => (await transport.describeTopic(topic)) === null);
  const other = transportOn(server);
  await other.ensureTopic(spec(topic));
  const before = await publisher.publish(0, [record('c')]).catch((error: unknown) => error);
  assert.ok(isMysyncError(before), `${before}`);
  if (before.code !== 'KAFKA_TOPIC_REPLACED') {
    assert.equal(before.code, 'TRANSPORT_RENUMBER');
    await assert.rejects(publisher.renumber(), code('KAFKA_TOPIC_REPLACED'));
  }
  await assert.rejects(publisher.publish(0, [record('d')]), code('KAFKA_TOPIC_REPLACED'));
  await other.close();
});

test('a topic that was deleted and does not come back ends the publisher', async () => {
  const topic = await newTopic();
  const impatient = transportOn(server, { stallMs: 2000 });
  const publisher = await impatient.openPublisher({ topic, producer: topic, previous: null });
  await publisher.publish(0, [record('a')]);
  await withAdmin(server, (admin) => admin.deleteTopics({ topics: [topic] }));
  await assert.rejects(publisher.publish(0, [record('b')]), code('KAFKA_TOPIC_REPLACED'));
  await impatient.close();
});

test('a publisher that was frozen and wakes behind its successor stores nothing and learns that it is fenced', async () => {
  const topic = await newTopic();
  const child = fork(fileURLToPath(new URL('./zombie.child.js', import.meta.url)), [
    brokersOf(server).join(','),
    topic,
  ]);
  const exited = once(child, 'exit');
  const acked: number[] = [];
  let ended: string | null = null;
  child.on('message', (message: { offset?: number; code?: string }) => {
    if (message.offset !== undefined) acked.push(message.offset);
    if (message.code !== undefined) ended = message.code;
  });
  try {
    await until('the child publishes', () => acked.length > 20);
    child.kill('SIGSTOP');
    const young = await transport.openPublisher({ topic, producer: topic, previous: null });
    const { baseOffset } = await young.publish(0, [record('successor')]);
    child.kill('SIGCONT');
    await until('the child is refused', () => ended !== null);
    assert.equal(ended, 'TRANSPORT_FENCED');
    await young.publish(0, [record('successor again')]);
    const seen = await readAll(transport, topic);
    assert.equal(seen.length, baseOffset + 2, 'nothing of the child lies behind its successor');
    assert.ok(acked.every((offset) => offset < baseOffset));
    await young.close();
  } finally {
    child.kill('SIGCONT');
    child.kill('SIGKILL');
    await exited;
  }
});

test('where the coordinator has forgotten the name, the old id is shut out too', async () => {
  await using own = await startServer('kafka', {
    args: ['transactional.id.expiration.ms=1000', 'transaction.remove.expired.transaction.cleanup.interval.ms=500'],
  });
  const mine = transportOn(own);
  const topic = topicName();
  await mine.ensureTopic(spec(topic, 2));
  const old = await mine.openPublisher({ topic, producer: topic, previous: null });
  await old.publish(0, [record('old')]);
  await old.publish(1, [record('old')]);
  // Names of the same age tell when the coordinator forgets; asking about a name makes it young again.
  const canaries = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const producer = `${topic}-canary-${index}`;
      const publisher = await mine.openPublisher({ topic, producer, previous: null });
      await publisher.close();
      return { producer, id: publisher.identity.id };
    }),
  );
  await until(
    'the coordinator forgets',
    async () => {
      const canary = canaries.shift();
      assert.ok(canary !== undefined, 'no canary is left');
      const again = await mine.openPublisher({ topic, producer: canary.producer, previous: null });
      await again.close();
      return again.identity.id !== canary.id;
    },
    { everyMs: 1000 },
  );
  const fences: number[] = [];
  const young = await mine.openPublisher({
    topic,
    producer: topic,
    previous: old.identity,
    fenceRecord: (partition) => {
      fences.push(partition);
      return record('fence', null);
    },
  });
  assert.notEqual(young.identity.id, old.identity.id);
  assert.deepEqual(fences, [0, 1]);
  // Nothing was published under the new id yet: the fence alone must do.
  await assert.rejects(old.publish(0, [record('zombie')]), code('TRANSPORT_FENCED'));
  for (const partition of [0, 1]) {
    assert.deepEqual(
      (await readAll(mine, topic, partition)).map(({ key, value }) => [key, value]),
      [
        ['old', 'old'],
        ['fence', null],
      ],
    );
  }
  await mine.close();
});

test('a topic that takes less than before: several records go in smaller batches, and only one that is too large alone is to blame', async () => {
  const topic = await newTopic();
  const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
  const limit = 20_000;
  const setLimit = (bytes: number): Promise<unknown> => {
    const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }];
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }];
    return withAdmin(server, (admin) => admin.alterConfigs({ validateOnly: false, resources }));
  };
  await setLimit(limit);
  const each = (index: number) => record(`k${index}`, 'v'.repeat(6_000));
  const together = publisher.publish(0, [each(0), each(1), each(2), each(3)]);
  await assert.rejects(together, (error) => {
    return isMysyncError(error, 'TRANSPORT_RECORD_TOO_LARGE') && !('record' in error.where);
  });
  await publisher.renumber();
  assert.ok(publisher.maxBatchBytes < limit, `${publisher.maxBatchBytes}`);
  for (let index = 0; index < 4; index += 1) {
    assert.deepEqual(await publisher.publish(0, [each(index)]), { baseOffset: index });
  }
  await assert.rejects(publisher.publish(0, [record('large', 'v'.repeat(limit))]), code('TRANSPORT_RECORD_TOO_LARGE'));
  // measured without a refusal, and by the topic's limit as it is then
  await publisher.renumber();
  await setLimit(2 * limit);
  const large = record('large', 'v'.repeat(limit));
  await until('the raised limit is noticed', async () => publisher.takes(large), { timeoutMs: 90_000 });
  assert.equal(publisher.takes(record('larger', 'v'.repeat(2 * limit))), false);
  assert.deepEqual(await publisher.publish(0, [large]), { baseOffset: 4 });
});
