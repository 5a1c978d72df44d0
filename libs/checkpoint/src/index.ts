export { checkpointErrors } from './errors.ts';
export { FileCheckpointStore, type FileCheckpointStoreOptions, readCheckpointFile } from './file-store.ts';
export type { Checkpoint, CheckpointStore, PartitionCheckpoint, SnapshotState } from './port.ts';
