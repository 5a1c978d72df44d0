/** For the test of a frozen publisher: publishes one batch after another and reports each ack, and the error that ends it. */
import { isMysyncError } from '@mysync/core';
import { createKafkaTransport } from './kafka-transport.ts';
import { record } from './testing.ts';

const [, , brokers = '', topic = ''] = process.argv;
const transport = createKafkaTransport({ brokers: brokers.split(',') });
const publisher = await transport.openPublisher({ topic, producer: topic, previous: null });
try {
  for (let batch = 0; ; batch++) {
    const { baseOffset } = await publisher.publish(0, [record(`child-${batch}`)]);
    process.send?.({ offset: baseOffset });
  }
} catch (error) {
  process.send?.({ code: isMysyncError(error) ? error.code : String(error) });
}
await transport.close();
