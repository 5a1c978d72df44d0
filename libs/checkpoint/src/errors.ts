import { errorCatalogue } from '@mysync/core';

export const checkpointErrors = errorCatalogue({
  CHECKPOINT_INVALID: {
    remedy:
      'Put back a copy of this checkpoint from a backup. Without one, move the file away, and start with an empty topic and start: snapshot. Nothing was changed.',
    retriable: false,
  },
  CHECKPOINT_FENCED: {
    remedy:
      'Another reader of this source has taken over; this one must stop. Run one reader per source, or use leader election, and restart this one if it should be the one.',
    retriable: false,
  },
  CHECKPOINT_LOCKED: {
    remedy: 'Stop the process that holds the checkpoint, or give this source another checkpoint path.',
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
      'Put back a copy of the schema history from the same backup as the checkpoint. Without one, move the file away: definitions are then asked from the server anew, where no DDL since the position forbids it. Nothing was changed.',
    retriable: false,
  },
});
