import type { CheckpointStore } from '@mysync/checkpoint';
import type { BinlogPosition, Clock } from '@mysync/core';
import type { BinlogSource, SnapshotProgress } from '@mysync/source-mysql';
import type { Logger, Metrics } from '@mysync/telemetry';
import type { TopicSpec, Transport } from '@mysync/transport';

/** Where a source without a checkpoint begins. */
export type StartAt = 'snapshot' | 'latest' | 'earliest' | BinlogPosition;

export interface ReaderOptions {
  readonly sourceName: string;
  readonly source: BinlogSource;
  readonly transport: Transport;
  readonly topic: TopicSpec;
  readonly checkpoints: CheckpointStore;
  readonly start: StartAt;
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
  /** How long a stop waits for what is in flight. */
  readonly drainMs: number;
  readonly onSnapshotProgress: (progress: SnapshotProgress) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}
