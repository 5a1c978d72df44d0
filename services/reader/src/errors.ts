import { errorCatalogue } from '@mysync/core';

const AGAIN =
  'start again with a snapshot: remove the checkpoint, take a new topic, empty the sinks (docs/runbook/start-again.md)';

export const readerErrors = errorCatalogue({
  READER_LOG_WITHOUT_CHECKPOINT: {
    remedy: `Put the checkpoint back (its file, or its rows in MySQL). If it is lost, ${AGAIN}.`,
    retriable: false,
  },
  READER_TOPIC_CHANGED: {
    remedy: `Set sources.NAME.topic and transport.partitions back to what the checkpoint knows. If the topic was lost, deleted or made anew: \`mysync recover\` goes on with the sinks that are there; or ${AGAIN}.`,
    retriable: false,
  },
  READER_SERVER_CHANGED: {
    remedy: `Connect the server that the checkpoint is of. If it was replaced or restored, ${AGAIN}.`,
    retriable: false,
  },
  READER_LOG_TRUNCATED: {
    remedy: `The log no longer reaches back to the checkpoint: it was truncated or lost. To go on, ${AGAIN}.`,
    retriable: false,
  },
  READER_CHANGE_UNSEEN: {
    remedy:
      "Set sources.NAME.onUnseenChange: resync (or for this table alone: onUnseenChangeOf) and start again: the table is read again and made right. Mend the cause, too: log rows (SET GLOBAL binlog_format = 'ROW'), delete with DELETE in place of dropping partitions.",
    retriable: false,
  },
  READER_CHECKPOINT_OF_OTHER_SOURCE: {
    remedy: 'Give each source a checkpoint of its own (checkpoint.path), or correct the source name.',
    retriable: false,
  },
});
