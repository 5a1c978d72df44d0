export {
  type AckOutcome,
  AckWindow,
  type AckWindowOptions,
  BATCH_TRANSITIONS,
  type Batch,
  type BatchAction,
  type BatchEvent,
  type BatchState,
  type PassedBatch,
  type RewindReason,
} from './ack-window.ts';
export {
  Backoff,
  type BackoffOptions,
  isRetriableError,
  type Retry,
  type RetryOptions,
  retryForever,
} from './backoff.ts';
export { BoundedQueue, type BoundedQueueOptions } from './bounded-queue.ts';
export {
  type AckedRun,
  type CheckpointProgress,
  CheckpointTracker,
  type CheckpointTrackerOptions,
  type PartitionMark,
  type TransactionEnd,
} from './checkpoint-tracker.ts';
export { flowErrors } from './errors.ts';
export {
  type GuardCounts,
  type GuardRule,
  type GuardState,
  guardStateAt,
  initialGuardState,
  SequenceGuard,
  type Verdict,
} from './sequence-guard.ts';
export {
  type DeliveryNumbers,
  recoverTail,
  type TailRecord,
  TailRecovery,
  type TailResult,
} from './tail-recovery.ts';
export { unlessAborted } from './unless-aborted.ts';
