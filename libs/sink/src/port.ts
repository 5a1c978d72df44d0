/**
 * The sink port: a store that is kept equal to the captured tables. Adapters: `sink-redis`, `sink-elasticsearch`, later more.
 * One conformance suite (`@mysync/sink/conformance`) holds them to every contract below.
 *
 * Whatever a sink stores carries its version; deletions too, for as long as a stale writer could still send
 * (design: writers). An equal version counts as done, an older one is refused.
 */
import type { ColumnValue, Finding, RowKey, TableRef, TableSchema } from '@mysync/core';
import type { SinkInspector } from './inspector.ts';

/** A row's newest state. At most one change per key in a batch: the writer has collapsed the rest. */
export interface PutChange {
  readonly kind: 'put';
  readonly schema: TableSchema;
  readonly key: RowKey;
  /** In the order of `schema.columns`; undefined where the image lacks the column: the stored value stays. */
  readonly row: readonly ColumnValue[];
  readonly version: bigint;
  readonly offset: number;
}

export interface DeleteChange {
  readonly kind: 'delete';
  readonly schema: TableSchema;
  readonly key: RowKey;
  /** The before image; key columns are always there. */
  readonly row: readonly ColumnValue[];
  readonly version: bigint;
  readonly offset: number;
}

/**
 * Remove this partition's records of the table with a lower version (TRUNCATE, DROP; and the sweep after a snapshot).
 * Comes alone in a batch.
 */
export interface ClearChange {
  readonly kind: 'clear';
  readonly table: TableRef;
  readonly version: bigint;
  readonly offset: number;
  /** Records that stay though they are older, named as by `SinkInspector.targetOf`: their rows are there, but could not be taken. */
  readonly keep?: ReadonlySet<string>;
}

export type SinkChange = PutChange | DeleteChange | ClearChange;

/**
 * How far the sink surely is, per source topic and partition, kept beside its data. Opaque to the sink: it stores
 * and compares the text as it is.
 */
export interface MarkerMove {
  /** The marker this writer read or wrote last; null when there was none. */
  readonly expected: string | null;
  readonly next: string;
}

export interface ApplyBatch {
  /** Names the stream of the marker and of the stored records: topic and partition. */
  readonly stream: StreamRef;
  readonly changes: readonly SinkChange[];
  readonly marker: MarkerMove;
}

export interface StreamRef {
  readonly topic: string;
  readonly partition: number;
}

export type ApplyOutcome =
  /** All there; `stale` of them were refused because something newer was stored. */
  | { readonly status: 'applied'; readonly stale: number }
  /** The marker is another one: another writer was here. Nothing of the marker moved; read it again and resume there. */
  | { readonly status: 'marker-moved' }
  /**
   * Changes that can never succeed as they are (a mapping error, a wrong type at the key). The marker did not move;
   * the other changes of the batch may or may not be there: applying them again is harmless.
   */
  | { readonly status: 'refused'; readonly refusals: readonly Refusal[] };

export interface Refusal {
  /** Place in what was handed over: `ApplyBatch.changes`, an inspector's rows or targets. */
  readonly index: number;
  /** An error of the sink's catalogue, not retriable. */
  readonly error: Error;
}

export interface Sink {
  readonly kind: string;

  /** What `mysync check` says: reachable, version, eviction policy, settings. Never throws for a finding. */
  check(): Promise<readonly Finding[]>;

  /**
   * Prepares for rows of this schema (compiles the mapping, creates or extends the index). Called before the first batch that
   * holds it, and for each new fingerprint. Throws a catalogue error when the mapping does not fit the table (a column that is not there, a
   * target key that does not contain the row's key).
   */
  prepare(schema: TableSchema): Promise<void>;

  /** True when some rule maps this table; changes of other tables are not handed over. */
  accepts(table: TableRef): boolean;

  /** The stored marker, or null. Throws when what stands there is not a marker. */
  readMarker(stream: StreamRef): Promise<string | null>;

  /**
   * Which servers hold the stream's data, as a short text; asked for after `readMarker`. Only where a row may be lost with its server though the marker that follows it is not
   * (a cluster): when this text is another one than when the marker was written, the writer applies again what it applied shortly before.
   */
  holders?(stream: StreamRef): Promise<string>;

  /**
   * Makes the batch visible and moves the marker, as atomically as the store allows: never the marker before the changes.
   * A transient failure (connection, overload, failover) rejects with a `retriable` catalogue error; the caller
   * calls again with the same batch, so it must be idempotent. Never applied in part out of order for one key.
   */
  apply(batch: ApplyBatch, signal: AbortSignal): Promise<ApplyOutcome>;

  /**
   * Calls back when the store may have lost something that it had confirmed (reconnect, change of role, slot map
   * change): writers then read their marker again. There is one callback, the last one given: a writer that begins anew
   * takes the place of the one before.
   */
  onDoubt(callback: (reason: string) => void): void;

  /** What is stored, for `mysync verify`. */
  readonly inspector: SinkInspector;

  close(): Promise<void>;
}
