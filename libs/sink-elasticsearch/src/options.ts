/** What a rule and the sink can be told; `libs/config` declares the same options for the configuration file. */
import type { Clock, Logger } from '@mysync/core';
import type { Mask } from '@mysync/mapping';

/** A field's mapping as Elasticsearch writes it, for example `{ type: 'text', analyzer: 'english' }`. */
export type FieldMapping = Readonly<Record<string, unknown>>;

export interface ElasticsearchRule {
  /** Table patterns: `shop.orders`, `shop.*`, `!shop.secret`. */
  readonly match: string | readonly string[];
  /** Index name: text with {database} and {table}. Default `{database}-{table}`, lower-cased and escaped. */
  readonly index?: string;
  /** Document id. Default `{key}`. Must hold the whole key. */
  readonly id?: string;
  /** What to do with an id of over 512 bytes: `hash` (default: `~` and its SHA-256) or `refuse` the change. */
  readonly longIds?: 'hash' | 'refuse';
  readonly fields?: readonly string[];
  readonly exclude?: readonly string[];
  readonly rename?: Readonly<Record<string, string>>;
  readonly mask?: Readonly<Record<string, Mask>>;
  /** Columns that a change of which is sent as delete and insert; an `id` may hold them. */
  readonly partitionBy?: readonly string[];
  /** Column name → mapping, in place of the derived one. */
  readonly mappings?: Readonly<Record<string, FieldMapping>>;
  /** Index settings at creation, for example `{ 'index.number_of_shards': 3 }`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** What the index does with fields it does not know; default `false`: they stand in the source, not in the index. */
  readonly dynamic?: 'false' | 'strict' | 'true';
  /**
   * Dates that are no day of the calendar (`0000-00-00`, `2024-02-00`, `2024-02-31`): `raw` (default): null, and the text in
   * `NAME_raw` · `null`: null alone · `refuse` the change.
   */
  readonly zeroDates?: 'raw' | 'null' | 'refuse';
  /** `string` (default): exact text in a keyword · `scaled_float` by the column's scale · `double`. The source keeps the exact text always. */
  readonly decimals?: 'string' | 'scaled_float' | 'double';
  /** JSON columns: `text` (default): the exact text, not indexed · `object`: embedded, not indexed · `flattened`. */
  readonly json?: 'text' | 'object' | 'flattened';
  /** SET columns: `array` (default) of the members · `text` as MySQL prints it. */
  readonly sets?: 'array' | 'text';
  /** Make each batch visible to searches before it counts as applied. Default false: within `index.refresh_interval`. */
  readonly refresh?: boolean;
}

export interface ElasticsearchTls {
  /** PEM. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface ElasticsearchSinkOptions {
  /** The sink's name: part of the markers' ids, so that two sinks can share a cluster. */
  readonly name: string;
  /** `http://host:9200`; several for the nodes of one cluster. No user or password in here. */
  readonly nodes: readonly string[];
  readonly auth?: { readonly username: string; readonly password: string } | { readonly apiKey: string };
  readonly tls?: ElasticsearchTls;
  readonly rules: readonly ElasticsearchRule[];
  /** Default `mysync-markers`. */
  readonly markerIndex?: string;
  /** Name of the field with stream, table and version in each document. Default `_mysync`. */
  readonly metaField?: string;
  /** Most characters of one bulk request; a larger document goes alone. Default 8 Mi. */
  readonly maxBulkBytes?: number;
  /** gzip the requests. Default false. */
  readonly compression?: boolean;
  /** Default 60,000. */
  readonly requestTimeoutMs?: number;
  /** At least this long deletions keep their version. Default 3,600 (`index.gc_deletes`). */
  readonly gcDeletesSeconds?: number;
  /** The marker is read again before a batch when it was last confirmed longer ago than this. Default 5,000. */
  readonly ownershipCheckMs?: number;
  /** How often is looked whether an index was restored. Default 30,000. */
  readonly restoreCheckMs?: number;
  /** Put an index template for each index, so that nothing makes it by chance with another mapping. Default true. */
  readonly templates?: boolean;
  readonly clock?: Clock;
  readonly logger?: Logger;
}
