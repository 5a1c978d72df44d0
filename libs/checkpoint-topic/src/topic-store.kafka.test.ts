import { after, before } from 'node:test';
import { randomName, sharedServer } from '@mysync/harness';
import { createKafkaTransport } from '@mysync/transport-kafka';
import { type TransportBench, topicStoreTests } from './topic-store.fixture.ts';

let bench: TransportBench;

before(async () => {
  const server = await sharedServer('kafka');
  const brokers = server.get('KAFKA_BROKERS').split(',');
  const transport = createKafkaTransport({ brokers, replicationFactor: 1, minInsyncReplicas: 1 });
  bench = { transport, topicName: () => randomName('checkpoint') };
});

after(async () => {
  await bench.transport.close();
});

topicStoreTests('Kafka', () => bench);
