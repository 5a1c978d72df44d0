/** What a statement of the log means for captured tables: changes of whole tables, and tables whose rows may have changed unseen. */
import { type BinlogPosition, type TableRef, tableRefKey } from '@mysync/core';
import type { SourceTableChange, UnseenCause } from '../port.ts';
import type { CascadeBook } from '../schema/cascade-book.ts';
import type { TableBook } from '../schema/table-book.ts';
import type { StatementMeaning } from './statement.ts';

export interface StatementEffectsOptions {
  readonly book: TableBook;
  readonly cascades: CascadeBook;
  /** The server writes names of tables in lower case (lower_case_table_names). */
  readonly foldsNames: boolean;
}

export type TableEffect =
  | (Pick<SourceTableChange, 'table' | 'reshapes'> & { readonly kind: 'truncate' | 'ddl' })
  | { readonly kind: 'unseen'; readonly table: TableRef; readonly cause: UnseenCause };

export class StatementEffects {
  readonly #options: StatementEffectsOptions;

  constructor(options: StatementEffectsOptions) {
    this.#options = options;
  }

  /** Tables whose foreign keys, or columns that these refer to, may be others behind it; undefined: it changes none. */
  redefined(meaning: StatementMeaning, statement: string): readonly TableRef[] | undefined {
    switch (meaning.kind) {
      case 'ddl':
        return meaning.reshapes || meaning.unties !== undefined || MAKES_KEYS.test(statement)
          ? meaning.tables
          : undefined;
      case 'empties': {
        const reach = this.#options.cascades.latest;
        const isTied = reach === undefined || meaning.tables.some((ref) => reach.mentions(this.#foldRef(ref)));
        return meaning.drops && (isTied || MAKES_KEYS.test(statement)) ? meaning.tables : undefined;
      }
      case 'renames':
        return meaning.pairs.flatMap(({ from, to }) => [from, to]);
      case 'drops-database':
        return [];
      default:
        return undefined;
    }
  }

  /** What foreign keys do is to be asked before `of`. */
  needsKeys(meaning: StatementMeaning, statement: string, place: BinlogPosition): boolean {
    const { cascades } = this.#options;
    if (meaning.kind === 'may-change-rows') return MAY_CASCADE.test(statement) && cascades.current === undefined;
    return untied(meaning) && cascades.latest === undefined && cascades.mayHaveMissed(place);
  }

  /** In the order in which they happen. `place` is that of the statement. */
  of(meaning: StatementMeaning, statement: string, place: BinlogPosition): TableEffect[] {
    return [...this.#shown(meaning, statement), ...this.#byKeys(meaning, statement, place)];
  }

  #shown(meaning: StatementMeaning, statement: string): TableEffect[] {
    switch (meaning.kind) {
      case 'empties':
        return this.#captured(meaning.tables).flatMap((table) => [
          { kind: 'truncate', table } as const,
          ...filled(table, meaning.fills),
        ]);
      case 'ddl':
        return this.#captured(meaning.tables).flatMap((table) => [
          { kind: 'ddl', table, ...(meaning.reshapes ? { reshapes: true } : {}) } as const,
          ...filled(table, meaning.fills),
        ]);
      case 'drops-database':
        return this.#options.book
          .tablesOf(this.#fold(meaning.database))
          .map((table) => ({ kind: 'truncate', table }) as const);
      case 'renames':
        return this.#rename(meaning.pairs);
      case 'moves-rows':
        return this.#captured(meaning.tables).flatMap((table): TableEffect[] => [
          { kind: 'ddl', table },
          { kind: 'unseen', table, cause: 'partition' },
        ]);
      case 'may-change-rows':
        return this.#unseen(meaning, statement);
      default:
        return [];
    }
  }

  /**
   * Every name in the text may be a table's: those that surely are none are left out. What a function, a procedure or a view changes is not in the
   * text, nor is what a name that is not known stands for: any table then.
   */
  #unseen(meaning: StatementMeaning & { kind: 'may-change-rows' }, statement: string): TableEffect[] {
    const { book } = this.#options;
    const named = this.#captured(meaning.tables);
    const known = named.filter((table) => book.knows(table));
    const calls = named.length === 0 && meaning.known && /^\W*(select|do|call)\b/i.test(statement);
    const views = meaning.tables.some((ref) => book.isView(this.#foldRef(ref)));
    const hides = calls || views || (named.length > 0 && known.length === 0);
    const tables = hides ? book.tables() : known;
    return tables.map((table) => ({ kind: 'unseen', table, cause: 'statement' }));
  }

  /**
   * What foreign keys did: with rows of the tables that the text names, or, where a statement of the past took keys away that nobody knows any more, with whatever
   * was changed before it.
   */
  #byKeys(meaning: StatementMeaning, statement: string, place: BinlogPosition): TableEffect[] {
    const { cascades } = this.#options;
    const reach = cascades.latest;
    if (reach === undefined) return [];
    const below = (tables: readonly TableRef[]): readonly TableRef[] =>
      tables.flatMap((table) => reach.below(this.#foldRef(table)));
    if (meaning.kind === 'may-change-rows') {
      return MAY_CASCADE.test(statement) ? byCascade(below(meaning.tables)) : [];
    }
    if (!untied(meaning) || !cascades.mayHaveMissed(place)) return [];
    switch (meaning.kind) {
      case 'ddl': {
        const own = meaning.unties === 'keys' ? this.#captured(meaning.tables) : [];
        return byCascade([...own, ...below(meaning.tables)]);
      }
      case 'renames':
        return byCascade(below(meaning.pairs.map(({ to }) => to)));
      case 'empties': {
        const dropped = new Set(meaning.tables.map((table) => tableRefKey(this.#foldRef(table))));
        return byCascade(below(meaning.tables).filter((table) => !dropped.has(tableRefKey(table))));
      }
      case 'drops-database': {
        const database = this.#fold(meaning.database);
        return byCascade(reach.belowDatabase(database).filter((table) => table.database !== database));
      }
      default:
        return [];
    }
  }

  /**
   * A name that another table takes over in the same statement is a swap (gh-ost, pt-osc): there is no time without the table. The last effect on a
   * name says whether a table has it afterwards; one that it has only within the statement comes and goes unseen.
   */
  #rename(pairs: readonly { readonly from: TableRef; readonly to: TableRef }[]): TableEffect[] {
    const hasTable = new Map<string, boolean>();
    for (const { from, to } of pairs) {
      hasTable.set(tableRefKey(this.#foldRef(from)), false);
      hasTable.set(tableRefKey(this.#foldRef(to)), true);
    }
    const effects: TableEffect[] = [];
    for (const { from, to } of pairs) {
      for (const table of this.#captured([from])) {
        effects.push({ kind: 'ddl', table });
        if (hasTable.get(tableRefKey(table)) === false) effects.push({ kind: 'truncate', table });
      }
      // the rows that it had before are in the log under its former name, or not at all
      for (const table of this.#captured([to])) {
        if (hasTable.get(tableRefKey(table)) === false) continue;
        effects.push({ kind: 'ddl', table }, { kind: 'unseen', table, cause: 'rename' });
      }
    }
    return effects;
  }

  #captured(tables: readonly TableRef[]): TableRef[] {
    const { book } = this.#options;
    return tables.map((ref) => this.#foldRef(ref)).filter((ref) => ref.table !== '' && book.captures(ref));
  }

  #foldRef(ref: TableRef): TableRef {
    return { database: this.#fold(ref.database), table: this.#fold(ref.table) };
  }

  #fold(name: string): string {
    return this.#options.foldsNames ? name.toLowerCase() : name;
  }
}

/** Statements that change or delete rows; others set no foreign key off. */
const MAY_CASCADE = /\b(?:delete|update|replace)\b/i;

const MAKES_KEYS = /\b(?:foreign|references)\b/i;

/** Foreign keys, or the names they go by, may be others than before. */
function untied(meaning: StatementMeaning): boolean {
  if (meaning.kind === 'ddl') return meaning.unties !== undefined;
  return (
    meaning.kind === 'renames' || meaning.kind === 'drops-database' || (meaning.kind === 'empties' && meaning.drops)
  );
}

function byCascade(tables: readonly TableRef[]): TableEffect[] {
  return tables.map((table) => ({ kind: 'unseen', table, cause: 'cascade' }));
}

function filled(table: TableRef, fills: true | undefined): TableEffect[] {
  return fills === true ? [{ kind: 'unseen', table, cause: 'statement' }] : [];
}
