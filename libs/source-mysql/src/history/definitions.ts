/**
 * Definitions of tables by position, for one connection's worth of the stream. Spec: docs/spec/schema-history.md.
 *
 * 1. A statement is noted, durably, before what follows it in the log is read; a definition before its rows are handed over.
 * 2. What holds at a place: the newest definition at or before it, changed by the statements between. What an operator said comes first.
 * 3. The catalogue is believed for a place only when no statement between there and now changed the table.
 * 4. What cannot be decided is an error that names the command that decides it; it is never guessed.
 * 5. Where table maps name their columns (`typesOnly`), only what they do not tell is asked for (types, and periods): statements are followed without
 *    asking the server, charsets stay unknown, and of a statement that is not followed only the columns that it names are in doubt.
 */
import { type BinlogPosition, compareBinlogPositions, type Logger, type TableRef, tableRefKey } from '@mysync/core';
import type { QueryContext } from '../binlog/query-context.ts';
import type { TableMapColumn } from '../binlog/table-map.ts';
import type { Charsets } from '../schema/charsets.ts';
import { HIDDEN_PERIOD, leavesPeriod, type Period } from '../schema/period.ts';
import type { LazySession } from '../server/lazy-session.ts';
import { readDatabaseCharset, readDefinition, withStorableMembers } from './catalogue.ts';
import { Undecided } from './ddl/ddl-words.ts';
import { type DdlSetting, interpret, type TableState } from './ddl/interpret.ts';
import { alteringWords, type DdlTargets, ddlTargets } from './ddl/targets.ts';
import { type DdlHorizon, foldRef } from './ddl-horizon.ts';
import { periodOf, type TableDefinition, virtualColumnsOf } from './definition.ts';
import { type LogicalTypes, logicalTypesBy } from './doubtful-types.ts';
import {
  type DefinitionOrigin,
  type HistoryEntry,
  type HistoryFact,
  type HistoryIndex,
  wholeDatabase,
} from './history-index.ts';
import { questionError } from './questions.ts';

export interface DefinitionsOptions {
  /** Of the source, for the commands that errors name. */
  readonly name: string;
  readonly typesOnly: boolean;
  readonly index: HistoryIndex;
  readonly horizon: DdlHorizon;
  readonly session: LazySession;
  readonly charsets: Charsets;
  readonly flavor: 'mysql' | 'mariadb';
  readonly versionNumber: number;
  readonly foldsNames: boolean;
  readonly logger: Logger;
  captures(ref: TableRef): boolean;
}

type StatementEntry = HistoryEntry & { readonly fact: Extract<HistoryFact, { kind: 'statement' }> };

/** Of a table at a place. */
export interface PeriodThen {
  readonly period: Period | null;
  /** Columns that are computed, as far as known. */
  readonly virtual: readonly string[];
}

/** What holds at a place, and which statement it is that could not be followed. */
interface Holding {
  readonly state: TableState;
  /** It is a definition as it was noted: no statement came after it. */
  readonly settled: boolean;
  readonly stuckAt: StatementEntry | undefined;
  /** That statement may have changed which columns bound the rows of a versioned table. */
  readonly doubtsPeriod: boolean;
}

/** Where only types are asked for: no length is too long for it. */
const ANY_CHARSET = 'latin1';
/** Of a table that is not looked at yet. */
const NO_COLUMNS: TableDefinition = { columns: [], keys: [], charset: null, versioned: false, sequence: false };
/** Definitions that are added at once. */
const ADDED_AT_ONCE = 200;

export class Definitions {
  readonly #options: DefinitionsOptions;

  constructor(options: DefinitionsOptions) {
    this.#options = options;
  }

  get typesOnly(): boolean {
    return this.#options.typesOnly;
  }

  /** Asks the catalogue for every table of which nothing is known yet, while no statement forbids it: what it says holds from `from` on. */
  async learnFirst(
    from: BinlogPosition,
    tables: readonly TableRef[],
    horizon: DdlHorizon = this.#options.horizon,
  ): Promise<void> {
    const { index, session } = this.#options;
    const unknown = tables.filter((ref) => !index.of(ref).some((entry) => entry.fact.kind === 'definition'));
    for (let i = 0; i < unknown.length; i += ADDED_AT_ONCE) {
      const found: { ref: TableRef; definition: TableDefinition }[] = [];
      for (const ref of unknown.slice(i, i + ADDED_AT_ONCE)) {
        const definition = await session.use((open) => readDefinition(open, ref));
        if (definition !== undefined) found.push({ ref, definition });
      }
      await horizon.extend(from);
      await index.add(
        found
          .filter(({ ref }) => !horizon.touches(ref, from))
          .map(({ ref, definition }) => fact(ref, from, definition, 'catalogue')),
      );
    }
  }

