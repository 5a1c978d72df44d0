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

const ignore = (): void => undefined;

/** Says nothing; what a room uses that was given no logger. */
export const silentLogger: Logger = {
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  child: () => silentLogger,
};
