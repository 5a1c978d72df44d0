export { kafkaErrors } from './errors.ts';
export { createKafkaTransport } from './kafka-transport.ts';
export type { KafkaLogEntry, KafkaObserver, KafkaOptions, KafkaSasl, KafkaTls } from './options.ts';
