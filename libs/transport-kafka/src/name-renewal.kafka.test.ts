/** What coordinators and partitions forget, and that a predecessor which wakes afterwards is refused all the same. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isMysyncError } from '@mysync/core';
import { startServer, type TestServer, until } from '@mysync/harness';
import type { Transport } from '@mysync/transport';
import { Cluster } from './cluster.ts';
import { resolveOptions } from './options.ts';
import { patiently } from './patience.ts';
import { ProducerName } from './producer-name.ts';
import { brokersOf, produceAs, readAll, record, spec, topicName, transportOn } from './testing.ts';

const CANARIES = 20;

let server: TestServer;
/** Whose publishers never show that they are there. */
let silent: Transport;
/** Whose publishers do, often enough for this broker. */
let lively: Transport;
let cluster: Cluster;

before(async () => {
  server = await startServer('kafka', {
    args: [
      'transactional.id.expiration.ms=1000',
      'transaction.remove.expired.transaction.cleanup.interval.ms=500',
      'producer.id.expiration.ms=1000',
      'producer.id.expiration.check.interval.ms=500',
    ],
  });
  silent = transportOn(server);
  lively = transportOn(server, { producerRenewalMs: 300 });
  cluster = new Cluster(resolveOptions({ brokers: brokersOf(server) }));
});

after(async () => {
  cluster.close();
  await Promise.all([silent.close(), lively.close()]);
  await server[Symbol.asyncDispose]();
});

async function newTopic(): Promise<string> {
  const topic = topicName();
  await silent.ensureTopic(spec(topic));
  return topic;
}

const fenced = (error: unknown): boolean => isMysyncError(error, 'TRANSPORT_FENCED');

interface Canary {
  readonly name: ProducerName;
  readonly numbers: Awaited<ReturnType<ProducerName['takeOver']>>;
}

/** Names of one age: each tells once whether it was forgotten, since asking about it makes it young again. */
async function canaries(topic: string): Promise<Canary[]> {
  return await Promise.all(
    Array.from({ length: CANARIES }, async (_, index) => {
      const name = new ProducerName(cluster, `${topic}-canary-${index}`);
      return { name, numbers: await patiently({ what: 'a canary', limitMs: 30_000 }, () => name.takeOver()) };
    }),
  );
}

async function untilForgotten(
  what: string,
  flock: Canary[],
  isForgotten: (canary: Canary) => Promise<boolean>,
): Promise<void> {
  const look = async (): Promise<boolean> => {
    const canary = flock.shift();
    assert.ok(canary !== undefined, 'no canary is left');
    return await isForgotten(canary);
  };
  await until(what, look, { everyMs: 500 });
}

const nameForgotten = async ({ name, numbers }: Canary): Promise<boolean> =>
  (await name.takeOver()).producerId !== numbers.producerId;

test('the check tells of brokers that forget a producer sooner than a reader speaks to them again', async () => {
  const told = async (transport: Transport): Promise<readonly string[]> =>
    (await transport.check(spec(topicName())))
      .filter(({ code }) => code === 'KAFKA_PRODUCER_FORGOTTEN')
      .map(({ level, message }) => `${level} ${message.split(', and')[0]}`);
  assert.deepEqual(await told(silent), [
    'error transactional.id.expiration.ms of broker 1 is 1000',
    'error producer.id.expiration.ms of broker 1 is 1000',
  ]);
  assert.deepEqual(await told(lively), ['ok the brokers remember a producer for longer than a reader keeps silent']);
});

test('a successor that publishes nothing keeps its name: a predecessor that wakes after the expiry is refused', async () => {
  const topic = await newTopic();
  const old = await silent.openPublisher({ topic, producer: topic, previous: null });
  const older = old.identity;
  await old.publish(0, [record('old')]);
  const young = await lively.openPublisher({ topic, producer: topic, previous: old.identity });
  await young.publish(0, [record('young')]);
  await untilForgotten('the coordinator forgets', await canaries(topic), nameForgotten);
  await assert.rejects(old.renumber(), fenced);
  await young.publish(0, [record('young')]);
  const { id, epoch } = await young.renumber();
  assert.equal(id, older.id, 'the name was never given anew');
  assert.ok(epoch > older.epoch + 2, 'the epoch rose by itself');
  await young.publish(0, [record('young')]);
  assert.deepEqual(
    (await readAll(silent, topic)).map(({ key }) => key),
    ['old', 'young', 'young', 'young'],
  );
});

test('who was forgotten is over, whoever had the name meanwhile', async () => {
  const topic = await newTopic();
  const old = await silent.openPublisher({ topic, producer: topic, previous: null });
  await old.publish(0, [record('old')]);
  const young = await silent.openPublisher({ topic, producer: topic, previous: old.identity });
  await young.publish(0, [record('young')]);
  await untilForgotten('the coordinator forgets', await canaries(topic), nameForgotten);
  await young.publish(0, [record('young')]);
  await assert.rejects(old.publish(0, [record('zombie')]), fenced);
  assert.deepEqual(
    (await readAll(silent, topic)).map(({ key }) => key),
    ['old', 'young', 'young'],
  );
});

test('where the partition has forgotten every producer, a predecessor asks before it sends', async () => {
  const topic = await newTopic();
  const drowsy = transportOn(server, { producerRenewalMs: 6_000 });
  const old = await drowsy.openPublisher({ topic, producer: topic, previous: null });
  await old.publish(0, [record('old')]);
  const young = await lively.openPublisher({ topic, producer: topic, previous: old.identity });
  await young.publish(0, [record('young')]);
  // A partition that knows a producer refuses a batch with a gap before it.
  const other = await newTopic();
  const flock = await canaries(other);
  for (const { numbers } of flock) assert.equal((await produceAs(cluster, other, numbers, 0)).error, 0);
  await untilForgotten(
    'the partition forgets',
    flock,
    async ({ numbers }) => (await produceAs(cluster, other, numbers, 7)).error === 0,
  );
  await assert.rejects(old.publish(0, [record('zombie')]), fenced);
  await young.publish(0, [record('young')]);
  assert.deepEqual(
    (await readAll(silent, topic)).map(({ key }) => key),
    ['old', 'young', 'young'],
  );
  await drowsy.close();
});

test('the epoch rises amid a load without a record lost, repeated or out of order', async () => {
  const topic = await newTopic();
  const publisher = await lively.openPublisher({ topic, producer: topic, previous: null });
  const begun = publisher.identity.epoch;
  let batch = 0;
  const load = async (): Promise<void> => {
    while (publisher.identity.epoch < begun + 4) {
      const first = batch++;
      const { baseOffset } = await publisher.publish(0, [record(`${first}`)]);
      assert.equal(baseOffset, first);
    }
  };
  // Three at a time: the partition is seldom without an open batch.
  await Promise.all([load(), load(), load()]);
  assert.deepEqual(
    (await readAll(silent, topic)).map(({ key }) => Number(key)),
    Array.from({ length: batch }, (_, index) => index),
  );
});
