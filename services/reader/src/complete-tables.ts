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
  /** Names that a rename took away, until its other half is seen. */
  readonly #renamedAway = new Set<string>();
  readonly #missing = new Set<string>();

  constructor(names: readonly string[]) {
    this.#names = new Set(names);
  }

  get names(): readonly string[] {
    return [...this.#names].sort();
  }

  /** Captured tables whose earlier rows are not in the log. */
  get missing(): readonly string[] {
    return [...this.#missing].sort();
  }

  /** Takes a change of a whole table into account; gives what an operator should know about it, or null. */
  note({ kind, table, statement }: Pick<SourceTableChange, 'kind' | 'table' | 'statement'>): string | null {
    const name = formatTableRef(table);
    const verb = /^\w+/.exec(statement.replace(LEADING, ''))?.[0]?.toLowerCase();
    if (verb === 'create') {
      this.#names.add(name);
    } else if (kind === 'truncate' && (verb === 'drop' || verb === 'rename' || verb === 'alter')) {
      this.#names.delete(name);
      this.#missing.delete(name);
      if (verb !== 'drop') this.#renamedAway.add(name);
    } else if (kind === 'ddl' && (verb === 'alter' || verb === 'rename')) {
      if (this.#renamedAway.delete(name)) return null;
      if (!this.#names.has(name)) {
        this.#missing.add(name);
        return 'the rows that the table has are not in the log under this name: start again with a snapshot (docs/runbook/start-again.md)';
      }
      return 'the table changed its shape: rows keep the shape they were written with in the sinks until they change again';
    }
    return null;
  }

  /** Notes which of the tables captured now were not read from their beginning. */
  compare(captured: readonly string[]): void {
    for (const name of captured) if (!this.#names.has(name)) this.#missing.add(name);
  }
}
