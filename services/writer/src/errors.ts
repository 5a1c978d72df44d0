import { errorCatalogue } from '@mysync/core';

export const writerErrors = errorCatalogue({
  WRITER_SINK_LOST: {
    remedy:
      'The sink holds no applied marker although this group has committed offsets: its data were lost or another store was connected. Rebuild it: stop the writer, delete the group (mysync reset --sink NAME) and start again.',
    retriable: false,
  },
  WRITER_TOPIC_CHANGED: {
    remedy:
      'The topic was deleted and made anew, or has another number of partitions, since the sink was filled. Rebuild the sink from the new topic: mysync reset --sink NAME.',
    retriable: false,
  },
  WRITER_LOG_TRUNCATED: {
    remedy:
      'The log no longer holds what this sink still needs: retention deleted it. Rebuild the sink: mysync reset --sink NAME, and a new snapshot if the log is not compacted.',
    retriable: false,
  },
  WRITER_MARKER_INVALID: {
    remedy: 'The applied marker in the sink is not one of this version of MySync. Restore it, or rebuild the sink.',
    retriable: false,
  },
  WRITER_CHANGE_REFUSED: {
    remedy:
      'The sink can never take this change as it is. Mend the value, the mapping or the sink, then restart the writer: it resumes at this change and nothing behind it was lost.',
    retriable: false,
  },
  WRITER_MAPPING_REFUSED: {
    remedy: 'Mend the mapping of this table in the configuration, then restart the writer: it resumes here.',
    retriable: false,
  },
});
