/**
 * What a DDL statement makes of the definitions of tables: a small interpreter of CREATE, ALTER, RENAME, DROP TABLE and of indexes.
 * What it does not surely understand is `Undecided`, never a guess.
 */
import { formatTableRef, type TableRef } from '@mysync/core';
import { type TokenRules, tokenize } from '../../stream/sql-tokens.ts';
import type { TableDefinition } from '../definition.ts';
import { alterTable } from './alter.ts';
import type { CharsetNames } from './charset-names.ts';
import type { TypeSetting } from './column-type.ts';
import { readTableBody } from './create.ts';
import { DdlWords, Undecided } from './ddl-words.ts';
import { keyEnd, readParts } from './key-definition.ts';
import { TableEdit } from './table-edit.ts';

/** What is known of a table at some place. */
export type TableState =
  | { readonly kind: 'known'; readonly definition: TableDefinition }
  | { readonly kind: 'gone' }
  /** `why` says what is missing. */
  | { readonly kind: 'unknown'; readonly why: string };

/** The server and the session that ran a statement. */
export interface DdlSetting {
  readonly flavor: 'mysql' | 'mariadb';
  /** `major * 10000 + minor * 100 + patch`. */
  readonly versionNumber: number;
  /** lower_case_table_names is not 0. */
  readonly foldsNames: boolean;
  readonly names: CharsetNames;
  /** As the Query event has it; 0 when it does not tell. */
  readonly sqlMode: number;
  /** The session's database. */
  readonly database: string;
  /** The default charset of a database; null: not known. */
  databaseCharset(database: string): string | null;
}

const MODE = { REAL_AS_FLOAT: 1, ANSI_QUOTES: 4, ORACLE: 512, NO_BACKSLASH_ESCAPES: 1 << 20 } as const;

/** The states of all tables that the statement changes. Throws `Undecided`. `before` is asked for the state before the statement. */
export function interpret(
  statement: string,
  setting: DdlSetting,
  before: (ref: TableRef) => TableState,
): ReadonlyMap<string, TableState> {
  return new Interpreter(statement, setting, before).run();
}

export function tokenRules(setting: Pick<DdlSetting, 'flavor' | 'versionNumber' | 'sqlMode'>): TokenRules {
  const { flavor, versionNumber, sqlMode } = setting;
  return {
    ansiQuotes: (sqlMode & MODE.ANSI_QUOTES) !== 0,
    backslashEscapes: (sqlMode & MODE.NO_BACKSLASH_ESCAPES) === 0,
    runs: (mariadb, version) => {
      if (flavor === 'mysql') return !mariadb && version <= versionNumber;
      // MariaDB leaves out what is for MySQL 5.7 and later
      if (!mariadb && version >= 50_700 && version <= 99_999) return false;
      return version <= versionNumber;
    },
  };
}

class Interpreter {
  readonly #setting: DdlSetting;
  readonly #before: (ref: TableRef) => TableState;
  readonly #words: DdlWords;
  readonly #after = new Map<string, TableState>();

  constructor(statement: string, setting: DdlSetting, before: (ref: TableRef) => TableState) {
    this.#setting = setting;
    this.#before = before;
    this.#words = new DdlWords(tokenize(statement, tokenRules(setting)), setting.database);
  }

  run(): ReadonlyMap<string, TableState> {
    const words = this.#words;
    if (this.#setting.flavor === 'mariadb' && (this.#setting.sqlMode & MODE.ORACLE) !== 0) {
      throw new Undecided('its session has sql_mode ORACLE');
    }
    if (words.take('CREATE')) this.#create();
    else if (words.take('ALTER')) this.#alter();
    else if (words.takeAny('RENAME TABLE', 'RENAME TABLES')) this.#rename();
    else if (words.take('DROP')) this.#drop();
    else throw words.unknown();
    return this.#after;
  }

  #ref(): TableRef {
    const { database, table } = this.#words.table();
    if (!this.#setting.foldsNames) return { database, table };
    return { database: database.toLowerCase(), table: table.toLowerCase() };
  }

