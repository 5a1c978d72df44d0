import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sampleCheckpoint } from '@mysync/checkpoint/conformance';
import { randomName, until } from '@mysync/harness';
import type { OutgoingRecord, Publisher, Transport } from '@mysync/transport';
import { LogTransport } from '@mysync/transport-log';
import { type TransportBench, topicStoreTests } from './topic-store.fixture.ts';
import { readTopicCheckpoint, TopicCheckpointStore } from './topic-store.ts';

const path = mkdtempSync(join(tmpdir(), 'mysync-log-'));
let bench: TransportBench;

before(async () => {
  bench = {
    transport: await LogTransport.open({ path, maintenance: false }),
    topicName: () => randomName('checkpoint'),
  };
});

after(async () => {
  await bench.transport.close();
  rmSync(path, { recursive: true, force: true });
});

topicStoreTests('the embedded log', () => bench);

test('brokers that are away for long: one save waits in the publisher, and behind it goes the newest', async () => {
  const { transport } = bench;
  const topic = bench.topicName();
  const waiting: (() => void)[] = [];
  let isAway = false;
  const delayed = (publisher: Publisher): Publisher =>
    delegate(publisher, {
      publish: async (partition: number, records: readonly OutgoingRecord[]) => {
        if (isAway) await new Promise<void>((resolve) => waiting.push(resolve));
        return await publisher.publish(partition, records);
      },
    });
  const store = await TopicCheckpointStore.open({
    transport: delegate(transport, {
      openPublisher: async (options: Parameters<Transport['openPublisher']>[0]) =>
        delayed(await transport.openPublisher(options)),
    }),
    topic,
    source: 'shop',
    allowWeakerTopic: true,
    answerMs: 30,
  });
  const save = (transactionCounter: number): Promise<void> =>
    store.save(sampleCheckpoint({ transactionCounter }), transactionCounter === 1 ? null : 1);
  await save(1);
  isAway = true;
  for (let n = 2; n < 12; n += 1) await assert.rejects(save(n), { code: 'CHECKPOINT_UNREACHABLE', retriable: true });
  assert.equal(waiting.length, 1);
  isAway = false;
  for (const go of waiting) go();
  await until('it goes on', async () => {
    await save(12);
    return true;
  });
  const topicNow = await readTopicCheckpoint(transport, topic);
  assert.equal(topicNow?.transactionCounter, 12);
  await store.close();
});

/** The same object, but for what is given. */
function delegate<T extends object>(real: T, given: Partial<Record<keyof T, unknown>>): T {
  return new Proxy(real, {
    get: (target, name) => {
      if (Object.hasOwn(given, name)) return given[name as keyof T];
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
