/**
 * What the stream knows of tables: for each, the map it saw last and what was made of it.
 *
 * A table map is looked at once per version: equal bytes mean an equal table, until a statement changes it. What the map does not say is
 * asked then: MariaDB's logical types and periods from the definitions by position, whether a key is the primary one from the catalogue.
 */
import { type BinlogPosition, formatBinlogPosition, formatTableRef, type TableRef, tableRefKey } from '@mysync/core';
import { compileTable } from '@mysync/wire';
import { columnReader } from '../binlog/row-reader.ts';
import { readTableMap, type TableMap, type TableMapColumn } from '../binlog/table-map.ts';
import { sourceErrors } from '../errors.ts';
import { periodOf, primaryKeyOf, type TableDefinition, uniqueKeysOf, virtualColumnsOf } from '../history/definition.ts';
import type { Definitions } from '../history/definitions.ts';
import { isDoubtful, type LogicalTypes } from '../history/doubtful-types.ts';
import { fit, Misfit } from '../history/fit.ts';
import type { ResolvedOptions } from '../options.ts';
import { type DoubtedColumns, doubtedColumns } from '../reread/doubted-columns.ts';
import type { LazySession } from '../server/lazy-session.ts';
import { compileTranscription, type TranscribedTable } from '../transcribe/compile-table.ts';
import type { RowPeriod } from '../transcribe/current-rows.ts';
import type { Charsets } from './charsets.ts';
import type { ColumnShape } from './column-shape.ts';
import { shapeOf } from './from-table-map.ts';
import { buildSchema, chooseKey, type KeyChoice, keyInLog, namedByHash } from './key-choice.ts';
import { mayHavePeriod, type Period, rowPeriodOf, withoutEnd } from './period.ts';
import { type CascadingKey, readCascades, readTableFacts } from './table-facts.ts';

export interface KnownTable extends TranscribedTable {
  readonly ref: TableRef;
  readonly columnCount: number;
  /** Its rows cannot be told from the history that is logged with them. */
  readonly isUnclear: boolean;
  /** Columns whose values in the log are not always those of the row. */
  readonly doubted: DoubtedColumns | null;
}

export interface TableBookOptions extends Pick<ResolvedOptions, 'captures' | 'tableRule' | 'logger'> {
  readonly flavor: 'mysql' | 'mariadb';
  readonly session: LazySession;
  readonly charsets: Charsets;
  /** For what table maps do not say; undefined: on MySQL nothing, where maps without full metadata are an error. */
  readonly definitions?: Pick<Definitions, 'typesOnly' | 'logicalTypes' | 'period' | 'at' | 'stop'> | undefined;
  /** Captured tables that are there at the start. */
  readonly listed: readonly TableRef[];
  /** By key: tables that were captured before, and may be gone. What this book learns is added, for the next one. */
  readonly known: Map<string, TableRef>;
  /** Views of all databases at the start. */
  readonly views: readonly TableRef[];
}

/** The columns of a MariaDB sequence, which is logged as if it were a table. */
const SEQUENCE =
  'next_not_cached_value,minimum_value,maximum_value,start_value,increment,cache_size,cycle_option,cycle_count';

/** A table as its rows have it. */
interface TableMeaning {
  readonly columns: readonly TableMapColumn[];
  readonly shapes: readonly ColumnShape[];
  readonly key: KeyChoice;
  readonly period: RowPeriod | 'unclear' | null;
  /** Computed columns, where there is a period. */
  readonly virtual: ReadonlySet<string>;
}

interface Page {
  readonly ref: TableRef;
  /** The map's bytes behind the table id. */
  readonly identity: Buffer;
  readonly table: KnownTable | null;
}

/** The table id in front of what a map says of its table. */
const TABLE_ID_BYTES = 6;

function isOf({ identity }: Page, buffer: Buffer, start: number, end: number): boolean {
  const from = start + TABLE_ID_BYTES;
  return identity.length === end - from && buffer.compare(identity, 0, identity.length, from, end) === 0;
}

export class TableBook {
  readonly #options: TableBookOptions;
  readonly #pages = new Map<string, Page>();
  #last: Page | undefined;
  readonly #captured = new Map<string, boolean>();
  readonly #cascades = new Map<string, readonly CascadingKey[]>();
  /** Captured tables that are there, or were: by key. */
  readonly #known: Map<string, TableRef>;
  readonly #views: ReadonlySet<string>;
  /** Captured tables without a key that were told of. */
  readonly #withoutKey = new Set<string>();

  constructor(options: TableBookOptions) {
    this.#options = options;
    this.#known = options.known;
    for (const ref of options.listed) this.#known.set(tableRefKey(ref), ref);
    this.#views = new Set(options.views.map(tableRefKey));
  }

