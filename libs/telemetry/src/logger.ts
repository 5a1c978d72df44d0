import type { Logger } from '@mysync/core';
import { type DestinationStream, pino } from 'pino';

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
