import { errorCatalogue } from '@mysync/core';

/** Errors that every adapter raises alike. Errors of one adapter alone stand in its own catalogue. */
export const transportErrors = errorCatalogue({
  TRANSPORT_TOPIC_WEAKER: {
    remedy: 'Change the settings named, or accept them with transport.allowWeakerTopic: true.',
    retriable: false,
  },
  TRANSPORT_PARTITIONS_DIFFER: {
    remedy:
      'Set transport.partitions to the number the topic has. To change the number, use a new topic and rebuild the sinks from it.',
    retriable: false,
  },
  TRANSPORT_TOPIC_MISSING: {
    remedy: 'Start the reader first: it makes the topic. Check the topic name for typing errors.',
    retriable: true,
  },
  TRANSPORT_UNREACHABLE: {
    remedy: 'Check that the servers named run and can be reached from here. MySync goes on trying.',
    retriable: true,
  },
  TRANSPORT_DENIED: {
    remedy:
      'Check the user, the password and the rights: the reader needs to create, describe, read and write its topic, writers to read it and commit in their group.',
    retriable: false,
  },
  TRANSPORT_ACCESS_LOST: {
    remedy:
      'The servers deny what they let this user do before (or deny reading to one who may join the group): check the password and the rights. MySync goes on trying; other credentials need a restart. Nothing is lost.',
    retriable: true,
  },
  TRANSPORT_RENUMBER: {
    remedy: 'Handled by the reader: it raises the producer epoch and sends again what was not acked.',
    retriable: true,
  },
  TRANSPORT_FENCED: {
    remedy:
      'Another reader of the same source is active, or this one was away for longer than the brokers remember. Stop one of the two, the newer one goes on; if there is one only, start it again.',
    retriable: false,
  },
  TRANSPORT_RECORD_TOO_LARGE: {
    remedy:
      'Raise transport.log.maxRecordBytes, or transport.kafka.maxRecordBytes and max.message.bytes of the topic, then restart: nothing was skipped. Or do not capture the table.',
    retriable: false,
  },
  TRANSPORT_DISK_FULL: {
    remedy: 'Free disk space where the log lives, or raise its size limit. Nothing was lost; it goes on by itself.',
    retriable: true,
  },
  TRANSPORT_NOT_OWNER: {
    remedy: 'Handled by the writer: the partition belongs to another member now.',
    retriable: true,
  },
  TRANSPORT_OFFSET_OUT_OF_RANGE: {
    remedy: 'The log no longer holds the offset asked for: start again with a snapshot (docs/runbook/start-again.md).',
    retriable: false,
  },
  TRANSPORT_CLOSED: { remedy: 'None: the transport was closed on purpose.', retriable: false },
});
