export { sourceErrors } from './errors.ts';
export {
  answerQuestion,
  type DdlAnswer,
  describeHistory,
  type HistoryLine,
  requireOpenQuestion,
} from './history/answers.ts';
export type { HostAddress, MysqlSourceOptions, SourceTls, TableRule } from './options.ts';
export type {
  BinlogSource,
  ServerIdentity,
  Snapshot,
  SnapshotOptions,
  SnapshotProgress,
  SourceCommit,
  SourceItem,
  SourceKeepalive,
  SourceRow,
  SourceTableChange,
  SourceTransaction,
  SourceUnseenChange,
  StartIntent,
  StreamObserver,
  StreamOptions,
  TableFate,
  TableReader,
  UnseenCause,
} from './port.ts';
export { openFirst } from './server/first-host.ts';
export { secureOptions } from './server/secure-options.ts';
export type { ServerSession } from './server/session.ts';
export { surveyTables } from './snapshot/survey.ts';
export { createMysqlSource } from './source.ts';
