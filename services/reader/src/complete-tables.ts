import { formatTableRef } from '@mysync/core';
import type { SourceTableChange } from '@mysync/source-mysql';

/** Comments and blanks before the first word of a statement; `/*!` and `/*M!` hold code. */
const LEADING = /^(?:\s+|\/\*(?!M?!)[\s\S]*?\*\/|\/\*M?!\d*|--[^\n]*\n|#[^\n]*\n)+/;

/**
 * Which tables the log holds completely, so that a sink built from it alone equals the source: those a snapshot read, and those that were
 * made while their changes were read. A dropped or renamed name is none of them any more.
 */
export class CompleteTables {
  readonly #names: Set<string>;

  constructor(names: readonly string[]) {
    this.#names = new Set(names);
  }

  get names(): readonly string[] {
    return [...this.#names].sort();
  }

  /** Takes a change of a whole table into account; gives what an operator should know about it, or null. */
  note({ kind, table, statement }: Pick<SourceTableChange, 'kind' | 'table' | 'statement'>): string | null {
    const name = formatTableRef(table);
    const verb = /^\w+/.exec(statement.replace(LEADING, ''))?.[0]?.toLowerCase();
    if (verb === 'create') {
      this.#names.add(name);
    } else if (verb === 'drop' || (verb === 'rename' && kind === 'truncate')) {
      this.#names.delete(name);
    } else if (kind === 'ddl' && (verb === 'alter' || verb === 'rename')) {
      return 'the table changed its shape: rows keep the shape they were written with in the sinks until they change again';
    }
    return null;
  }

  /** Of the captured tables, those whose earlier rows are not in the log. */
  missing(captured: readonly string[]): readonly string[] {
    return captured.filter((name) => !this.#names.has(name)).sort();
  }
}
