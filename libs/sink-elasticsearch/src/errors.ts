import { errorCatalogue } from '@mysync/core';

/** Errors of Elasticsearch alone; what every sink raises stands in `sinkErrors`. */
export const elasticsearchErrors = errorCatalogue({
  ES_OPTION_INVALID: { remedy: 'Correct the option of the sink in the configuration.', retriable: false },
  ES_VERSION_UNSUPPORTED: {
    remedy: 'Use Elasticsearch 8 or 9; other products that speak a similar protocol are not supported by this sink.',
    retriable: false,
  },
  ES_INDEX_NAME_INVALID: {
    remedy: "Give the table an `index` of its own: at most 255 bytes, and not only '.' or '..'.",
    retriable: false,
    scope: 'table',
  },
  ES_INDEX_COLLISION: {
    remedy:
      'Give one of the tables another `index`, or, to keep both in one index, an `id` for both that holds {database} and {table}, for example {database}.{table}:{key}.',
    retriable: false,
    scope: 'table',
  },
  ES_FIELD_COLLISION: {
    remedy: 'Rename or exclude one of the two columns in the rule (`rename`, `exclude`).',
    retriable: false,
    scope: 'table',
  },
  ES_TOO_MANY_FIELDS: {
    remedy:
      "Exclude columns, or raise index.mapping.total_fields.limit in the rule's `settings` (for an index that exists: PUT /INDEX/_settings).",
    retriable: false,
    scope: 'table',
  },
  ES_MAPPING_REFUSED: {
    remedy:
      "Correct the rule's `mappings` or `settings`, or the index template that gets in the way; the cause is Elasticsearch's own text.",
    retriable: false,
    scope: 'table',
  },
  ES_INDEX_LOST: {
    remedy:
      'Rebuild the sink: stop its writers, delete its indices, then its markers (POST /MARKERINDEX/_delete_by_query with {"query":{"term":{"sink":"NAME"}}}), reset its consumer group and start the writers.',
    retriable: false,
  },
  ES_READ_ONLY: {
    remedy:
      'Free disk space (Elasticsearch then lifts the block itself), or lift it: PUT /INDEX/_settings {"index.blocks.read_only_allow_delete":null,"index.blocks.write":null}; open a closed index: POST /INDEX/_open. The writer goes on trying.',
    retriable: true,
  },
  ES_GC_DELETES_LOW: {
    remedy: 'PUT /INDEX/_settings {"index.gc_deletes":"1h"}: older writes could revive deleted documents.',
    retriable: false,
  },
  ES_TRANSLOG_ASYNC: {
    remedy:
      'PUT /INDEX/_settings {"index.translog.durability":"request"}: else confirmed changes may be lost when a node dies.',
    retriable: false,
  },
  ES_FIELD_DIFFERS: {
    remedy:
      'Documents that do not fit the field are refused. To use the new type, make a new index (change `index` in the rule) and rebuild.',
    retriable: false,
  },
  ES_HEALTH: { remedy: 'GET /_cluster/allocation/explain tells why shards are not assigned.', retriable: true },
  ES_REQUEST_REFUSED: {
    remedy: 'Elasticsearch refused the request as such; the cause is its own text. Nothing was skipped.',
    retriable: false,
  },
});
