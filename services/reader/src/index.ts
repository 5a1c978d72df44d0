export { readerErrors } from './errors.ts';
export { leftTables, uncertainTable } from './known-table-warnings.ts';
export type { ReaderOptions, StartAt } from './options.ts';
export { Reader, type ReaderStatus } from './reader.ts';
export { belongingErrors } from './startup.ts';
