/**
 * The checkpoint port: where a reader resumes, and what it must know to go on numbering (design: position and checkpoint).
 *
 * Every write names the epoch it replaces and is refused when another one stands there, so a frozen predecessor cannot put an older
 * checkpoint back.
 */
import type { ChangeId, SourcePosition, TableRef } from '@mysync/core';
import type { SchemaHistoryHead, SchemaHistoryStore } from './schema-history.ts';

/** What the guard knew of a partition at the last acked message that the checkpoint covers. */
export interface PartitionCheckpoint {
  readonly epoch: number;
  readonly generation: number;
  /** Last acked sequence; 0 before the first. */
  readonly sequence: number;
  /** Log offset of that message; the log's first offset − 1 before the first. */
  readonly offset: number;
  readonly change: ChangeId;
}

/** From this place in the source's log on, the transaction counter is at least this. */
export interface CounterFloor {
  readonly file: string;
  readonly offset: number;
  /** Of the last transaction before that place, at least. */
  readonly transactionCounter: number;
}

export interface SnapshotState {
  /** 'running': started and not finished: started over at the next start, with a sweep. */
  readonly state: 'none' | 'running' | 'done';
  /** Tables (database.table) of which the log holds every row. */
  readonly completeTables: readonly string[];
  /**
   * Tables that are to be read again: their cause may lie before the position, their rows are not all in the log. Absent where there is none.
   */
  readonly wantedTables?: readonly TableRef[];
  /**
   * Tables that consumers may hold rows of, whether they are still there or not. When their database is dropped, the log does not name them.
   * Absent in checkpoints of earlier versions.
   */
  readonly knownTables?: readonly TableRef[];
}

export interface Checkpoint {
  readonly source: string;
  /** After the last transaction of which every message is acked, contiguous over all partitions. */
  readonly position: SourcePosition;
  /** Identity of the server the position is of. */
  readonly serverUuid: string;
  /** Transaction counter at `position`: the next transaction gets one more. */
  readonly transactionCounter: number;
  /** Highest reader epoch ever used; stored before its first use. */
  readonly epoch: number;
  /** Last producer identity the transport gave; stored before its first use. */
  readonly producer: { readonly id: string; readonly epoch: number } | null;
  readonly topic: { readonly name: string; readonly id: string; readonly partitions: number };
  /** Hash over what decides which changes are published under which numbers: filters, keys, partitioning. */
  readonly configFingerprint: string;
  readonly partitions: readonly PartitionCheckpoint[];
  readonly snapshot: SnapshotState;
  /**
   * After a recovery: what is read again must not fall below the versions that sinks already hold from there. In the order of the log; absent
   * once the position is past the last one.
   */
  readonly floors?: readonly CounterFloor[];
  /** The schema history that goes with this checkpoint, as it was then; null when none is kept. */
  readonly schemaHistory: SchemaHistoryHead | null;
  /** ISO 8601, for people. */
  readonly savedAt: string;
}

export interface CheckpointStore {
  /** null when there is none. Throws `CHECKPOINT_INVALID` for a truncated or foreign one: never null for that. */
  load(): Promise<Checkpoint | null>;
  /**
   * Replaces the stored checkpoint durably and atomically. `replaces` is the epoch that the caller believes is stored (null: none);
   * throws `CHECKPOINT_FENCED` when it is another one.
   */
  save(checkpoint: Checkpoint, replaces: number | null): Promise<void>;
  close(): Promise<void>;
}

/** What a reader owns: its checkpoint, and the schema history under the same ownership. */
export interface OwnedCheckpointStore extends CheckpointStore {
  /** Closed with this store. */
  schemaHistory(): Promise<SchemaHistoryStore>;
}
