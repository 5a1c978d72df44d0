import { errorCatalogue } from '@mysync/core';

/** Errors of mappings: found by `mysync config check` where no schema is needed, else when a table is first prepared. */
export const mappingErrors = errorCatalogue({
  MAPPING_PATTERN_INVALID: {
    remedy:
      'Write a table pattern as database.table with * and ?, a leading ! to exclude; put names that hold a dot, a blank or a wildcard in backticks: `my.db`.`my table`.',
    retriable: false,
  },
  MAPPING_TEMPLATE_INVALID: {
    remedy:
      'Use {database}, {table}, {key}, {column:NAME}, or {NAME} for a key column; write {{ and }} for braces, and some text between two placeholders.',
    retriable: false,
  },
  MAPPING_KEY_INCOMPLETE: {
    remedy: 'Add {key}, or a placeholder for each missing key column, so that two rows never share a target key.',
    retriable: false,
    scope: 'table',
  },
  MAPPING_KEY_UNSTABLE: {
    remedy:
      "Use key columns only, or add the column to the table's partitionBy, so that a change of it becomes a delete and an insert.",
    retriable: false,
    scope: 'table',
  },
  MAPPING_KEY_ABSENT: {
    remedy:
      'Such a change was published before the reader knew the column as one of partitionBy, or by an older one. Where it was set aside: mysync dlq discard; then mysync verify --repair.',
    retriable: false,
  },
  MAPPING_COLUMN_UNKNOWN: {
    remedy: 'Correct the name in the mapping; column names are case-sensitive.',
    retriable: false,
    scope: 'table',
  },
  MAPPING_NAME_TAKEN: { remedy: 'Rename or exclude one of the two columns.', retriable: false, scope: 'table' },
});
