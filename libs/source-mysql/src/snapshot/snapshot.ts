/**
 * All captured tables at one position of the log.
 *
 * 1. One view: every row of every table (of a transactional engine) is as of `position`; the log from there on holds everything newer.
 * 2. Bounded: one batch is held; while nobody pulls, the socket is paused.
 * 3. A table that DDL changed before it was read is an error that starts the snapshot over, never a mixture.
 * 4. The lock that keeps DDL off a table while it is read is given back after it (savepoint), not kept until the end.
 * 5. A table is told as gone only if the server says so, later than `position`: then it was there at no later time, or the log behind `position` drops it.
 */
import { formatTableRef, type SourcePosition, type TableRef, tableRefKey } from '@mysync/core';
import { encodeTransaction } from '@mysync/wire';
import { sourceErrors } from '../errors.ts';
import type { ResolvedOptions } from '../options.ts';
import type { Snapshot, SnapshotOptions, SourceItem } from '../port.ts';
import { isGone, listTables } from '../schema/table-facts.ts';
import { quoteTable } from '../server/dialect.ts';
import { currentPosition } from '../server/log-state.ts';
import type { ServerSession } from '../server/session.ts';
import { openConsistentView } from './consistent-view.ts';
import { estimateRows } from './estimate.ts';
import { readTableRows, type TableReading, understandTable } from './table-rows.ts';

export interface OpenSnapshotOptions extends SnapshotOptions {
  readonly source: ResolvedOptions;
  openSession(): Promise<ServerSession>;
}

/** Between two calls of `onProgress` for one table. */
const PROGRESS_MS = 250;

export async function openSnapshot(options: OpenSnapshotOptions): Promise<Snapshot> {
  const reader = await options.openSession();
  let control: ServerSession | undefined;
  try {
    control = await options.openSession();
    await control.query('SET SESSION wait_timeout = 31536000');
    // MySQL else tells row counts of up to a day ago
    if (control.facts.flavor === 'mysql') await control.query('SET SESSION information_schema_stats_expiry = 0');
    const { source, only } = options;
    const wanted = only === undefined ? undefined : new Set(only.map(tableRefKey));
    const captures = (ref: TableRef): boolean => source.captures(ref) && (wanted?.has(tableRefKey(ref)) ?? true);
    const tables = await listTables(control, captures);
    if (tables.length === 0 && only === undefined) {
      throw sourceErrors.SOURCE_TABLES_NONE({ message: 'no table that the user can see is to be captured' });
    }
    const readings: TableReading[] = [];
    for (const table of tables) readings.push(await understandTable(control, table, source));
    const position =
      tables.length === 0
        ? await currentPosition(control)
        : await openConsistentView({ reader, control, tables, beside: only !== undefined });
    const listed = new Set(tables.map(tableRefKey));
    const unlisted = (only ?? []).filter((ref) => source.captures(ref) && !listed.has(tableRefKey(ref)));
    const gone = await goneOf(control, unlisted, captures);
    return new TableSnapshot({ ...options, reader, control, tables, gone, readings, position });
  } catch (error) {
    reader.close();
    control?.close();
    throw error;
  }
}

/** What consumers are told who want a statement: nobody logged one where we read. */
function dropOf(table: TableRef): string {
  return `DROP TABLE ${quoteTable(table)} /* gone, and the log did not show how */`;
}

/** Asked behind the view's place: one that is made in between must not be told as gone. */
async function goneOf(
  control: ServerSession,
  unlisted: readonly TableRef[],
  captures: (ref: TableRef) => boolean,
): Promise<readonly TableRef[]> {
  const gone: TableRef[] = [];
  for (const ref of unlisted) if (await isGone(control, ref)) gone.push(ref);
  if (gone.length === unlisted.length) return gone;
  const others = unlisted.filter((ref) => !gone.includes(ref)).map(tableRefKey);
  const made = (await listTables(control, captures)).find((ref) => others.includes(tableRefKey(ref)));
  if (made === undefined) return gone;
  const message = `table ${formatTableRef(made)} was made while the view of it was opened`;
  throw sourceErrors.SOURCE_SNAPSHOT_RESTART({ message, where: { table: formatTableRef(made) } });
}

interface TableSnapshotOptions extends OpenSnapshotOptions {
  readonly reader: ServerSession;
  readonly control: ServerSession;
  readonly tables: readonly TableRef[];
  readonly gone: readonly TableRef[];
  readonly readings: readonly TableReading[];
  readonly position: SourcePosition;
}

class TableSnapshot implements Snapshot {
  readonly #options: TableSnapshotOptions;
  readonly #closed = new AbortController();
  /** The caller's, or `close`. */
  readonly #signal: AbortSignal;
  readonly items: AsyncIterable<readonly SourceItem[]>;

  constructor(options: TableSnapshotOptions) {
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#closed.signal]);
    this.items = this.#read();
  }

  get position(): SourcePosition {
    return this.#options.position;
  }

  get serverUuid(): string {
    return this.#options.reader.facts.uuid;
  }

  get tables(): readonly TableRef[] {
    return this.#options.tables;
  }

  get gone(): readonly TableRef[] {
    return this.#options.gone;
  }

  close(): Promise<void> {
    this.#closed.abort();
    this.#options.reader.close();
    this.#options.control.close();
    return Promise.resolve();
  }

  async *#read(): AsyncGenerator<readonly SourceItem[]> {
    const { reader, readings, gone } = this.#options;
    try {
      await reader.query('SAVEPOINT mysync');
      for (const reading of readings) {
        yield* this.#readTable(reading);
        this.#signal.throwIfAborted();
        await reader.query('ROLLBACK TO SAVEPOINT mysync');
      }
      for (const table of gone) yield [{ kind: 'truncate', table, statement: dropOf(table), ordinal: 0 }];
    } finally {
      await this.close();
    }
  }

  async *#readTable(reading: TableReading): AsyncGenerator<readonly SourceItem[]> {
    const { reader, control, source, position, onProgress } = this.#options;
    const signal = this.#signal;
    const { table } = reading;
    const { clock } = source;
    const estimatedRows = await estimateRows(control, table);
    const transaction = encodeTransaction({
      source: source.name,
      serverUuid: this.serverUuid,
      id: { file: position.file, offset: position.offset, gtid: '', ordinal: 0 },
      commitTimeMicros: clock.now() * 1000,
    });
    let rows = 0;
    let reported = clock.monotonic();
    onProgress({ table, rows, estimatedRows, done: false });
    for await (const batch of readTableRows({ reader, control, reading, transaction, source, signal })) {
      signal.throwIfAborted();
      rows += batch.length;
      yield batch;
      if (clock.monotonic() - reported < PROGRESS_MS) continue;
      reported = clock.monotonic();
      onProgress({ table, rows, estimatedRows, done: false });
    }
    yield [{ kind: 'sweep', table, statement: '', ordinal: 0 }];
    onProgress({ table, rows, estimatedRows, done: true });
  }
}
