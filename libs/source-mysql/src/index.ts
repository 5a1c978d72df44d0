export { sourceErrors } from './errors.ts';
export type { HostAddress, MysqlSourceOptions, SourceTls, TableRule } from './options.ts';
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
  StartIntent,
  TableReader,
} from './port.ts';
export { createMysqlSource } from './source.ts';
