export {
  MysqlCheckpointLook,
  MysqlCheckpointStore,
  type MysqlCheckpointStoreOptions,
  readMysqlSchemaHistory,
} from './mysql-store.ts';
export type { MysqlPlace } from './session.ts';
