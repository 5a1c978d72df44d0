import { formatTableRef, type TableRef } from '@mysync/core';
import type { SourceTableChange } from '@mysync/source-mysql';

/** Comments and blanks before the first word of a statement; `/*!` and `/*M!` hold code. */
const LEADING = /^(?:\s+|\/\*(?!M?!)[\s\S]*?\*\/|\/\*M?!\d*|--[^\n]*\n|#[^\n]*\n)+/;
/** Wherever it stands: taken for one too often, a table is read once too often. */
const IF_NOT_EXISTS = /\bif\b[\s\S]*?\bnot\b[\s\S]*?\bexists\b/i;

const COMMENTS = /\/\*(?!M?!)[\s\S]*?\*\//g;
/** Not seen where code in a comment says TABLE: taken for none, a table is read once too often. */
const CREATES_TABLE = /^create\s+(?:or\s+replace\s+)?table\b/i;

/** What a change of a whole table means: from now on the log holds all its rows, it is gone, or unchanged rows look otherwise. */
export type TableTurn = 'begins' | 'gone' | 'reshaped';

/**
 * Which tables the log holds completely, so that a sink built from it alone equals the source: those that were read as a whole, and
 * those that were made or emptied while their changes were read. A dropped or renamed name is none of them any more.
 */
export class CompleteTables {
  readonly #names: Set<string>;
  /** Their rows are about to be read. */
  readonly #awaited = new Set<string>();
  readonly #missing = new Set<string>();

  constructor(names: readonly string[]) {
    this.#names = new Set(names);
  }

  get names(): readonly string[] {
    return [...this.#names].sort();
  }

  /** Captured tables of which the log lacks rows, and nobody reads them. */
  get missing(): readonly string[] {
    return [...this.#missing].sort();
  }

  /** No captured table lacks rows, or waits for them. */
  get isWhole(): boolean {
    return this.#missing.size === 0 && this.#awaited.size === 0;
  }

  /** Takes a change of a whole table into account. */
  note({ kind, table, statement, reshapes }: SourceTableChange): TableTurn | null {
    const name = formatTableRef(table);
    const verb = /^\w+/.exec(statement.replace(LEADING, ''))?.[0]?.toLowerCase();
    if (verb === 'create') {
      // an index is made on a table that is there; CREATE OR REPLACE of a table empties it
      if (kind === 'ddl' && !CREATES_TABLE.test(statement.replace(LEADING, '').replace(COMMENTS, ' '))) return null;
      const mayHaveBeenThere = this.#awaited.has(name) || this.#missing.has(name);
      if (mayHaveBeenThere && IF_NOT_EXISTS.test(statement)) return null;
      this.hold(table);
      return 'begins';
    }
    if (kind === 'truncate' && verb === 'truncate') {
      this.hold(table);
      return 'begins';
    }
    if (kind === 'truncate') {
      for (const set of [this.#names, this.#awaited, this.#missing]) set.delete(name);
      return 'gone';
    }
    return kind === 'ddl' && reshapes === true ? 'reshaped' : null;
  }

  /** Those of the captured tables that are not complete, and wait for no rows. */
  lackingOf<T extends TableRef>(captured: readonly T[]): readonly T[] {
    return captured.filter((table) => {
      const name = formatTableRef(table);
      return !this.#names.has(name) && !this.#awaited.has(name);
    });
  }

  /** Changes of other tables are not read: what the log holds of them goes out of date. */
  keepOnly(captured: readonly TableRef[]): void {
    const names = new Set(captured.map(formatTableRef));
    for (const name of this.#names) if (!names.has(name)) this.#names.delete(name);
  }

  /** The log holds every row of the table. */
  hold(table: TableRef): void {
    const name = formatTableRef(table);
    this.#names.add(name);
    this.#awaited.delete(name);
    this.#missing.delete(name);
  }

  /** The log lacks rows of the table until it is read. */
  awaitRows(table: TableRef): void {
    const name = formatTableRef(table);
    this.#names.delete(name);
    this.#missing.delete(name);
    this.#awaited.add(name);
  }

  /** What was to be read is not there. */
  drop(table: TableRef): void {
    this.#awaited.delete(formatTableRef(table));
  }

  /** The log lacks rows of the table, for good. */
  lack(table: TableRef): void {
    const name = formatTableRef(table);
    this.#names.delete(name);
    this.#missing.add(name);
  }
}
