import { errorCatalogue } from '@mysync/core';

/** Errors of the Redis sink alone; those that every sink raises are `sinkErrors`. */
export const redisErrors = errorCatalogue({
  REDIS_KEY_SHARED: {
    remedy: 'Put {table} (and {database}) into the key template, or give each table a rule with a key of its own.',
    retriable: false,
    scope: 'table',
  },
  REDIS_INDEX_CROSS_SLOT: {
    remedy:
      'In a cluster the index key and the row key need the same hash tag, for example key {{{column:customer}}}:order:{key} and index {{{column:customer}}}:orders.',
    retriable: false,
    scope: 'table',
  },
  REDIS_INDEX_INVALID: {
    remedy: 'Give a sorted-set index a score: the name of a column of a number type; a set has none.',
    retriable: false,
    scope: 'table',
  },
  REDIS_PARTIAL_ROW: {
    remedy: 'Set binlog_row_image=FULL on the source, or map this table as hash.',
    retriable: false,
  },
  REDIS_SLOTS_MOVING: {
    remedy: 'Slots are being moved; the writer tries again until that is done.',
    retriable: true,
  },
  REDIS_VERSION_OLD: { remedy: 'Use Redis 6.2 or later, or a compatible server.', retriable: false },
  REDIS_EVICTION: { remedy: 'CONFIG SET maxmemory-policy noeviction', retriable: false },
  REDIS_READ_ONLY: { remedy: 'Name the master (or use cluster: true), not a replica.', retriable: true },
  REDIS_DB_UNKNOWN: {
    remedy:
      "Set the sink's db (or the number at the end of its url) to a database that the server has: below its setting `databases`; 0 where it is a node of a cluster, or behind a proxy that knows no SELECT. Then restart the writer.",
    retriable: false,
  },
  REDIS_REPLY_UNEXPECTED: {
    remedy:
      'Redis answered with an error that MySync does not know. Nothing was skipped: mend its cause and restart the writer.',
    retriable: false,
  },
});
