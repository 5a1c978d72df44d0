/** What the command prints: results on standard output, everything else on standard error. */
import { causeText, coreErrors, type Finding, isMysyncError, type MysyncError } from '@mysync/core';

export interface Output {
  /** Results: what another program may read. */
  result(text: string): void;
  /** For people. */
  note(text: string): void;
  /** Standard error is a terminal that can draw over itself. */
  readonly live: boolean;
  readonly columns: number;
}

/** Anything thrown as a catalogue error: what has no code of its own is a defect. */
export function asMysyncError(error: unknown): MysyncError {
  if (isMysyncError(error)) return error;
  return coreErrors.INTERNAL({ message: causeText(error), cause: error instanceof Error ? error.cause : undefined });
}

export function errorText(error: unknown): string {
  return asMysyncError(error).toString();
}

/** An error as the finding that `check` shows. */
export function errorFinding(error: unknown): Finding {
  const { code, message, remedy, where, cause } = asMysyncError(error);
  const place = Object.entries(where).map(([key, value]) => `${key} ${value}`);
  const because = cause === undefined ? '' : `: ${causeText(cause)}`;
  return {
    level: 'error',
    code,
    message: `${message}${because}${place.length > 0 ? ` (${place.join(', ')})` : ''}`,
    remedy,
  };
}

/** Columns padded to their widest cell; the last column is left as it is. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => {
      widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  }
  const line = (row: readonly string[]): string =>
    row.map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0))).join('  ');
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('');
}

/** `1 error, 2 warnings`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
