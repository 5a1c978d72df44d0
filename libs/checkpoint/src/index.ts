export type { Checkpoint, CheckpointStore, PartitionCheckpoint, SnapshotState } from './port.ts';
