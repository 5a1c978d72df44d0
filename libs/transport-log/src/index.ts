export { isLogThere } from './directory.ts';
export { logErrors } from './errors.ts';
export type { MaintenanceOptions } from './maintenance.ts';
export type { Fsync } from './store.ts';
export { LogTransport, type LogTransportOptions } from './transport.ts';
