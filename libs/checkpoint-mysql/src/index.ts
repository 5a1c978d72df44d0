export {
  MysqlCheckpointStore,
  type MysqlCheckpointStoreOptions,
  readMysqlCheckpoint,
  readMysqlSchemaHistory,
} from './mysql-store.ts';
export type { MysqlPlace } from './session.ts';
