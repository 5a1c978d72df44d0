/** What this room takes for granted of a broker: producer ids, epochs and sequences (docs/spec/kafka-transport.md). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import type { TestServer } from '@mysync/harness';
import type { Transport } from '@mysync/transport';
import { Cluster } from './cluster.ts';
import { resolveOptions } from './options.ts';
import { patiently } from './patience.ts';
import { ProducerName } from './producer-name.ts';
import { CODE } from './protocol/codes.ts';
import type { ProducerNumbers } from './protocol/init-producer-id.ts';
import type { ProduceAnswer } from './protocol/produce-answer.ts';
import { brokersOf, produceAs, readAll, sharedKafka, spec, topicName, transportOn } from './testing.ts';

let server: TestServer;
let transport: Transport;
let cluster: Cluster;

before(async () => {
  server = await sharedKafka();
  transport = transportOn(server);
  cluster = new Cluster(resolveOptions({ brokers: brokersOf(server) }));
});

after(async () => {
  cluster.close();
  await transport.close();
});

async function newTopic(): Promise<string> {
  const topic = topicName();
  await transport.ensureTopic(spec(topic));
  return topic;
}

const init = (name: ProducerName): Promise<ProducerNumbers> =>
  patiently({ what: 'id', limitMs: 30_000 }, () => name.takeOver());

const produce = (topic: string, numbers: ProducerNumbers, firstSequence: number): Promise<ProduceAnswer> =>
  produceAs(cluster, topic, numbers, firstSequence);

const stored = (baseOffset: number): Partial<ProduceAnswer> => ({ error: 0, baseOffset });

test('the table: repeats are not stored twice, gaps are refused, an older epoch is shut out by the first newer record', async () => {
  const topic = await newTopic();
  const name = new ProducerName(cluster, topic);
  const zero = await init(name);
  const expect = async (numbers: ProducerNumbers, sequence: number, want: Partial<ProduceAnswer>): Promise<void> => {
    const { error, baseOffset } = await produce(topic, numbers, sequence);
    assert.deepEqual(want.error === 0 ? { error, baseOffset } : { error }, want);
  };
  await expect(zero, 0, stored(0));
  await expect(zero, 1, stored(1));
  await expect(zero, 1, stored(1));
  await expect(zero, 3, { error: CODE.OUT_OF_ORDER_SEQUENCE_NUMBER });
  const one = await init(name);
  assert.deepEqual(one.producerId, zero.producerId);
  assert.equal(one.producerEpoch, zero.producerEpoch + 1);
  await expect(zero, 2, stored(2));
  await expect(one, 1, { error: CODE.OUT_OF_ORDER_SEQUENCE_NUMBER });
  await expect(one, 0, stored(3));
  await expect(zero, 3, { error: CODE.INVALID_PRODUCER_EPOCH });
  await expect(zero, 0, { error: CODE.INVALID_PRODUCER_EPOCH });
  assert.deepEqual(
    (await readAll(transport, topic)).map(({ key }) => key.slice(key.indexOf(':'))),
    [':0', ':1', ':2', ':0'],
  );
});

test('a partition that knows nothing of a producer takes any sequence: hence one batch alone at first', async () => {
  const topic = await newTopic();
  const numbers = await init(new ProducerName(cluster, topic));
  assert.equal((await produce(topic, numbers, 5)).error, 0);
  assert.notEqual((await produce(topic, numbers, 0)).error, 0);
});

test('of the sixth last batch and older ones the offset is not known any more', async () => {
  const topic = await newTopic();
  const numbers = await init(new ProducerName(cluster, topic));
  for (let sequence = 0; sequence < 7; sequence++) assert.equal((await produce(topic, numbers, sequence)).error, 0);
  assert.deepEqual((await produce(topic, numbers, 2)).baseOffset, 2);
  const { error } = await produce(topic, numbers, 0);
  assert.ok(error === CODE.DUPLICATE_SEQUENCE_NUMBER || error === CODE.OUT_OF_ORDER_SEQUENCE_NUMBER, `${error}`);
});

test('only the holder of a name raises its epoch, and asking twice raises it once', async () => {
  const topic = await newTopic();
  const name = new ProducerName(cluster, topic);
  const first = await init(name);
  const raised = await name.raise(first);
  assert.deepEqual([raised.producerId, raised.producerEpoch], [first.producerId, first.producerEpoch + 1]);
  assert.equal((await name.raise(first)).producerEpoch, raised.producerEpoch, 'the answer may have been lost');
  const successor = await init(name);
  assert.equal(successor.producerEpoch, raised.producerEpoch + 1);
  for (const old of [first, raised]) {
    await assert.rejects(name.raise(old), (error) => isMysyncError(error, 'TRANSPORT_FENCED'));
  }
  assert.equal((await name.raise(successor)).producerEpoch, successor.producerEpoch + 1);
});
