import type { CheckpointStore, SchemaHistoryStore } from '@mysync/checkpoint';
import type { BinlogPosition, Clock, Logger, TableRef } from '@mysync/core';
import type { BinlogSource, SnapshotProgress } from '@mysync/source-mysql';
import type { Metrics } from '@mysync/telemetry';
import type { TopicSpec, Transport } from '@mysync/transport';
import type { LargeRowPolicy } from './large-rows.ts';

/** What to do when rows of a table changed, or may have, and the log does not show how. */
export type UnseenPolicy = 'resync' | 'stop' | 'warn';

/** Where a source without a checkpoint begins. */
export type StartAt = 'snapshot' | 'latest' | 'earliest' | BinlogPosition;

export interface ReaderOptions {
  readonly sourceName: string;
  readonly source: BinlogSource;
  readonly transport: Transport;
  readonly topic: TopicSpec;
  readonly checkpoints: CheckpointStore;
  /** The one that the source keeps; it begins anew where it does not go with the checkpoint. */
  readonly schemaHistory?: SchemaHistoryStore;
  readonly start: StartAt;
  /** `resync`: read the table again; `warn`: go on, the table is listed as missing rows. */
  readonly onUnseenChange: (table: TableRef) => UnseenPolicy;
  readonly onLargeRow: (table: TableRef) => LargeRowPolicy;
  /** Rows that an ALTER does not change keep their old shape in the sinks, or the table is read again. */
  readonly onAlter: 'keep' | 'resync';
  /** Hash over what decides which changes are published under which numbers. */
  readonly configFingerprint: string;
  /** Bounds of all ack windows together: this is what a slow transport may cost in memory. */
  readonly windowMessages: number;
  readonly windowBytes: number;
  readonly batchMessages: number;
  /** A heartbeat goes into every partition this often. */
  readonly heartbeatMs: number;
  /** The checkpoint is saved at most this often. */
  readonly checkpointMs: number;
  /** The same while nothing captured changes. */
  readonly idleCheckpointMs: number;
  /** How long a stop waits for what is in flight. */
  readonly drainMs: number;
  readonly onSnapshotProgress: (progress: SnapshotProgress) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}