  #state(ref: TableRef): TableState {
    return this.#after.get(stateKey(ref)) ?? this.#before(ref);
  }

  #set(ref: TableRef, state: TableState): void {
    this.#after.set(stateKey(ref), state);
  }

  #known(ref: TableRef): TableDefinition {
    const state = this.#state(ref);
    if (state.kind === 'known') return state.definition;
    if (state.kind === 'unknown') throw new Undecided(state.why);
    throw new Undecided(`there is no table ${formatTableRef(ref)}`);
  }

  #typeSetting(charset: string | null): TypeSetting {
    const { names, flavor, sqlMode } = this.#setting;
    return { names, flavor, charset, realIsFloat: (sqlMode & MODE.REAL_AS_FLOAT) !== 0 };
  }

  #create(): void {
    const words = this.#words;
    words.take('OR', 'REPLACE');
    if (words.take('SEQUENCE')) {
      words.take('IF', 'NOT', 'EXISTS');
      const definition = { columns: [], keys: [], charset: null, versioned: false, sequence: true };
      this.#set(this.#ref(), { kind: 'known', definition });
      return;
    }
    if (!words.take('TABLE')) {
      this.#createIndex();
      return;
    }
    const ifNotExists = words.take('IF', 'NOT', 'EXISTS');
    const ref = this.#ref();
    if (ifNotExists) {
      const state = this.#state(ref);
      if (state.kind === 'unknown')
        throw new Undecided(`whether the table was there before is not known: ${state.why}`);
      if (state.kind === 'known') {
        this.#set(ref, state);
        return;
      }
    }
    const parenthesis = words.isSymbol('(') && words.token(1)?.text.toUpperCase() === 'LIKE' && words.symbol('(');
    if (words.take('LIKE')) {
      this.#set(ref, { kind: 'known', definition: this.#known(this.#ref()) });
      if (parenthesis) words.expectSymbol(')');
      return;
    }
    const fallback = this.#setting.databaseCharset(ref.database);
    const definition = readTableBody(words, (charset) => this.#typeSetting(charset), fallback);
    this.#set(ref, { kind: 'known', definition });
  }

  #createIndex(): void {
    const words = this.#words;
    words.takeAny('ONLINE', 'OFFLINE');
    const isUnique = words.take('UNIQUE');
    words.takeAny('FULLTEXT', 'SPATIAL', 'VECTOR');
    words.expect('INDEX');
    const ifNotExists = words.take('IF', 'NOT', 'EXISTS');
    const name = words.identifier();
    if (words.takeAny('USING', 'TYPE')) words.identifier();
    words.expect('ON');
    const ref = this.#ref();
    const edit = new TableEdit(this.#known(ref), this.#setting);
    edit.addKey({ name, kind: isUnique ? 'unique' : 'other', parts: readParts(words), ifNotExists });
    keyEnd(words);
    this.#set(ref, { kind: 'known', definition: edit.done() });
  }

  #alter(): void {
    const words = this.#words;
    words.takeAny('ONLINE', 'OFFLINE');
    words.take('IGNORE');
    words.expect('TABLE');
    words.take('IF', 'EXISTS');
    const ref = this.#ref();
    const known = this.#known(ref);
    const { definition, renamed } = alterTable({
      words,
      before: known,
      setting: (charset) => this.#typeSetting(charset),
      databaseCharset: this.#setting.databaseCharset(ref.database),
    });
    if (renamed === undefined) {
      this.#set(ref, { kind: 'known', definition });
      return;
    }
    this.#set(ref, { kind: 'gone' });
    this.#set(this.#folded(renamed), { kind: 'known', definition });
  }

  #folded(ref: TableRef): TableRef {
    if (!this.#setting.foldsNames) return ref;
    return { database: ref.database.toLowerCase(), table: ref.table.toLowerCase() };
  }

  #rename(): void {
    const words = this.#words;
    words.take('IF', 'EXISTS');
    do {
      const from = this.#ref();
      if (words.take('WAIT')) words.number();
      else words.take('NOWAIT');
      words.expect('TO');
      const to = this.#ref();
      this.#set(to, this.#state(from));
      this.#set(from, { kind: 'gone' });
    } while (words.symbol(','));
  }

  #drop(): void {
    const words = this.#words;
    if (words.takeAny('TABLE', 'TABLES', 'SEQUENCE')) {
      words.take('IF', 'EXISTS');
      do this.#set(this.#ref(), { kind: 'gone' });
      while (words.symbol(','));
      return;
    }
    words.takeAny('ONLINE', 'OFFLINE');
    words.expect('INDEX');
    words.take('IF', 'EXISTS');
    const name = words.identifier();
    words.expect('ON');
    const ref = this.#ref();
    const edit = new TableEdit(this.#known(ref), this.#setting);
    edit.dropKey(name);
    this.#set(ref, { kind: 'known', definition: edit.done() });
  }
}

export function stateKey(ref: TableRef): string {
  return `${ref.database}\0${ref.table}`;
}