  /** Takes a statement of the log down; a promise where it changes definitions. `boundary` is that of the transactions before it. */
  note(
    statement: string,
    database: string,
    context: () => QueryContext,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<void> | undefined {
    const targets = ddlTargets(statement, database);
    if (targets.tables.length === 0 && targets.database === '') return undefined;
    return this.#note(statement, database, context(), targets, at, boundary);
  }

  /** What holds for rows at `at`; throws what stops the stream. */
  async at(ref: TableRef, at: BinlogPosition, boundary: BinlogPosition): Promise<TableDefinition> {
    const holding = await this.#settle(ref, at, boundary);
    if (holding.state.kind === 'known') return holding.state.definition;
    throw await this.#unknown(ref, at, holding, whyNot(holding.state));
  }

  /** Which of these columns, whose types their table map does not tell, are not BINARY; throws what stops the stream. */
  async logicalTypes(
    ref: TableRef,
    columns: readonly TableMapColumn[],
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<LogicalTypes> {
    const holding = await this.#settle(ref, at, boundary);
    const { state } = holding;
    const told = state.kind === 'known' ? logicalTypesBy(state.definition, columns, ref) : whyNot(state);
    if (typeof told !== 'string') return told;
    const now = await this.#fromCatalogue(ref, at, boundary);
    const toldNow = now === undefined ? told : logicalTypesBy(now, columns, ref);
    if (now !== undefined && typeof toldNow !== 'string') {
      await this.#options.index.add([fact(ref, at, now, 'catalogue')]);
      return toldNow;
    }
    if (state.kind === 'known' && holding.stuckAt === undefined) {
      throw await this.stop('SOURCE_SCHEMA_MISFIT', ref, at, '', told);
    }
    throw await this.#unknown(ref, at, holding, told);
  }

  /**
   * What bounds the rows of a table whose map has these columns, which name it but do not say what they are for; undefined where neither the
   * statements nor the catalogue tell of this place.
   */
  async period(
    ref: TableRef,
    columns: readonly string[],
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<PeriodThen | undefined> {
    const { state, stuckAt, doubtsPeriod } = await this.#settle(ref, at, boundary);
    if (state.kind === 'known' && !doubtsPeriod) {
      if (stuckAt !== undefined || hasColumns(state.definition, columns)) return periodThen(state.definition);
    }
    const now = await this.#fromCatalogue(ref, at, boundary, (definition, words) =>
      leavesPeriod(words, periodOf(definition)),
    );
    return now === undefined ? undefined : periodThen(now);
  }

  async #unknown(ref: TableRef, at: BinlogPosition, { stuckAt }: Holding, reason: string): Promise<Error> {
    if (stuckAt === undefined) return await this.stop('SOURCE_SCHEMA_UNKNOWN', ref, at, '', reason);
    return await this.stop('SOURCE_DDL_UNDECIDED', ref, stuckAt.position, stuckAt.fact.statement, reason);
  }

  /** Takes down that reading stopped, and gives the error that says what to do. */
  async stop(
    code: 'SOURCE_SCHEMA_UNKNOWN' | 'SOURCE_DDL_UNDECIDED' | 'SOURCE_SCHEMA_MISFIT',
    ref: TableRef,
    at: BinlogPosition,
    statement: string,
    reason: string,
  ): Promise<Error> {
    const { index, name } = this.#options;
    const question = { kind: 'question', code, statement, reason } as const;
    const asked = index.at(ref, at, 'question')?.fact;
    if (asked?.kind !== 'question' || asked.code !== code || asked.reason !== reason) {
      await index.add([{ position: at, table: ref, fact: question }]);
    }
    return questionError(name, ref, at, question);
  }

  async #note(
    statement: string,
    database: string,
    { sqlMode }: QueryContext,
    targets: DdlTargets,
    at: BinlogPosition,
    boundary: BinlogPosition,
  ): Promise<void> {
    const { index, captures, foldsNames } = this.#options;
    const { base } = targets;
    const tables = targets.tables.map((ref) => foldRef(ref, foldsNames));
    if (base === 'drops' && targets.database !== '') {
      tables.push(...index.tablesOf(foldName(targets.database, foldsNames)));
    }
    // tables that nobody captures may become captured ones by a RENAME: they are followed from their beginning
    const follows = (ref: TableRef): boolean =>
      captures(ref) || base === 'creates' || targets.sources.length > 0 || index.of(ref).length > 0;
    const followed = tables.some(follows) ? [...tables] : [];
    const whole = targets.database === '' ? [] : [wholeDatabase(foldName(targets.database, foldsNames))];
    followed.push(...whole);
    const noted: HistoryFact = { kind: 'statement', statement, database, sqlMode, base };
    await index.add(
      followed
        .filter((ref) => index.at(ref, at, 'statement') === undefined)
        .map((ref) => ({ position: at, table: ref, fact: noted })),
    );
    if (base === 'drops') return;
    const { typesOnly } = this.#options;
    for (const ref of tables) if (typesOnly ? follows(ref) : captures(ref)) await this.#settle(ref, at, boundary);
  }

