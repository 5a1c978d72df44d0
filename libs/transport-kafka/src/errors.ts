import { errorCatalogue } from '@mysync/core';

/** What only the Kafka adapter raises. What both adapters raise stands in `@mysync/transport`. */
export const kafkaErrors = errorCatalogue({
  KAFKA_TOO_OLD: {
    remedy: 'Use Kafka 2.8 or newer (topic ids and producer epochs raised by the holder are needed).',
    retriable: false,
  },
  KAFKA_CODEC_UNSUPPORTED: {
    remedy: 'Let other producers of the topic use gzip or no compression, and set compression.type=producer on it.',
    retriable: false,
  },
  KAFKA_RECORD_CORRUPT: {
    remedy: 'The bytes read do not fit their checksum. Check the disks and the network of the brokers; then restart.',
    retriable: false,
  },
  KAFKA_RECORD_REFUSED: {
    remedy: 'The broker refuses the record for its content: see the message, and report it if MySync wrote the record.',
    retriable: false,
  },
  KAFKA_TOPIC_REPLACED: {
    remedy:
      'The topic was deleted, or deleted and made anew: start again with a snapshot (docs/runbook/start-again.md).',
    retriable: false,
  },
  KAFKA_GROUP_IN_USE: {
    remedy: 'Another client uses this consumer group with another protocol. Stop it, or take another group name.',
    retriable: false,
  },
  KAFKA_SESSION_TIMEOUT: {
    remedy:
      'Keep transport.kafka.sessionTimeoutMs within group.min.session.timeout.ms and group.max.session.timeout.ms of every broker, or change those settings.',
    retriable: false,
  },
  KAFKA_PRODUCER_FORGOTTEN: {
    remedy:
      'Raise transactional.id.expiration.ms and producer.id.expiration.ms of every broker to a day at least (their defaults: 7 days, and one).',
    retriable: false,
  },
  KAFKA_TOPIC_INVALID: {
    remedy: 'Kafka refuses the topic: see the message for the name or the setting it does not accept.',
    retriable: false,
  },
  KAFKA_OPTION_INVALID: { remedy: 'Correct the option named.', retriable: false },
});
