import { errorCatalogue } from '@mysync/core';

/** Errors of the embedded log alone; those that every transport shares stand in `@mysync/transport`. */
export const logErrors = errorCatalogue({
  LOG_CORRUPT: {
    remedy:
      'The log on disk is damaged or is not a log of MySync. Stop all processes, keep a copy of the directory, remove it, and start again with a snapshot: the source still has every row.',
    retriable: false,
  },
  LOG_VERSION: {
    remedy:
      'The log was written by another version of MySync. Use that version, or remove the directory and start again with a snapshot.',
    retriable: false,
  },
  LOG_PATH: {
    remedy:
      'Make the directory of transport.log.path writable for the user that runs MySync, on a local file system. Where it was removed under running processes, stop all of them and start them again: see `mysync recover`.',
    retriable: false,
  },
  LOG_DISK: {
    remedy: 'Free disk space where transport.log.path lies, or move it to a larger disk.',
    retriable: true,
  },
  LOG_WRITE_FAILED: {
    remedy:
      'The disk refused a write: see the cause, and the kernel log. Nothing was half stored; MySync goes on trying.',
    retriable: true,
  },
  LOG_STALLED: {
    remedy:
      'Continue (kill -CONT) or kill the stopped process that uses this log: `fuser -v data.mdb` in its directory lists them. Nothing is lost; it goes on by itself then.',
    retriable: true,
  },
  LOG_NAME_INVALID: {
    remedy: 'Use 1 to 200 letters, digits, dots, dashes and underscores.',
    retriable: false,
  },
  LOG_OPTIONS_DIFFER: {
    remedy: 'Open one log with one set of options within a process.',
    retriable: false,
  },
});
