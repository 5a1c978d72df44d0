import { formatTableRef, isMysyncError, type RowKey, type TableRef, type TableSchema } from '@mysync/core';
import type { SourceRow, TableReader } from '@mysync/source-mysql';
import { decodeKey } from '@mysync/wire';
import type { Again } from './again.ts';
import { verifierErrors } from './errors.ts';

export interface SteadyTableOptions {
  readonly table: TableRef;
  /** Another reader of the table: again after each lost connection. */
  open(): Promise<TableReader>;
  readonly again: Again;
}

/** A table that is read in one piece, as those without a key are, is not begun anew for ever. */
const MOST_RESTARTS = 10;

/**
 * The rows of a table, over lost connections.
 *
 * 1. It stays the table that it was: one that was altered or is gone ends with VERIFY_TABLE_CHANGED.
 * 2. A table that cannot be cut is one long result: rows by key are asked over a second connection meanwhile, since the first answers nothing else
 *    before its end.
 * 3. Chunks go on behind the last row that was handed over; a table that cannot be cut begins anew, and its rows come again (`cameAgain`).
 */
export class SteadyTable {
  readonly #options: SteadyTableOptions;
  readonly #first: TableReader;
  readonly #scan: Line;
  readonly #lookup: Line;
  #cameAgain = false;

  private constructor(options: SteadyTableOptions, first: TableReader) {
    this.#options = options;
    this.#first = first;
    this.#scan = { reader: first };
    this.#lookup = first.isCut ? this.#scan : { reader: undefined };
  }

  static async open(options: SteadyTableOptions): Promise<SteadyTable> {
    const { table, open, again } = options;
    return new SteadyTable(options, await again.call(() => told(table, open)));
  }

  get table(): TableRef {
    return this.#options.table;
  }

  get schema(): TableSchema {
    return this.#first.schema;
  }

  get estimatedRows(): number {
    return this.#first.estimatedRows;
  }

  /** Rows may have been handed over twice. */
  get cameAgain(): boolean {
    return this.#cameAgain;
  }

  async rows(keys: readonly RowKey[]): Promise<readonly SourceRow[]> {
    return await this.#options.again.call(async () => {
      try {
        return await told(this.table, async () => await (await this.#opened(this.#lookup)).rows(keys));
      } catch (error) {
        await drop(this.#lookup);
        throw error;
      }
    });
  }

  async *chunks(): AsyncGenerator<readonly SourceRow[]> {
    const place: { after: RowKey | null } = { after: null };
    const most = this.#first.isCut ? Number.POSITIVE_INFINITY : MOST_RESTARTS;
    for await (const chunk of this.#options.again.iterate(() => this.#chunks(place), most)) {
      yield chunk;
      const last = chunk[chunk.length - 1];
      if (last !== undefined) place.after = keyOf(last);
    }
  }

  async close(): Promise<void> {
    await drop(this.#scan);
    await drop(this.#lookup);
  }

  async *#chunks({ after }: { readonly after: RowKey | null }): AsyncGenerator<readonly SourceRow[]> {
    if (after !== null && !this.#first.isCut) this.#cameAgain = true;
    const rows = (await this.#opened(this.#scan)).chunks(after ?? undefined);
    try {
      yield* rows;
    } catch (error) {
      await drop(this.#scan);
      throw toldError(this.table, error);
    }
  }

  async #opened(line: Line): Promise<TableReader> {
    if (line.reader !== undefined) return line.reader;
    const reader = await told(this.table, this.#options.open);
    if (reader.schema.fingerprint !== this.schema.fingerprint) {
      await reader.close();
      throw changed(this.table, undefined);
    }
    line.reader = reader;
    return reader;
  }
}

/** A connection, and the reader that has it. */
interface Line {
  reader: TableReader | undefined;
}

async function drop(line: Line): Promise<void> {
  const { reader } = line;
  line.reader = undefined;
  await reader?.close();
}

async function told<T>(table: TableRef, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw toldError(table, error);
  }
}

/** What the source says of a snapshot, which it starts over, is not so here. */
function toldError(table: TableRef, error: unknown): unknown {
  return isMysyncError(error, 'SOURCE_SNAPSHOT_RESTART') ? changed(table, error.cause) : error;
}

function changed(table: TableRef, cause: unknown): Error {
  const name = formatTableRef(table);
  return verifierErrors.VERIFY_TABLE_CHANGED({
    message: `table ${name} was altered, dropped or renamed while it was compared`,
    where: { table: name },
    ...(cause === undefined ? {} : { cause }),
  });
}

function keyOf({ key }: SourceRow): RowKey {
  const decoded = decodeKey(key);
  if (decoded.kind !== 'row') throw new TypeError('the key of a row is no row key');
  return decoded.row;
}
