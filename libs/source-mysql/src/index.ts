export type {
  BinlogSource,
  ServerIdentity,
  Snapshot,
  SnapshotProgress,
  SourceCommit,
  SourceItem,
  SourceKeepalive,
  SourceRow,
  SourceTableChange,
  SourceTransaction,
} from './port.ts';
