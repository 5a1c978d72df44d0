import { errorCatalogue } from '@mysync/core';

export const readerErrors = errorCatalogue({
  READER_LOG_WITHOUT_CHECKPOINT: {
    remedy:
      'Restore the checkpoint file, or take a new topic (sources.NAME.topic) and rebuild the sinks from it. To drop the old log on purpose, delete the topic.',
    retriable: false,
  },
  READER_TOPIC_CHANGED: {
    remedy:
      'The topic was deleted and made anew, or its partitions were changed, since the checkpoint. Delete the checkpoint to begin with a new snapshot, and rebuild the sinks.',
    retriable: false,
  },
  READER_SERVER_CHANGED: {
    remedy:
      'The source is another server than the one of the checkpoint (or was restored). Connect the right one, or delete the checkpoint and the topic to begin with a new snapshot.',
    retriable: false,
  },
  READER_LOG_TRUNCATED: {
    remedy:
      'The log no longer reaches back to the checkpoint: it was truncated or lost. Delete the checkpoint to begin with a new snapshot in a new topic.',
    retriable: false,
  },
  READER_CHECKPOINT_OF_OTHER_SOURCE: {
    remedy: 'Give each source a checkpoint of its own (checkpoint.path), or correct the source name.',
    retriable: false,
  },
});
