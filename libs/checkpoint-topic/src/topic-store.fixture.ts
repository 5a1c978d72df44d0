/** The contracts of the stores over a transport, whichever it is. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkpointStoreConformance, sampleCheckpoint, schemaHistoryConformance } from '@mysync/checkpoint/conformance';
import type { Transport } from '@mysync/transport';
import { readTopicCheckpoint, TopicCheckpointStore } from './topic-store.ts';

export interface TransportBench {
  readonly transport: Transport;
  topicName(): string;
}

const DAMAGES = { truncated: '{"format":"mysync-chec', foreign: '[client]\nuser=me\n', garbage: '\u0000\u0001' };
const NEVER = new AbortController().signal;

export function topicStoreTests(kind: string, bench: () => TransportBench): void {
  const openStore = async (topic: string): Promise<TopicCheckpointStore> =>
    await TopicCheckpointStore.open({ transport: bench().transport, topic, source: 'shop', allowWeakerTopic: true });

  /** Puts a record there as a stranger would. */
  const write = async (topic: string, key: string, value: string): Promise<void> => {
    const publisher = await bench().transport.openPublisher({
      topic,
      producer: 'stranger',
      previous: null,
      signal: NEVER,
    });
    await publisher.publish(0, [{ key: Buffer.from(key), value: Buffer.from(value), headers: [] }]);
    await publisher.close(1000);
  };

  checkpointStoreConformance(`a topic of ${kind}`, async () => {
    const topic = bench().topicName();
    return {
      open: () => openStore(topic),
      damage: (damage) => write(topic, 'checkpoint', DAMAGES[damage]),
      dispose: () => Promise.resolve(),
    };
  });

  schemaHistoryConformance(`a topic of ${kind}`, async () => {
    const topic = bench().topicName();
    return {
      open: async () => {
        const store = await openStore(topic);
        return { history: await store.schemaHistory(), close: () => store.close() };
      },
      damage: () => write(topic, 'schema:1:0:0.', '0123456789abcdef {"sequence":1}\n'),
      dispose: () => Promise.resolve(),
    };
  });

  describe(`a topic of ${kind}`, () => {
    test('whoever opens takes over; the one before is refused, whatever it wants to write', async () => {
      const topic = bench().topicName();
      const first = await openStore(topic);
      await first.save(sampleCheckpoint(), null);
      const history = await first.schemaHistory();
      await history.begin();
      const second = await openStore(topic);
      assert.deepEqual(await second.load(), sampleCheckpoint());
      await assert.rejects(first.save(sampleCheckpoint({ transactionCounter: 1 }), 1), { code: 'CHECKPOINT_FENCED' });
      await assert.rejects(history.begin(), { code: 'CHECKPOINT_FENCED' });
      await second.save(sampleCheckpoint({ epoch: 2 }), 1);
      assert.equal((await readTopicCheckpoint(bench().transport, topic))?.epoch, 2);
      await first.close();
      await second.close();
    });

    test('a history longer than a record, and one whose writer died in the middle of a line', async () => {
      const topic = bench().topicName();
      const store = await openStore(topic);
      const history = await store.schemaHistory();
      await history.begin();
      const entry = (n: number) => ({
        position: { file: 'binlog.000001', offset: n },
        table: { database: 'shop', table: `t${n}` },
        kind: 'definition',
        // characters of two UTF-16 units at both parities
        body: { text: `${n}`.repeat(n) + '😀'.repeat(400_000) },
        recordedAt: '',
      });
      await history.append([entry(1), entry(2)]);
      await store.close();
      await write(topic, 'schema:1:2:0', 'the first piece of a line');
      const next = await openStore(topic);
      const again = await next.schemaHistory();
      assert.deepEqual((await again.load())?.entries, [entry(1), entry(2)]);
      await again.append([entry(3)]);
      await next.close();
      const last = await openStore(topic);
      assert.deepEqual((await (await last.schemaHistory()).load())?.entries, [entry(1), entry(2), entry(3)]);
      await last.close();
    });

    test('there is nothing where there is no topic', async () => {
      assert.equal(await readTopicCheckpoint(bench().transport, bench().topicName()), null);
    });
  });
}
