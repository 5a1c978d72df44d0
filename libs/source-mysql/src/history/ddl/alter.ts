/** The clauses of ALTER TABLE. */
import type { TableRef } from '@mysync/core';
import type { DefinedColumn, TableDefinition } from '../definition.ts';
import { readColumnDefinition, skipDefault } from './column-definition.ts';
import { charsetName, collationCharset, type TypeSetting } from './column-type.ts';
import { addColumn, inlineKey } from './create.ts';
import { type DdlWords, Undecided } from './ddl-words.ts';
import { readKeyDefinition } from './key-definition.ts';
import { type ColumnPlace, TableEdit } from './table-edit.ts';

export interface AlterInput {
  readonly words: DdlWords;
  readonly before: TableDefinition;
  setting(charset: string | null): TypeSetting;
  /** null: not known. */
  readonly databaseCharset: string | null;
}

export interface Altered {
  readonly definition: TableDefinition;
  readonly renamed: TableRef | undefined;
}

/** Options of the table that change neither rows nor keys: a word and a value. */
const OPTIONS = new Set(
  'ENGINE TYPE AUTO_INCREMENT AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM COMMENT COMPRESSION CONNECTION DELAY_KEY_WRITE ENCRYPTION ENCRYPTED ENCRYPTION_KEY_ID ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL PASSWORD ROW_FORMAT SECONDARY_ENGINE STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES TRANSACTIONAL IETF_QUOTES ALGORITHM LOCK AUTOEXTEND_SIZE SEQUENCE'.split(
    ' ',
  ),
);
const WITHOUT_EFFECT = [
  'FORCE',
  'ENABLE KEYS',
  'DISABLE KEYS',
  'WITH VALIDATION',
  'WITHOUT VALIDATION',
  'NOWAIT',
  'REMOVE PARTITIONING',
  'IMPORT TABLESPACE',
  'DISCARD TABLESPACE',
  'SECONDARY_LOAD',
  'SECONDARY_UNLOAD',
];
/** Clauses on partitions that leave the definition alone; what they name does not matter. */
const PARTITIONS = [
  'ADD PARTITION',
  'DROP PARTITION',
  'TRUNCATE PARTITION',
  'REORGANIZE PARTITION',
  'COALESCE PARTITION',
  'EXCHANGE PARTITION',
  'ANALYZE PARTITION',
  'CHECK PARTITION',
  'OPTIMIZE PARTITION',
  'REBUILD PARTITION',
  'REPAIR PARTITION',
  'IMPORT PARTITION',
  'DISCARD PARTITION',
  'PARTITION BY',
];

export function alterTable(input: AlterInput): Altered {
  return new AlterReader(input).read();
}

class AlterReader {
  readonly #input: AlterInput;
  readonly #words: DdlWords;
  readonly #edit: TableEdit;
  #renamed: TableRef | undefined;

  constructor(input: AlterInput) {
    this.#input = input;
    this.#words = input.words;
    this.#edit = new TableEdit(input.before, input.setting(null));
  }

