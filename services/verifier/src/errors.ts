import { errorCatalogue } from '@mysync/core';

export const verifierErrors = errorCatalogue({
  VERIFY_NOTHING_RUNS: {
    remedy:
      'Differences can be told from changes under way only while changes get through: start the reader and the writers of this sink (mysync status shows what stands still, and why), then verify again.',
    retriable: false,
  },
  VERIFY_DELETIONS_LOST: {
    remedy:
      'The writer was away for longer than the log keeps deletions (WRITER_TOMBSTONES_LOST). `mysync verify --repair --lost-deletions --sink NAME` lets it go on and removes what is gone from the tables; meanwhile the sink may show deleted rows beside newer ones.',
    retriable: false,
  },
  VERIFY_TABLE_CHANGED: {
    remedy:
      'What was found before is told, and mended where that was asked for. Verify the table once more when its changes are done: mysync verify --table DATABASE.TABLE.',
    retriable: false,
  },
  VERIFY_TABLES_UNREADABLE: {
    remedy:
      'Let the user of the source read these tables (the errors beside them say how), or give the sink no rule for them; then mysync verify --repair --lost-deletions again. No partition was let go on.',
    retriable: false,
  },
  VERIFY_NO_CHECKPOINT: {
    remedy:
      'There is nothing to compare yet: start the reader (mysync run), and verify when its first snapshot is done.',
    retriable: false,
  },
  VERIFY_TOO_MANY_EXTRAS: {
    remedy:
      'A sink with so many records that the table lacks is better built anew: docs/runbook/start-again.md. Look first whether the table was emptied by a statement that the log does not show.',
    retriable: false,
  },
});
