import { type DestinationStream, pino } from 'pino';

/** Where a line comes from: `component` and, where they apply, `source`, `sink`, `table`, `partition`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured log lines. Never one per row above `trace`. */
export interface Logger {
  trace(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Logger;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

const SECRET_PATHS = ['password', '*.password', 'sasl', '*.sasl', 'token', '*.token', 'passphrase', '*.passphrase'];

/** JSON lines on standard error (standard output belongs to the command's results), secrets redacted by key. */
export function createLogger(options: { level: LogLevel; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

const ignore = (): void => undefined;

export const silentLogger: Logger = {
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  child: () => silentLogger,
};
