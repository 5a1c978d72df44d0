import { errorCatalogue } from '@mysync/core';

/** What the command itself finds, besides what the rooms find. */
export const commandErrors = errorCatalogue({
  COMMAND_INVALID: {
    remedy: '`mysync help` lists the commands, `mysync COMMAND --help` the options of one.',
    retriable: false,
  },
  COMMAND_NAME_UNKNOWN: {
    remedy: 'Use a name of the configuration; `mysync config print` shows it.',
    retriable: false,
  },
  COMMAND_VALUE_INVALID: {
    remedy: 'Use one of the allowed values.',
    retriable: false,
  },
  COMMAND_STOPPED: {
    remedy: 'What it says is no answer, and what it had begun may be done in part: call it again.',
    retriable: true,
  },
  RECOVER_NOT_NEEDED: {
    remedy: 'Nothing was changed: checkpoint, log and sinks belong together. Start the reader.',
    retriable: false,
  },
  RECOVER_IMPOSSIBLE: {
    remedy: 'Nothing was changed. Start again with a snapshot: docs/runbook/start-again.md.',
    retriable: false,
  },
  RECOVER_LOG_NOT_EMPTY: {
    remedy:
      'Nothing was changed. The topic was made anew and somebody wrote into it: remove it, stop whoever writes, then recover.',
    retriable: false,
  },
  RECOVER_CONFIG_CHANGED: {
    remedy:
      'Nothing was changed. Recover with the configuration that the reader ran with last (tables, keys, partitioning, partitions), then change it.',
    retriable: false,
  },
  STATUS_LATE: {
    remedy:
      'It may be down, frozen, or cut off: look whether it runs and can be reached from here, then ask again. All else that status shows is right.',
    retriable: true,
  },
  CHECK_PATTERN_UNUSED: {
    remedy: 'Correct the pattern, create the table, or let the user see it (GRANT SELECT).',
    retriable: false,
  },
  CHECK_TABLE_UNUSED: {
    remedy: 'Give a sink a rule that matches the table, or do not capture it.',
    retriable: false,
  },
  CHECK_RULE_UNUSED: {
    remedy: 'Correct the `match` of the rule, or capture the table.',
    retriable: false,
  },
});