  read(): Altered {
    const words = this.#words;
    this.#readDefaultCharset();
    if (words.take('WAIT')) words.number();
    while (!words.done) {
      if (PARTITIONS.some((clause) => words.is(...clause.split(' ')))) break;
      this.#clause();
      // options may stand without a comma, and a partitioning follows without one
      words.symbol(',');
    }
    return { definition: this.#edit.done(), renamed: this.#renamed };
  }

  /** The new default is that of the columns of the same statement, also of those in front of it. */
  #readDefaultCharset(): void {
    const words = this.#words;
    const start = words.place;
    let depth = 0;
    for (; !words.done; words.skip()) {
      if (words.isSymbol('(')) depth += 1;
      else if (words.isSymbol(')')) depth -= 1;
      const follows = words.place === start || words.isSymbol(',', -1) || OPTIONS.has(this.#wordBefore());
      if (depth === 0 && follows && this.#isCharset()) this.#takeCharset();
    }
    words.back(start);
  }

  #wordBefore(): string {
    const [value, equals, name] = [this.#words.token(-1), this.#words.token(-2), this.#words.token(-3)];
    if (value === undefined) return '';
    return ((equals?.text === '=' ? name : equals)?.text ?? '').toUpperCase();
  }

  #isCharset(): boolean {
    const words = this.#words;
    const place = words.place;
    words.take('DEFAULT');
    const found = words.is('CHARACTER', 'SET') || words.is('CHARSET') || words.is('COLLATE');
    words.back(place);
    return found;
  }

  #takeCharset(): boolean {
    const words = this.#words;
    if (!this.#isCharset()) return false;
    words.take('DEFAULT');
    const { names } = this.#input.setting(null);
    if (words.take('COLLATE')) {
      this.#edit.charset = collationCharset(words, names) ?? this.#edit.charset;
      return true;
    }
    words.takeAny('CHARACTER SET', 'CHARSET');
    words.symbol('=');
    this.#edit.charset = charsetName(words, names) ?? this.#input.databaseCharset;
    if (words.take('COLLATE')) collationCharset(words, names);
    return true;
  }

  #clause(): void {
    const words = this.#words;
    if (words.take('ADD')) this.#add();
    else if (words.take('DROP')) this.#drop();
    else if (words.takeAny('MODIFY COLUMN', 'MODIFY')) this.#modify();
    else if (words.takeAny('CHANGE COLUMN', 'CHANGE')) this.#change();
    else if (words.take('RENAME')) this.#rename();
    else if (words.take('ALTER')) this.#alterColumn();
    else if (words.takeAny('CONVERT TO CHARACTER SET', 'CONVERT TO CHARSET')) this.#convert();
    else if (this.#takeCharset() || words.takeAny(...WITHOUT_EFFECT)) return;
    else if (words.take('ORDER', 'BY')) {
      do {
        words.identifier();
        words.takeAny('ASC', 'DESC');
      } while (words.symbol(','));
    } else if (words.take('WAIT')) words.number();
    else if (words.takeAny('DATA DIRECTORY', 'INDEX DIRECTORY')) {
      words.symbol('=');
      words.string();
    } else if (words.take('TABLESPACE')) {
      words.symbol('=');
      words.identifier();
      if (words.take('STORAGE')) words.identifier();
    } else if (words.take('UNION')) {
      words.symbol('=');
      words.skipParens();
    } else this.#option();
  }

  #option(): void {
    const words = this.#words;
    if (!OPTIONS.has(words.peek()) || words.token()?.kind !== 'word') throw words.unknown();
    words.skip();
    words.symbol('=');
    if (words.isString()) words.string();
    else words.identifier();
  }

