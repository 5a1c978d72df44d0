export {
  type ChangeId,
  changeVersion,
  type Delivery,
  NO_CHANGE,
  nextTransactionCounter,
  type Operation,
  ORDINAL_BITS,
} from './change.ts';
export { type Clock, systemClock } from './clock.ts';
export { Contact, longest } from './contact.ts';
export {
  causeText,
  coreErrors,
  type ErrorCatalogue,
  type ErrorDetails,
  type ErrorEntry,
  errorCatalogue,
  errorForLog,
  isMysyncError,
  MysyncError,
} from './errors.ts';
export type { Finding } from './finding.ts';
export { makeFolder } from './folders.ts';
export { type GtidFlavor, type GtidSet, parseGtidSet } from './gtid-set.ts';
export { type MysqlGtidEntry, MysqlGtidSet } from './gtid-set-mysql.ts';
export { type LogFields, type Logger, silentLogger } from './logger.ts';
export { PASSING_MYSQL_ERRORS } from './mysql-errors.ts';
export { numberText } from './number-text.ts';
export type { Outage } from './outage.ts';
export {
  type BinlogPosition,
  binlogFileNumber,
  compareBinlogPositions,
  formatBinlogPosition,
  NO_POSITION,
  parseBinlogPosition,
  positionErrors,
  type SourcePosition,
} from './position.ts';
export {
  type Column,
  type ColumnKind,
  type ColumnValue,
  formatTableRef,
  type KeyRule,
  type RowKey,
  type TableRef,
  type TableSchema,
  tableRefKey,
} from './table.ts';
export { Turns } from './turns.ts';
export { MAX_WINDOW_MESSAGES } from './window-limit.ts';