  /** What holds, as a definition of its own where it can be decided now. */
  async #settle(ref: TableRef, at: BinlogPosition, boundary: BinlogPosition): Promise<Holding> {
    const holding = await this.#holding(ref, at, true);
    if (holding.settled || holding.state.kind === 'gone') return holding;
    if (this.#options.typesOnly) {
      const { state, stuckAt } = holding;
      if (state.kind !== 'known' || stuckAt !== undefined) return holding;
      await this.#options.index.add([fact(ref, at, state.definition, 'types')]);
      return { ...holding, settled: true };
    }
    const now = await this.#fromCatalogue(ref, at, boundary);
    const known = now ?? (holding.state.kind === 'known' ? holding.state.definition : undefined);
    if (known === undefined) return holding;
    await this.#options.index.add([fact(ref, at, known, now === undefined ? 'statements' : 'catalogue')]);
    return { state: { kind: 'known', definition: known }, settled: true, stuckAt: undefined, doubtsPeriod: false };
  }

  /** As the catalogue has it, unless a statement behind `at` changed the table, other than by an ALTER whose words are of no matter. */
  async #fromCatalogue(
    ref: TableRef,
    at: BinlogPosition,
    boundary: BinlogPosition,
    isNoMatter: (definition: TableDefinition, words: ReadonlySet<string>) => boolean = () => false,
  ): Promise<TableDefinition | undefined> {
    const { horizon, session } = this.#options;
    if (horizon.touches(ref, at, (words) => isNoMatter(NO_COLUMNS, words))) return undefined;
    const definition = await session.use((open) => readDefinition(open, ref));
    await horizon.extend(boundary);
    if (definition === undefined) return undefined;
    return horizon.touches(ref, at, (words) => isNoMatter(definition, words)) ? undefined : definition;
  }

  async #holding(ref: TableRef, at: BinlogPosition, inclusive: boolean): Promise<Holding> {
    const entries = this.#options.index.of(ref).filter((entry) => {
      const order = compareBinlogPositions(entry.position, at);
      return order < 0 || (inclusive && order === 0);
    });
    const base = entries.findLast((entry) => entry.fact.kind === 'definition');
    let state: TableState =
      base?.fact.kind === 'definition'
        ? { kind: 'known', definition: base.fact.definition }
        : { kind: 'unknown', why: 'no definition from before is known' };
    let stuckAt: StatementEntry | undefined;
    let doubtsPeriod = false;
    let settled = base !== undefined;
    for (const entry of entries) {
      if (!isStatement(entry)) continue;
      if (base !== undefined && compareBinlogPositions(entry.position, base.position) <= 0) continue;
      if (this.#options.index.at(ref, entry.position, 'skip') !== undefined) continue;
      settled = false;
      const next = await this.#apply(entry, ref, state);
      if (next.kind !== 'unknown') {
        state = next;
        if (next.kind === 'gone' || entry.fact.base !== '' || !this.#options.typesOnly) {
          stuckAt = undefined;
          doubtsPeriod = false;
        }
        continue;
      }
      const words = alteringWords(entry.fact.statement, entry.fact.database);
      if (this.#options.typesOnly && state.kind === 'known' && words !== undefined) {
        doubtsPeriod ||= !leavesPeriod(words, periodOf(state.definition));
        state = { kind: 'known', definition: withoutNamed(state.definition, words) };
        stuckAt ??= entry;
      } else if (state.kind !== 'unknown' || (stuckAt === undefined && entry.fact.base === 'creates')) {
        // the first that could not be followed is the one to ask about
        state = next;
        stuckAt = entry;
      }
    }
    return { state, settled, stuckAt, doubtsPeriod };
  }

  async #apply(entry: StatementEntry, ref: TableRef, before: TableState): Promise<TableState> {
    const { fact: noted, position } = entry;
    const { charsets, flavor, versionNumber, foldsNames, typesOnly } = this.#options;
    const { statement, database, sqlMode } = noted;
    const targets = ddlTargets(statement, database);
    if (targets.database !== '') return targets.base === 'drops' ? { kind: 'gone' } : before;
    const states = new Map<string, TableState>([[tableRefKey(ref), before]]);
    const charsetOf = new Map<string, string | null>();
    for (const other of [...targets.tables, ...targets.sources].map((name) => foldRef(name, foldsNames))) {
      const key = tableRefKey(other);
      if (!states.has(key)) states.set(key, (await this.#holding(other, position, false)).state);
      if (!typesOnly && !charsetOf.has(other.database)) {
        charsetOf.set(other.database, await this.#databaseCharset(other.database, position));
      }
    }
    const setting: DdlSetting = {
      flavor,
      versionNumber,
      foldsNames,
      names: charsets,
      sqlMode,
      database,
      databaseCharset: (name) => (typesOnly ? ANY_CHARSET : (charsetOf.get(name) ?? null)),
    };
    let after: TableState;
    try {
      const unknown: TableState = { kind: 'unknown', why: 'of another table in it nothing is known' };
      const results = interpret(statement, setting, (other) => states.get(tableRefKey(other)) ?? unknown);
      after = results.get(tableRefKey(ref)) ?? before;
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      return { kind: 'unknown', why: error.message };
    }
    if (after.kind !== 'known' || after === before || typesOnly) return after;
    const { definition } = after;
    const held = await this.#options.session.use((open) => withStorableMembers(open, definition));
    return { kind: 'known', definition: held };
  }

  /** As it is now, unless a statement behind `at` may have changed it: one that was read since, or one that the log holds beyond. */
  async #databaseCharset(database: string, at: BinlogPosition): Promise<string | null> {
    const { index, horizon, session } = this.#options;
    const read = index.of(wholeDatabase(database));
    if (read.some(({ position }) => compareBinlogPositions(position, at) > 0)) return null;
    if (horizon.touchesDatabase(database, at)) return null;
    const charset = await session.use((open) => readDatabaseCharset(open, database));
    await horizon.extend(at);
    return horizon.touchesDatabase(database, at) ? null : charset;
  }
}