  captures(ref: TableRef): boolean {
    const name = `${ref.database}\0${ref.table}`;
    let captured = this.#captured.get(name);
    if (captured === undefined) {
      captured = !isServersOwn(ref.database) && this.#options.captures(ref);
      if (this.#captured.size > 100_000) this.#captured.clear();
      this.#captured.set(name, captured);
    }
    return captured;
  }

  /** null: not captured. undefined: `learn` it first. */
  lookUp(ref: TableRef, buffer: Buffer, start: number, end: number): KnownTable | null | undefined {
    if (!this.captures(ref)) return null;
    const page = this.#pages.get(`${ref.database}\0${ref.table}`);
    if (page === undefined || !isOf(page, buffer, start, end)) return undefined;
    this.#last = page;
    return page.table;
  }

  /** The table that was looked up last, when the map is its: one table is changed many times in a row. Without reading names. */
  sameAgain(buffer: Buffer, start: number, end: number): Pick<Page, 'ref' | 'table'> | undefined {
    const last = this.#last;
    return last !== undefined && isOf(last, buffer, start, end) ? last : undefined;
  }

  /** `at` is where the map stands, `boundary` the end of the transaction before. */
  async learn(
    buffer: Buffer,
    start: number,
    end: number,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<KnownTable | null> {
    const map = readTableMap(buffer, start, end, this.#options.flavor);
    const table = await this.#understand(map, at, boundary);
    if (table !== null) this.#known.set(tableRefKey(table.ref), table.ref);
    // a copy, so that the page does not keep the whole packet
    const ref = { database: map.database, table: map.table };
    this.#pages.set(`${map.database}\0${map.table}`, { ref, identity: Buffer.from(map.identity), table });
    this.#last = undefined;
    return table;
  }

  /** A captured table that is surely there, or was. */
  knows(ref: TableRef): boolean {
    return this.#known.has(tableRefKey(ref));
  }

  /** The captured tables, as far as known: those there at the start, and those seen since, in rows or in DDL. */
  tables(): readonly TableRef[] {
    return [...this.#known.values()];
  }

  tablesOf(database: string): readonly TableRef[] {
    return this.tables().filter((ref) => ref.database === database && this.captures(ref));
  }

  /** A view that was there at the start. */
  isView(ref: TableRef): boolean {
    return this.#views.has(tableRefKey(ref));
  }

  /** After DDL: what the catalogue said may have changed. */
  forget(ref: TableRef): void {
    this.#known.set(tableRefKey(ref), ref);
    this.#pages.delete(`${ref.database}\0${ref.table}`);
    this.#last = undefined;
    this.#cascades.clear();
  }

  /** What `cascades` would give, if it need not be asked; else undefined. */
  knownCascades(child: TableRef): readonly CascadingKey[] | undefined {
    return this.#cascades.get(`${child.database}\0${child.table}`);
  }

  /** The foreign keys by which the server changes rows of this table. */
  async cascades(child: TableRef): Promise<readonly CascadingKey[]> {
    const name = `${child.database}\0${child.table}`;
    let keys = this.#cascades.get(name);
    if (keys === undefined) {
      keys = await this.#options.session.use((session) => readCascades(session, child));
      this.#cascades.set(name, keys);
    }
    return keys;
  }

  /** `collationId` is that of the client; one that is not known means UTF-8. */
  async statementText(bytes: Buffer, collationId: number): Promise<string> {
    const { charsets, session } = this.#options;
    return await charsets.statementText(bytes, collationId, session);
  }

  async #understand(map: TableMap, at: BinlogPosition, boundary: BinlogPosition): Promise<KnownTable | null> {
    const { charsets } = this.#options;
    const ref = { database: map.database, table: map.table };
    const meaning =
      map.columns === undefined
        ? await this.#fromHistory(map, ref, at, boundary)
        : await this.#fromMap(map, map.columns, ref, at, boundary);
    if (meaning === null) return null;
    const { columns, shapes, key } = meaning;
    const isUnclear = meaning.period === 'unclear';
    const period = meaning.period === 'unclear' ? null : meaning.period;
    const rule = this.#options.tableRule(ref);
    const schema = buildSchema(ref, shapes.slice(0, period?.published), key, rule);
    if (key.rule === 'row-hash') this.#warnOfTwins(ref);
    const plan = compileTable({ schema, ...(rule.partitionBy === undefined ? {} : { partitionBy: rule.partitionBy }) });
    const readers = columns.map((column, i) => columnReader(column, shapes[i] as ColumnShape, charsets));
    const doubted = period === null ? null : doubtedColumns(shapes, meaning.virtual, key.rule !== 'row-hash');
    return { ref, columnCount: map.columnCount, isUnclear, doubted, ...compileTranscription(plan, readers, period) };
  }

  #warnOfTwins(ref: TableRef): void {
    const table = formatTableRef(ref);
    if (this.#withoutKey.has(table)) return;
    this.#withoutKey.add(table);
    this.#options.logger.warn({ code: 'SOURCE_TABLE_WITHOUT_KEY', table }, namedByHash(ref));
  }

  async #fromMap(
    map: TableMap,
    columns: readonly TableMapColumn[],
    ref: TableRef,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<TableMeaning | null> {
    const { session, charsets, logger } = this.#options;
    if (columns.map((column) => column.name).join(',') === SEQUENCE) return null;
    const facts = await session.use((open) => readTableFacts(open, ref));
    if (facts === undefined) {
      const where = { table: formatTableRef(ref), position: formatBinlogPosition(at) };
      logger.debug(where, 'table is in the log but no longer on the server');
    }
    await this.#prepare(columns.map((column) => charsets.charsetOf(column.collationId)));
    const logical = await this.#logicalTypes(columns, ref, at, boundary);
    const named = map.primaryKey.map((index) => columns[index]?.name ?? '');
    const period = await this.#period(columns, named, ref, at, boundary);
    return {
      columns,
      shapes: columns.map((column) => shapeOf(column, ref, charsets, logical)),
      key: keyInLog(withoutEnd(named, period?.period ?? null), facts),
      period: period === undefined ? 'unclear' : (period?.rows ?? null),
      virtual: new Set([...(period?.virtual ?? []), ...(facts?.virtual ?? [])]),
    };
  }

  /** By the definition of then; undefined where nothing tells: its rows cannot be told from the history that may stand between them. */
  async #period(
    columns: readonly TableMapColumn[],
    key: readonly string[],
    ref: TableRef,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<
    { readonly period: Period; readonly rows: RowPeriod; readonly virtual: readonly string[] } | null | undefined
  > {
    const { flavor, definitions } = this.#options;
    if (flavor === 'mysql' || !mayHavePeriod(columns, key)) return null;
    const names = columns.map((column) => column.name);
    const then = await definitions?.period(ref, names, at, boundary);
    if (then === undefined || then.period === null) return then && null;
    const rows = rowPeriodOf(names, then.period);
    return rows === undefined ? undefined : { period: then.period, rows, virtual: then.virtual };
  }

  async #logicalTypes(
    columns: readonly TableMapColumn[],
    ref: TableRef,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<LogicalTypes> {
    const doubtful = this.#options.flavor === 'mariadb' ? columns.filter(isDoubtful) : [];
    const { definitions } = this.#options;
    if (doubtful.length === 0 || definitions === undefined) return new Map();
    return await definitions.logicalTypes(ref, doubtful, at, boundary);
  }

  async #fromHistory(
    map: TableMap,
    ref: TableRef,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<TableMeaning | null> {
    const { definitions, charsets, session } = this.#options;
    if (definitions === undefined || definitions.typesOnly) {
      throw sourceErrors.SOURCE_ROW_METADATA_MISSING({
        message: `the log does not name the columns of ${formatTableRef(ref)}`,
        where: { table: formatTableRef(ref), position: formatBinlogPosition(at) },
      });
    }
    const definition = await definitions.at(ref, at, boundary);
    if (definition.sequence) return null;
    await this.#prepare([
      ...definition.columns.map((column) => column.charset ?? undefined),
      ...map.bareColumns.map((column) => charsets.charsetOf(column.collationId ?? 0)),
    ]);
    try {
      const fitted = fit(definition, map.bareColumns, ref, charsets);
      const key = chooseKey(fitted.shapes, primaryKeyOf(definition), uniqueKeysOf(definition));
      const period = rowPeriodIn(definition, fitted.columns);
      // definitions of before virtual columns were noted do not tell
      const facts = period === null ? undefined : await session.use((open) => readTableFacts(open, ref));
      const virtual = new Set([...virtualColumnsOf(definition), ...(facts?.virtual ?? [])]);
      return { ...fitted, key, period, virtual };
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      throw await definitions.stop('SOURCE_SCHEMA_MISFIT', ref, at, '', error.message);
    }
  }

  async #prepare(names: readonly (string | undefined)[]): Promise<void> {
    const { session, charsets } = this.#options;
    const needed = names.filter((name) => name !== undefined);
    await session.use((open) => charsets.prepare(needed, open));
  }
}

function rowPeriodIn(definition: TableDefinition, columns: readonly TableMapColumn[]): RowPeriod | null {
  const period = periodOf(definition);
  if (period === null) return null;
  const names = columns.map((column) => column.name);
  const rows = rowPeriodOf(names, period);
  if (rows === undefined)
    throw new Misfit(`the columns of the period, ${period.start} and ${period.end}, are not there`);
  return rows;
}

/** Databases that belong to the server: nobody captures those. */
function isServersOwn(database: string): boolean {
  return (
    database === 'mysql' || database === 'sys' || database === 'performance_schema' || database === 'information_schema'
  );
}
