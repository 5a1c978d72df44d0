/** Which definitions a statement changes, without understanding how. */
import type { TableRef } from '@mysync/core';
import { tokenize } from '../../stream/sql-tokens.ts';
import { SqlWords } from '../../stream/sql-words.ts';

export interface DdlTargets {
  /** Tables (and sequences) whose definition it makes, changes or ends. */
  readonly tables: readonly TableRef[];
  /** Tables whose definition another one takes over. */
  readonly sources: readonly TableRef[];
  /** A database that it makes, changes or ends; '' for none. */
  readonly database: string;
  /** What holds afterwards does not depend on what was before: `creates` (not IF NOT EXISTS), `drops` (nothing is left). */
  readonly base: 'creates' | 'drops' | '';
}

const NONE: DdlTargets = { tables: [], sources: [], database: '', base: '' };

/** What may follow ALTER DATABASE in place of a name. */
const DATABASE_OPTIONS = ['CHARACTER', 'CHARSET', 'COLLATE', 'COMMENT', 'DEFAULT', 'ENCRYPTION', 'READ'] as const;

/** Comments that the server may or may not run are read as if it did: better one target too many. */
export function ddlTargets(statement: string, database: string): DdlTargets {
  if (!/\b(create|alter|drop|rename)\b/i.test(statement)) return NONE;
  const words = new SqlWords(tokenize(statement), database);
  if (words.take('CREATE')) return created(words);
  if (words.take('ALTER')) return altered(words, database);
  if (words.take('DROP')) return dropped(words);
  if (words.take('RENAME', 'TABLE') || words.take('RENAME', 'TABLES')) return renamed(words);
  return NONE;
}

/** The words and names of an ALTER of one table alone, which keeps its name, in lower case; undefined for anything else. */
export function alteringWords(statement: string, database: string): ReadonlySet<string> | undefined {
  const { tables, sources } = ddlTargets(statement, database);
  const words = tokenize(statement).map(({ text }) => text.toLowerCase());
  return tables.length === 1 && sources.length === 0 && words[0] === 'alter' ? new Set(words) : undefined;
}

function created(words: SqlWords): DdlTargets {
  words.take('OR', 'REPLACE');
  if (words.take('DATABASE') || words.take('SCHEMA')) return ofDatabase(words);
  if (words.is('TEMPORARY')) return NONE;
  if (words.take('TABLE') || words.take('SEQUENCE')) {
    const ifNotExists = words.take('IF', 'NOT', 'EXISTS');
    const tables = [words.table()];
    words.symbol('(');
    const sources = words.take('LIKE') ? [words.table()] : [];
    return { ...NONE, tables, sources, base: ifNotExists || sources.length > 0 ? '' : 'creates' };
  }
  return index(words);
}

function altered(words: SqlWords, database: string): DdlTargets {
  if (words.take('DATABASE') || words.take('SCHEMA')) {
    // without a name: the session's
    return DATABASE_OPTIONS.some((word) => words.is(word)) ? { ...NONE, database } : ofDatabase(words);
  }
  words.take('ONLINE');
  words.take('IGNORE');
  if (!words.take('TABLE')) return NONE;
  words.take('IF', 'EXISTS');
  const tables = [words.table()];
  for (; !words.done; words.skip()) {
    // EXCHANGE leaves both definitions as they are; CONVERT makes a table of a partition, or the other way round
    if (words.take('CONVERT', 'TABLE') || words.take('WITH', 'TABLE')) tables.push(words.table());
    else if (words.take('CONVERT', 'PARTITION')) {
      if (words.skipTo(4, 'TABLE')) tables.push(words.table());
    } else if (words.is('RENAME') && !['COLUMN', 'INDEX', 'KEY'].some((word) => words.is('RENAME', word))) {
      words.take('RENAME');
      if (!words.take('TO') && !words.take('AS')) words.symbol('=');
      tables.push(words.table());
    }
  }
  return { ...NONE, tables };
}

function dropped(words: SqlWords): DdlTargets {
  if (words.take('DATABASE') || words.take('SCHEMA')) return { ...ofDatabase(words), base: 'drops' };
  if (words.is('TEMPORARY')) return NONE;
  if (words.take('TABLE') || words.take('TABLES') || words.take('SEQUENCE')) {
    words.take('IF', 'EXISTS');
    return { ...NONE, tables: words.tableList(), base: 'drops' };
  }
  return index(words);
}

function renamed(words: SqlWords): DdlTargets {
  words.take('IF', 'EXISTS');
  const tables: TableRef[] = [];
  do {
    tables.push(words.table());
    if (!words.skipTo(4, 'TO')) break;
    tables.push(words.table());
  } while (words.symbol(','));
  return { ...NONE, tables };
}

function index(words: SqlWords): DdlTargets {
  if (!words.skipTo(8, 'INDEX') || !words.skipTo(20, 'ON')) return NONE;
  return { ...NONE, tables: [words.table()] };
}

function ofDatabase(words: SqlWords): DdlTargets {
  words.take('IF', 'EXISTS');
  words.take('IF', 'NOT', 'EXISTS');
  return { ...NONE, database: words.name() };
}
