import { errorCatalogue } from '@mysync/core';

export const wireErrors = errorCatalogue({
  WIRE_VALUE_INVALID: {
    remedy:
      'The value that was read does not fit the column as it was described: compare the column in SHOW CREATE TABLE with the type in this error. ' +
      'Nothing was skipped; the stream stands before this transaction.',
    retriable: false,
  },
  WIRE_KEY_INCOMPLETE: {
    remedy:
      'The row image lacks a column that the key needs: set binlog_row_image=FULL on the source, also in sessions that override it.',
    retriable: false,
  },
  WIRE_SCHEMA_INVALID: {
    remedy:
      'The description of the table contradicts itself or the configuration: check partitionBy and the key of the table named here.',
    retriable: false,
  },
  WIRE_MESSAGE_INVALID: {
    remedy:
      'The record is damaged, foreign, or written by a newer MySync: look at it with `mysync tail` at the offset named in the log, ' +
      'check what else writes to the topic, and that readers and writers have the same version.',
    retriable: false,
  },
  WIRE_KEY_INVALID: {
    remedy:
      'The record key is damaged, foreign, or written by a newer MySync: check what else writes to the topic, and that readers and writers have the same version.',
    retriable: false,
  },
});
