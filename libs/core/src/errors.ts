/**
 * Errors that an operator can act on.
 *
 * Each room declares its own catalogue with `errorCatalogue`; a code is unique in the whole system, never reused and
 * never changed (a test holds all catalogues against each other, and the reference page is generated from them).
 * Every error says what is wrong (message), where (key path, table, position, partition …) and what to do (remedy).
 */

export interface ErrorEntry {
  /** What to do about it: a whole sentence, with the exact statement or setting where there is one. */
  readonly remedy: string;
  /** True when the same call may succeed later without anybody acting: it is retried with backoff. */
  readonly retriable: boolean;
  /** `table`: no row of one table can be taken as the mapping is. A writer may then set its rows aside one by one. */
  readonly scope?: 'table' | undefined;
}

export interface ErrorDetails {
  /** What is wrong, one sentence with the concrete values. */
  readonly message: string;
  /** Where: for example `{ table: 'shop.orders', position: 'binlog.000004:1234' }`. No secrets. */
  readonly where?: Readonly<Record<string, string | number>>;
  /** Replaces the catalogue's remedy where a more exact one is known. */
  readonly remedy?: string;
  readonly cause?: unknown;
}

/** An error of the catalogue. Its text never holds a secret, and its `toString` never a stack. */
export class MysyncError extends Error {
  readonly code: string;
  readonly retriable: boolean;
  readonly remedy: string;
  readonly scope: 'table' | undefined;
  readonly where: Readonly<Record<string, string | number>>;

  constructor(code: string, entry: ErrorEntry, details: ErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'MysyncError';
    this.code = code;
    this.retriable = entry.retriable;
    this.remedy = details.remedy ?? entry.remedy;
    this.scope = entry.scope;
    this.where = details.where ?? {};
  }

  /** A form for logs and for `--json`: no stack, causes as text. */
  toJSON(): Record<string, unknown> {
    const cause = this.#causeToTell;
    return { code: this.code, message: this.message, where: this.where, remedy: this.remedy, cause };
  }

  /** The text that an operator reads. */
  override toString(): string {
    const where = Object.entries(this.where).map(([key, value]) => `${key} ${value}`);
    const lines = [`${this.code}: ${this.message}`];
    if (where.length > 0) lines.push(`  where: ${where.join(', ')}`);
    const cause = this.#causeToTell;
    if (cause !== undefined) lines.push(`  cause: ${cause}`);
    lines.push(`  what to do: ${this.remedy}`);
    return lines.join('\n');
  }

  /** Nothing where the message says it already. */
  get #causeToTell(): string | undefined {
    const text = this.cause === undefined ? '' : causeText(this.cause);
    return text === '' || this.message.includes(text) ? undefined : text;
  }
}

export type ErrorCatalogue<T extends Record<string, ErrorEntry>> = {
  readonly [K in keyof T]: (details: ErrorDetails) => MysyncError;
} & { readonly entries: T };

/** Declares the errors of one room: an object with one maker per code. */
export function errorCatalogue<const T extends Record<string, ErrorEntry>>(entries: T): ErrorCatalogue<T> {
  const makers: Record<string, unknown> = { entries };
  for (const [code, entry] of Object.entries(entries)) {
    makers[code] = (details: ErrorDetails) => new MysyncError(code, entry, details);
  }
  return makers as ErrorCatalogue<T>;
}

/** True for a catalogue error, of the given code when one is given. */
export function isMysyncError(error: unknown, code?: string): error is MysyncError {
  return error instanceof MysyncError && (code === undefined || error.code === code);
}

/** The short text of anything thrown: messages joined down the chain of causes, none that one before it holds already, no stack. */
export function causeText(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  while (current !== undefined && parts.length < 5) {
    if (!(current instanceof Error)) {
      parts.push(String(current));
      break;
    }
    const errno = (current as NodeJS.ErrnoException).code;
    const text = current.message === '' ? current.name : current.message;
    const full = errno !== undefined && !text.includes(errno) ? `${errno}: ${text}` : text;
    if (!parts.some((part) => part.includes(full))) parts.push(full);
    current = current.cause;
  }
  return parts.join(' <- ');
}

/** As a log line shows an error: with code, place and remedy where it has them. */
export function errorForLog(error: unknown): unknown {
  return isMysyncError(error) ? error.toJSON() : causeText(error);
}

export const coreErrors = errorCatalogue({
  INTERNAL: {
    remedy: 'This is a defect of MySync: please report it with this text. Nothing was skipped; a restart is safe.',
    retriable: false,
  },
});
