/** What a statement of the log means for captured tables: changes of whole tables, or an error where it may have changed rows unseen. */
import { formatTableRef, type TableRef } from '@mysync/core';
import type { Logger } from '@mysync/telemetry';
import { sourceErrors } from '../errors.ts';
import type { TableBook } from '../schema/table-book.ts';
import type { StatementMeaning } from './statement.ts';

export interface StatementEffectsOptions {
  readonly book: TableBook;
  /** The server writes names of tables in lower case (lower_case_table_names). */
  readonly foldsNames: boolean;
  readonly logger: Logger;
}

export interface TableEffect {
  readonly kind: 'truncate' | 'ddl';
  readonly table: TableRef;
}

export class StatementEffects {
  readonly #options: StatementEffectsOptions;

  constructor(options: StatementEffectsOptions) {
    this.#options = options;
  }

  /** In the order in which they happen. `place` is for errors. */
  of(meaning: StatementMeaning, statement: string, place: string): TableEffect[] {
    switch (meaning.kind) {
      case 'empties':
        return this.#captured(meaning.tables).map((table) => ({ kind: 'truncate', table }));
      case 'ddl':
        return this.#captured(meaning.tables).map((table) => ({ kind: 'ddl', table }));
      case 'drops-database':
        return this.#options.book
          .tablesOf(this.#fold(meaning.database))
          .map((table) => ({ kind: 'truncate', table }) as const);
      case 'renames':
        return this.#rename(meaning.pairs, place);
      case 'moves-rows': {
        const [ref] = this.#captured(meaning.tables);
        if (ref === undefined) return [];
        throw sourceErrors.SOURCE_PARTITION_DDL({
          message: `rows of ${formatTableRef(ref)} moved with a partition or tablespace`,
          where: { table: formatTableRef(ref), position: place, statement: short(statement) },
        });
      }
      case 'may-change-rows': {
        const named = this.#captured(meaning.tables);
        const ref = named.find((table) => this.#options.book.knows(table)) ?? named[0];
        const hides = meaning.known && /^\W*(select|do|call)\b/i.test(statement);
        if (ref === undefined && !hides) return [];
        const table = ref === undefined ? 'unknown' : formatTableRef(ref);
        throw sourceErrors.SOURCE_STATEMENT_LOGGED({
          message: `a statement that may change rows of ${ref === undefined ? 'captured tables' : table} is logged as text`,
          where: { table, position: place, statement: short(statement) },
        });
      }
      default:
        return [];
    }
  }

  /** A name that another table takes over in the same statement is a swap (gh-ost, pt-osc): its rows are those of the copy. */
  #rename(pairs: readonly { readonly from: TableRef; readonly to: TableRef }[], place: string): TableEffect[] {
    const targets = new Set(pairs.map((pair) => formatTableRef(this.#foldRef(pair.to))));
    const effects: TableEffect[] = [];
    for (const { from, to } of pairs) {
      for (const table of this.#captured([from])) {
        if (!targets.has(formatTableRef(table))) effects.push({ kind: 'truncate', table });
        effects.push({ kind: 'ddl', table });
      }
      for (const table of this.#captured([to])) {
        effects.push({ kind: 'ddl', table });
        this.#options.logger.warn(
          { table: formatTableRef(table), from: formatTableRef(from), position: place },
          'a table took the name of a captured table: the rows it had before are in the log under its former name, or not at all',
        );
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

function short(statement: string): string {
  return statement.length > 300 ? `${statement.slice(0, 300)}…` : statement;
}
