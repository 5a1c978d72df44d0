/**
 * The port of the schema history: what is known of the tables of one source, by position in its log. What entries say is the source's own; here
 * they are kept in the order in which they were added.
 *
 * A store stands beside a checkpoint and is under the same ownership: whoever lost the checkpoint to a successor cannot add here either.
 * An entry is durable before any checkpoint beyond its position is stored, since adding it is awaited before its position is passed.
 */
import type { BinlogPosition, TableRef } from '@mysync/core';

export interface SchemaHistoryEntry {
  /** Of the event in the log that the entry is about. */
  readonly position: BinlogPosition;
  readonly table: TableRef;
  /** What `body` is. */
  readonly kind: string;
  /** JSON. */
  readonly body: Readonly<Record<string, unknown>>;
  /** ISO 8601, for people. */
  readonly recordedAt: string;
}

/** Names a history as it was at some time: a checkpoint holds it, so that a lost, cut or foreign history is noticed. */
export interface SchemaHistoryHead {
  readonly id: string;
  /** Rises with every `append`, never falls. */
  readonly sequence: number;
}

export interface SchemaHistory {
  readonly head: SchemaHistoryHead;
  /** In the order in which they were added. */
  readonly entries: readonly SchemaHistoryEntry[];
}

export interface SchemaHistoryStore {
  /** As of the last `load`, `begin` or `append`; null before. */
  readonly head: SchemaHistoryHead | null;
  /** null when none was begun. Throws `SCHEMA_HISTORY_INVALID` for a damaged or foreign one: never null for that. */
  load(): Promise<SchemaHistory | null>;
  /** Begins an empty one under a new id, in place of whatever is stored. */
  begin(): Promise<SchemaHistoryHead>;
  /**
   * Adds entries at the end, all or none; durable once it resolves. Calls are served one after another. Throws `CHECKPOINT_FENCED` when another owner has
   * taken over, and when none was begun.
   */
  append(entries: readonly SchemaHistoryEntry[]): Promise<SchemaHistoryHead>;
  /** Durably leaves only those that `keep` wants; the head stays. */
  prune(keep: (entry: SchemaHistoryEntry, index: number) => boolean): Promise<void>;
  close(): Promise<void>;
}

/** Whether a stored history has everything that it had when a checkpoint took down `head`. */
export function coversHead(stored: SchemaHistory | null, head: SchemaHistoryHead | null): stored is SchemaHistory {
  return stored !== null && head !== null && stored.head.id === head.id && stored.head.sequence >= head.sequence;
}
