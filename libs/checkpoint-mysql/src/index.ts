export { MysqlCheckpointStore, type MysqlCheckpointStoreOptions, readMysqlCheckpoint } from './mysql-store.ts';
export type { MysqlPlace } from './session.ts';
