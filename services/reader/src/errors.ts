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
  READER_TABLE_RESHAPED: {
    remedy:
      'Nothing, where rows of the old shape do no harm. Else rewrite them (`mysync verify --repair --table TABLE`), or set sources.NAME.onAlter: resync, which does so after each such ALTER.',
    retriable: false,
  },
  READER_TABLE_REREAD: {
    remedy:
      "Nothing: the table is read again by itself. Where that costs too much, mend the cause: log rows (SET GLOBAL binlog_format = 'ROW'), delete with DELETE in place of dropping partitions; or set sources.NAME.onUnseenChange.",
    retriable: false,
  },
  READER_ROWS_MISSING: {
    remedy:
      'To have the rows that are there, too: `mysync verify --repair` (by sink), or set sources.NAME.start: snapshot and onUnseenChange: resync before the first start.',
    retriable: false,
  },
  READER_TABLE_LEFT: {
    remedy:
      'Capture the tables again (sources.NAME.tables): their rows are made right at the next start. Or, if they are not wanted any more, remove their rows from the sinks yourself.',
    retriable: false,
  },
  READER_TABLE_UNCERTAIN: {
    remedy:
      'Let the user see the table (GRANT SELECT ON the table, or on its database) and start again: then its rows are made right, or removed if it is gone. Or leave it out of sources.NAME.tables.',
    retriable: false,
  },
  READER_CHECKPOINT_OF_OTHER_SOURCE: {
    remedy: 'Give each source a checkpoint of its own (checkpoint.path), or correct the source name.',
    retriable: false,
  },
});