function foldName(name: string, folds: boolean): string {
  return folds ? name.toLowerCase() : name;
}

function whyNot(state: Exclude<TableState, { kind: 'known' }>): string {
  return state.kind === 'gone' ? 'by the statements of the log there is no such table' : state.why;
}

function periodThen(definition: TableDefinition): PeriodThen {
  return { period: periodOf(definition), virtual: virtualColumnsOf(definition) };
}

/** An ALTER TABLE changes the type of no BINARY, UUID or INET column that it does not name. */
function withoutNamed(definition: TableDefinition, words: ReadonlySet<string>): TableDefinition {
  return { ...definition, columns: definition.columns.filter(({ name }) => !words.has(name.toLowerCase())) };
}

/** Whether a map with these columns may be of such a table. */
function hasColumns(definition: TableDefinition, columns: readonly string[]): boolean {
  const hidden = periodOf(definition)?.isHidden === true ? [HIDDEN_PERIOD.start, HIDDEN_PERIOD.end] : [];
  const names = [...definition.columns.map(({ name }) => name), ...hidden];
  return names.join('\0').toLowerCase() === columns.join('\0').toLowerCase();
}

function isStatement(entry: HistoryEntry): entry is StatementEntry {
  return entry.fact.kind === 'statement';
}

function fact(
  table: TableRef,
  position: BinlogPosition,
  definition: TableDefinition,
  origin: DefinitionOrigin,
): Pick<HistoryEntry, 'position' | 'table' | 'fact'> {
  return { position, table, fact: { kind: 'definition', definition, origin, by: '' } };
}
