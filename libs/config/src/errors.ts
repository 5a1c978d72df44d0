import { errorCatalogue } from '@mysync/core';

/** What can be wrong with a configuration. Patterns and templates keep the codes of the mapping room. */
export const configErrors = errorCatalogue({
  CONFIG_FILE_MISSING: {
    remedy: 'Name the file with --config FILE or MYSYNC_CONFIG, or write mysync.yaml in the working directory.',
    retriable: false,
  },
  CONFIG_FILE_UNREADABLE: { remedy: 'Let the user that runs MySync read the file.', retriable: false },
  CONFIG_SYNTAX: { remedy: 'Correct the YAML at the place named.', retriable: false },
  CONFIG_UNKNOWN_KEY: {
    remedy: 'Correct or remove the key; `mysync config options` lists every option.',
    retriable: false,
  },
  CONFIG_VALUE_INVALID: { remedy: 'Use one of the allowed values.', retriable: false },
  CONFIG_VALUE_MISSING: { remedy: 'Give the option a value.', retriable: false },
  CONFIG_NAME_INVALID: {
    remedy: 'Use letters, digits, - and _, beginning with a letter or digit, at most 63 characters.',
    retriable: false,
  },
  CONFIG_CONFLICT: { remedy: 'Change one of the options named, so that they fit together.', retriable: false },
  CONFIG_SECRET_MISSING: {
    remedy: 'Set the environment variable, or write the file, that the option refers to.',
    retriable: false,
  },
  CONFIG_SECRET_PLAIN: {
    remedy:
      'Refer to it: { env: NAME } or { file: PATH }. A plain secret is seen by whoever reads the file or the command line.',
    retriable: false,
  },
  CONFIG_ENVIRONMENT_UNKNOWN: {
    remedy: 'Correct or remove the variable; `mysync config options` lists every option with its variable.',
    retriable: false,
  },
  CONFIG_FLAG_INVALID: {
    remedy: 'Write --section.key=VALUE or --set section.key=VALUE.',
    retriable: false,
  },
});
