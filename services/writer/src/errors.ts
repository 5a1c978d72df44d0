import { errorCatalogue } from '@mysync/core';

/** How a sink is filled anew: without its marker, and with a group that has committed nothing, a writer begins at the log's first record. */
const REBUILD = 'empty the sink, give it a new group name (sinks.NAME.group) and start the writer again';

/** Of a row that the log withholds, where its table's rule is `onPoison: halt`. */
export const SKIP_WITHHELD_REMEDY =
  "The row is larger than the log takes (onLargeRow: withhold). Either raise the transport's maxRecordBytes, start the reader again, change the row in the source (or make it smaller there), then restart the writer: it goes on where a later change of the row lies in the log. Or set onPoison: park (or dead-letter) for the table and restart the writer; then `mysync verify --repair --sink NAME` writes the row from the source.";

/** The same where the rule is `onPoison: park`, and too many are parked. */
export const PARK_WITHHELD_REMEDY =
  "So many rows are larger than the log takes (onLargeRow: withhold). Raise sinks.NAME.maxParkedKeys, or set onPoison: dead-letter for the table, and restart the writer: of the changes that it stopped at, none is set aside yet. Then `mysync verify --repair --sink NAME` writes the rows from the source. So that it does not go on, raise the transport's maxRecordBytes.";

export const writerErrors = errorCatalogue({
  WRITER_SINK_LOST: {
    remedy: `The sink's data were lost, or another store was connected. Connect the right one, or rebuild it: ${REBUILD}.`,
    retriable: false,
  },
  WRITER_TOPIC_CHANGED: {
    remedy: `The topic was made anew, or its partitions were changed, since the sink was filled. If the log was lost, \`mysync recover\`. Else rebuild the sink: ${REBUILD}.`,
    retriable: false,
  },
  WRITER_LOG_TRUNCATED: {
    remedy: `The log no longer holds what this sink still needs. Rebuild it from a log that holds every row (mysync status shows which tables it holds completely): ${REBUILD}.`,
    retriable: false,
  },
  WRITER_LOG_INCOMPLETE: {
    remedy:
      'A new sink cannot be filled from it. Start the source again with a snapshot (docs/runbook/start-again.md), then start the writer again.',
    retriable: false,
  },
  WRITER_TOMBSTONES_LOST: {
    remedy: `The writer was behind for longer than the log keeps deletions (transport.deleteRetentionMs), and the log was compacted meanwhile: rows that were deleted may still be in the sink. \`mysync verify --repair --lost-deletions --sink NAME\`, while the reader and the writers of the sink run: the partition goes on, and rows that are gone from the tables are removed (docs/runbook/alerts.md). Or rebuild the sink: ${REBUILD}.`,
    retriable: false,
  },
  WRITER_MARKER_INVALID: {
    remedy: `The applied marker in the sink is not one of this version of MySync. Restore it, or rebuild the sink: ${REBUILD}.`,
    retriable: false,
  },
  WRITER_PARKED_FULL: {
    remedy:
      'So many keys are not single bad rows but a wrong mapping. `mysync dlq list` shows them and why: mend that, `mysync dlq retry`, then restart the writer; or raise sinks.NAME.maxParkedKeys. (Those that it stopped at are not set aside yet, so not in the list: the error names one.)',
    retriable: false,
  },
  WRITER_BUSY: {
    remedy: 'Try again in a moment; nothing was changed halfway.',
    retriable: true,
  },
  WRITER_ROW_WITHHELD: {
    remedy:
      "The row is larger than the log takes (onLargeRow: withhold), so that its message names its key alone. Raise the transport's maxRecordBytes, start the reader again and change the row in the source, or make the row smaller: its next change that fits is applied by itself. Or `mysync verify --repair --sink NAME`, while reader and writer run: it writes the row from the source at once, and releases it. (`mysync dlq retry` has nothing to apply.)",
    retriable: false,
  },
  WRITER_CHANGE_REFUSED: {
    remedy:
      'The sink can never take this change as it is. Mend the value, the mapping or the sink, then restart the writer: it resumes at this change and nothing behind it was lost. (onPoison: park would set the row aside.)',
    retriable: false,
  },
});

/** Of a row whose message holds nothing but its key. */
export function rowWithheld(): Error {
  return writerErrors.WRITER_ROW_WITHHELD({ message: 'the row is larger than the log takes' });
}
