export { encodeCheckpoint, parseCheckpoint } from './checkpoint-codec.ts';
export { checkpointErrors } from './errors.ts';
export { readHistory as readSchemaHistoryFile } from './file-schema-history.ts';
export {
  FileCheckpointStore,
  type FileCheckpointStoreOptions,
  readCheckpointFile,
  schemaHistoryPath,
} from './file-store.ts';
export type {
  Checkpoint,
  CheckpointStore,
  CounterFloor,
  OwnedCheckpointStore,
  PartitionCheckpoint,
  SnapshotState,
} from './port.ts';
export {
  coversHead,
  type SchemaHistory,
  type SchemaHistoryEntry,
  type SchemaHistoryHead,
  type SchemaHistoryStore,
} from './schema-history.ts';
export { parseHistory as parseSchemaHistory } from './schema-history-codec.ts';
export { type OwnedLines, TextSchemaHistoryStore } from './text-schema-history.ts';
export { type OwnedText, TextCheckpointStore } from './text-store.ts';
