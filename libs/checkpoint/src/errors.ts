import { errorCatalogue } from '@mysync/core';

export const checkpointErrors = errorCatalogue({
  CHECKPOINT_INVALID: {
    remedy:
      'Put back a copy of this checkpoint from a backup. Without one, remove it (the file, or the row in mysync_checkpoint; a topic is deleted), and start with an empty topic and start: snapshot. Nothing was changed.',
    retriable: false,
  },
  CHECKPOINT_FENCED: {
    remedy:
      'Another reader of this source has taken over, or what named this one as the owner was removed; this one must stop. Run one reader per source, and start this one again if it should be the one.',
    retriable: false,
  },
  CHECKPOINT_LOCKED: {
    remedy:
      'Stop the process that holds the checkpoint. Two readers of one source are one too many: only another source needs a checkpoint of its own.',
    retriable: false,
  },
  CHECKPOINT_DISK_FULL: {
    remedy:
      'Free some space on the file system of the checkpoint (or raise the quota). It is tried again; nothing is lost meanwhile.',
    retriable: true,
  },
  CHECKPOINT_UNREACHABLE: {
    remedy:
      'Check that the server that keeps the checkpoint runs and can be reached from here. It is tried again; nothing is lost meanwhile.',
    retriable: true,
  },
  CHECKPOINT_DENIED: {
    remedy: 'Correct user and password of the store of the checkpoint, and give the user what the message names.',
    retriable: false,
  },
  CHECKPOINT_ACCESS_LOST: {
    remedy:
      'The store of the checkpoint denies what it let this user do before: give the user its password and rights back. It is tried again; other credentials need a restart. Nothing is lost meanwhile.',
    retriable: true,
  },
  CHECKPOINT_UNREADABLE: {
    remedy: 'Make the checkpoint file and its folder readable to this user.',
    retriable: false,
  },
  CHECKPOINT_UNWRITABLE: {
    remedy: 'Make the folder of the checkpoint writable to this user, on a local file system that knows hard links.',
    retriable: false,
  },
  SCHEMA_HISTORY_INVALID: {
    remedy:
      'Put back a copy of the schema history from the same backup as the checkpoint. Without one, remove it (the file PATH.schema, or the rows in mysync_schema_history): definitions are then asked from the server anew, where no DDL since the position forbids it. Nothing was changed.',
    retriable: false,
  },
});
