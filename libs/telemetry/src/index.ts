export { LagTracker } from './lag.ts';
export { createLogger, type LogLevel } from './logger.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { type HealthReport, TelemetryServer, type TelemetryServerOptions, telemetryErrors } from './server.ts';