  #columnTypes() {
    return this.#input.setting(this.#edit.charset);
  }

  #add(): void {
    const words = this.#words;
    if (words.is('SYSTEM', 'VERSIONING')) {
      words.take('SYSTEM', 'VERSIONING');
      this.#edit.versioned = true;
      return;
    }
    if (words.take('PERIOD', 'FOR', 'SYSTEM_TIME')) {
      words.skipParens();
      return;
    }
    if (words.is('PERIOD')) throw new Undecided('it adds a period');
    const key = readKeyDefinition(words);
    if (key !== undefined) {
      if (key !== null) this.#edit.addKey(key);
      return;
    }
    words.take('COLUMN');
    const ifNotExists = words.take('IF', 'NOT', 'EXISTS');
    if (words.symbol('(')) {
      do {
        const inner = readKeyDefinition(words);
        if (inner === undefined) addColumn(this.#edit, readColumnDefinition(words, this.#columnTypes()), undefined);
        else if (inner !== null) this.#edit.addKey(inner);
      } while (words.symbol(','));
      words.expectSymbol(')');
      return;
    }
    const read = readColumnDefinition(words, this.#columnTypes());
    const place = this.#place();
    if (ifNotExists && this.#edit.has(read.column.name)) return;
    addColumn(this.#edit, read, place);
  }

  #place(): ColumnPlace {
    const words = this.#words;
    if (words.take('FIRST')) return '';
    return words.take('AFTER') ? words.identifier() : undefined;
  }

  #drop(): void {
    const words = this.#words;
    if (words.take('PRIMARY', 'KEY')) {
      this.#edit.dropKey('PRIMARY');
      return;
    }
    if (words.takeAny('INDEX', 'KEY')) {
      const ifExists = words.take('IF', 'EXISTS');
      const name = words.identifier();
      if (!ifExists || this.#edit.hasKey(name)) this.#edit.dropKey(name);
      return;
    }
    if (words.takeAny('FOREIGN KEY', 'CHECK')) {
      words.take('IF', 'EXISTS');
      words.identifier();
      return;
    }
    if (words.take('CONSTRAINT')) {
      words.take('IF', 'EXISTS');
      const name = words.identifier();
      // a unique key has its name from it, too; the index of a foreign key stays
      const key = this.#input.before.keys.find((other) => other.name.toLowerCase() === name.toLowerCase());
      if (key !== undefined && key.kind !== 'other') this.#edit.dropKey(name);
      return;
    }
    if (words.take('SYSTEM', 'VERSIONING')) {
      this.#edit.versioned = false;
      return;
    }
    if (words.take('PERIOD', 'FOR', 'SYSTEM_TIME')) return;
    if (words.is('PERIOD', 'FOR')) throw new Undecided('it drops a period');
    words.take('COLUMN');
    const ifExists = words.take('IF', 'EXISTS');
    const name = words.identifier();
    words.takeAny('RESTRICT', 'CASCADE');
    if (!ifExists || this.#edit.has(name)) this.#edit.drop(name);
  }

  #modify(): void {
    const words = this.#words;
    const ifExists = words.take('IF', 'EXISTS');
    const { column, key } = readColumnDefinition(words, this.#columnTypes());
    this.#replace(column.name, column, key, ifExists);
  }

  #change(): void {
    const words = this.#words;
    const ifExists = words.take('IF', 'EXISTS');
    const old = words.identifier();
    const { column, key } = readColumnDefinition(words, this.#columnTypes());
    this.#replace(old, column, key, ifExists);
  }

  #replace(
    old: string,
    column: DefinedColumn,
    key: ReturnType<typeof readColumnDefinition>['key'],
    ifExists: boolean,
  ): void {
    const place = this.#place();
    if (ifExists && !this.#edit.has(old)) return;
    this.#edit.change(old, column, place);
    if (key !== undefined) this.#edit.addKey(inlineKey(column.name, key));
  }

  #rename(): void {
    const words = this.#words;
    if (words.take('COLUMN')) {
      const ifExists = words.take('IF', 'EXISTS');
      const old = words.identifier();
      words.expect('TO');
      const name = words.identifier();
      if (!ifExists || this.#edit.has(old)) this.#edit.rename(old, name);
    } else if (words.takeAny('INDEX', 'KEY')) {
      const ifExists = words.take('IF', 'EXISTS');
      const old = words.identifier();
      words.expect('TO');
      const name = words.identifier();
      if (!ifExists || this.#edit.hasKey(old)) this.#edit.renameKey(old, name);
    } else {
      if (!words.takeAny('TO', 'AS')) words.symbol('=');
      this.#renamed = words.table();
    }
  }

  /** Defaults and visibility. */
  #alterColumn(): void {
    const words = this.#words;
    if (words.takeAny('INDEX', 'KEY')) {
      words.take('IF', 'EXISTS');
      words.identifier();
      if (!words.takeAny('VISIBLE', 'INVISIBLE', 'IGNORED', 'NOT IGNORED')) throw words.unknown();
      return;
    }
    if (words.takeAny('CHECK', 'CONSTRAINT')) {
      words.identifier();
      if (!words.takeAny('ENFORCED', 'NOT ENFORCED')) throw words.unknown();
      return;
    }
    words.take('COLUMN');
    words.take('IF', 'EXISTS');
    words.identifier();
    if (words.takeAny('DROP DEFAULT', 'SET VISIBLE', 'SET INVISIBLE')) return;
    words.expect('SET', 'DEFAULT');
    skipDefault(words);
  }

  #convert(): void {
    const words = this.#words;
    const { names } = this.#input.setting(null);
    const charset = charsetName(words, names) ?? this.#input.databaseCharset;
    const collation = words.take('COLLATE') ? collationCharset(words, names) : null;
    const to = collation ?? charset;
    if (to === null) throw new Undecided("the database's charset is not known");
    this.#edit.convertTo(to);
  }
}
