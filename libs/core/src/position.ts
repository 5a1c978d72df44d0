/**
 * Source positions as value objects.
 *
 * A `BinlogPosition` is the name of a log file and the byte offset after an event; it means something on one server
 * only. File names end in a number that grows past six digits (`bin.999999` is followed by `bin.1000000`), so files are
 * ordered by that number, never as text (MySQL manual, "The Binary Log").
 */
import { errorCatalogue } from './errors.ts';

export const positionErrors = errorCatalogue({
  POSITION_INVALID: {
    remedy: 'Write a position as FILE:OFFSET, for example binlog.000004:1234, as SHOW BINARY LOG STATUS prints it.',
    retriable: false,
  },
});

export interface BinlogPosition {
  readonly file: string;
  /** Bytes; may exceed 2^32, never 2^53. */
  readonly offset: number;
}

/** Where to resume: always a transaction boundary. `gtidSet` is the executed set there, '' where GTIDs are off. */
export interface SourcePosition extends BinlogPosition {
  readonly gtidSet: string;
  /**
   * When the server began the file, in seconds since 1970, as the file itself says: another time under the same name is another file (the log was
   * reset). Missing where nobody has read the file yet.
   */
  readonly fileCreated?: number;
}

/** Nowhere: of a checkpoint whose snapshot has not begun. */
export const NO_POSITION: SourcePosition = { file: '', offset: 0, gtidSet: '' };

const FILE = /^(.*)\.(\d+)$/;

/** The number at the end of a binlog file's name. */
export function binlogFileNumber(file: string): number {
  const match = FILE.exec(file);
  const number = match === null ? Number.NaN : Number(match[2]);
  if (!Number.isSafeInteger(number)) {
    throw positionErrors.POSITION_INVALID({ message: `'${file}' is not the name of a binlog file` });
  }
  return number;
}

/** Negative when a comes first, 0 when equal, positive when b comes first. */
export function compareBinlogPositions(a: BinlogPosition, b: BinlogPosition): number {
  if (a.file !== b.file) {
    const files = binlogFileNumber(a.file) - binlogFileNumber(b.file);
    if (files !== 0) return files;
  }
  return a.offset - b.offset;
}

export function formatBinlogPosition(position: BinlogPosition): string {
  return `${position.file}:${position.offset}`;
}

export function parseBinlogPosition(text: string): BinlogPosition {
  const at = text.lastIndexOf(':');
  const file = text.slice(0, Math.max(at, 0));
  const digits = text.slice(at + 1);
  const offset = Number(digits);
  if (!FILE.test(file) || !/^\d+$/.test(digits) || !Number.isSafeInteger(offset)) {
    throw positionErrors.POSITION_INVALID({ message: `'${text}' is not a binlog position` });
  }
  return { file, offset };
}
