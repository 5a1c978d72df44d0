/**
 * What a statement in the log means for captured tables. Column definitions do not matter here: the next table map brings them.
 * Only what changes rows without row events, or ends a table, has to be seen.
 */
import type { TableRef } from '@mysync/core';
import { tokenize } from './sql-tokens.ts';
import { SqlWords } from './sql-words.ts';

export type StatementMeaning =
  | { readonly kind: 'begin' | 'commit' | 'rollback' | 'xa-start' | 'xa-end' | 'xa-outcome' | 'harmless' }
  | { readonly kind: 'savepoint' | 'rollback-to'; readonly name: string }
  /** The rows of these tables are gone: TRUNCATE, DROP, CREATE OR REPLACE. */
  | {
      readonly kind: 'empties';
      readonly tables: readonly TableRef[];
      readonly drops: boolean;
      /** With rows of a query, which a session without row format logs as this text only. */
      readonly fills?: true;
    }
  | { readonly kind: 'renames'; readonly pairs: readonly { readonly from: TableRef; readonly to: TableRef }[] }
  /** Rows of the tables came or went with their partition or tablespace. */
  | { readonly kind: 'moves-rows'; readonly tables: readonly TableRef[] }
  /** `reshapes`: rows that stay may look otherwise now. */
  | {
      readonly kind: 'ddl';
      readonly tables: readonly TableRef[];
      readonly reshapes: boolean;
      readonly fills?: true;
      /** A foreign key of the table may be gone, or columns that one refers to have other names. */
      readonly unties?: 'keys' | 'columns';
    }
  | { readonly kind: 'drops-database'; readonly database: string }
  /** May change rows of any of these tables: a statement of a session without row format, or one that we do not know. */
  | { readonly kind: 'may-change-rows'; readonly tables: readonly TableRef[]; readonly known: boolean };

const HARMLESS: StatementMeaning = { kind: 'harmless' };
/** Statements that never touch rows, by first word. */
const HARMLESS_VERBS = new Set(
  'GRANT REVOKE SET FLUSH ANALYZE OPTIMIZE REPAIR CHECK CHECKSUM INSTALL UNINSTALL LOCK UNLOCK KILL RESET PURGE CHANGE START STOP SHOW USE CACHE HELP'.split(
    ' ',
  ),
);
const DML_VERBS = new Set('INSERT REPLACE UPDATE DELETE LOAD WITH CALL SELECT DO VALUES TABLE'.split(' '));
/** Beginnings of the clauses of ALTER TABLE after which every row looks as before, and has the name it had. */
const KEEPS_ROWS =
  /^(?:ADD (?:INDEX|KEY|FULLTEXT|SPATIAL|FOREIGN|CHECK|PARTITION|SYSTEM|PERIOD)|DROP (?:INDEX|KEY|FOREIGN|CHECK|PARTITION|SYSTEM|PERIOD)|(?:RENAME|ALTER) (?:INDEX|KEY)|(?:ENABLE|DISABLE) KEYS|(?:ENGINE|COMMENT|AUTO_INCREMENT|ALGORITHM|LOCK|FORCE|ORDER|ROW_FORMAT|KEY_BLOCK_SIZE|STATS_\w+|WAIT|NOWAIT|PARTITION|REMOVE|REORGANIZE|COALESCE|REBUILD|TRUNCATE|EXCHANGE|RENAME TO|RENAME AS)\b)/;
const DROPS_KEYS = /^DROP (?:FOREIGN|CONSTRAINT)\b/;
const NAMES_COLUMNS = /^(?:RENAME COLUMN|CHANGE)\b/;
/** Objects whose definition may hold any text but that hold no rows. */
const ROWLESS_OBJECTS = new Set(
  'USER ROLE VIEW TRIGGER PROCEDURE FUNCTION EVENT SERVER PACKAGE SEQUENCE TABLESPACE LOGFILE UNDO RESOURCE SPATIAL INSTANCE LIBRARY'.split(
    ' ',
  ),
);

export function readStatement(sql: string, database: string): StatementMeaning {
  // the usual one first: nothing is cut up for it
  if (sql === 'BEGIN') return { kind: 'begin' };
  if (sql === 'COMMIT') return { kind: 'commit' };
  const words = new SqlWords(tokenize(sql), database);
  if (words.take('BEGIN') || words.take('START', 'TRANSACTION')) return { kind: 'begin' };
  if (words.take('COMMIT')) return { kind: 'commit' };
  if (words.take('SAVEPOINT')) return { kind: 'savepoint', name: words.name().toLowerCase() };
  if (words.take('RELEASE', 'SAVEPOINT')) return HARMLESS;
  if (words.take('ROLLBACK')) {
    words.take('WORK');
    if (!words.take('TO')) return { kind: 'rollback' };
    words.take('SAVEPOINT');
    return { kind: 'rollback-to', name: words.name().toLowerCase() };
  }
  if (words.take('XA')) {
    if (words.take('START') || words.take('BEGIN')) return { kind: 'xa-start' };
    if (words.take('END')) return { kind: 'xa-end' };
    return { kind: 'xa-outcome' };
  }
  if (words.take('TRUNCATE')) {
    words.take('TABLE');
    return { kind: 'empties', tables: [words.table()], drops: false };
  }
  if (words.take('DROP')) return drop(words);
  if (words.take('RENAME')) return rename(words);
  if (words.take('ALTER')) return alter(words);
  if (words.take('CREATE')) return create(words);
  const verb = words.peek();
  if (HARMLESS_VERBS.has(verb)) return HARMLESS;
  return { kind: 'may-change-rows', tables: words.everyTable(), known: DML_VERBS.has(verb) };
}

function drop(words: SqlWords): StatementMeaning {
  if (words.take('TEMPORARY')) return HARMLESS;
  if (words.take('DATABASE') || words.take('SCHEMA')) {
    words.take('IF', 'EXISTS');
    return { kind: 'drops-database', database: words.name() };
  }
  if (words.take('TABLE') || words.take('TABLES')) {
    words.take('IF', 'EXISTS');
    return { kind: 'empties', tables: words.tableList(), drops: true };
  }
  return index(words) ?? HARMLESS;
}

/** `[ONLINE] [UNIQUE] … INDEX name … ON table`, which changes no row. */
function index(words: SqlWords): StatementMeaning | undefined {
  if (!words.skipTo(8, 'INDEX')) return undefined;
  return words.skipTo(20, 'ON') ? { kind: 'ddl', tables: [words.table()], reshapes: false } : HARMLESS;
}

function rename(words: SqlWords): StatementMeaning {
  if (!words.take('TABLE') && !words.take('TABLES')) return HARMLESS;
  words.take('IF', 'EXISTS');
  const pairs: { from: TableRef; to: TableRef }[] = [];
  do {
    const from = words.table();
    if (!words.skipTo(4, 'TO')) break;
    pairs.push({ from, to: words.table() });
  } while (words.symbol(','));
  return { kind: 'renames', pairs };
}

function alter(words: SqlWords): StatementMeaning {
  words.take('ONLINE');
  const drops = words.take('IGNORE');
  if (!words.take('TABLE')) return HARMLESS;
  words.take('IF', 'EXISTS');
  const table = words.table();
  const others: TableRef[] = [];
  // rows that a new unique key does not allow are dropped
  let moves = drops && words.mention('UNIQUE', 'PRIMARY');
  const heads = words.clauseHeads();
  const reshapes = heads.some((head) => !KEEPS_ROWS.test(head));
  let renamed: TableRef | undefined;
  for (; !words.done; words.skip()) {
    if (words.is('TRUNCATE', 'PARTITION') || words.is('DROP', 'PARTITION') || words.is('IMPORT', 'TABLESPACE'))
      moves = true;
    else if (words.is('DISCARD', 'TABLESPACE') || words.is('IMPORT', 'PARTITION') || words.is('DISCARD', 'PARTITION'))
      moves = true;
    else if (words.take('EXCHANGE', 'PARTITION')) {
      moves = true;
      if (words.skipTo(4, 'TABLE')) others.push(words.table());
    } else if (words.take('CONVERT', 'PARTITION')) {
      moves = true;
      if (words.skipTo(4, 'TABLE')) others.push(words.table());
    } else if (words.take('CONVERT', 'TABLE')) {
      moves = true;
      others.push(words.table());
    } else if (
      words.is('RENAME') &&
      !words.is('RENAME', 'COLUMN') &&
      !words.is('RENAME', 'INDEX') &&
      !words.is('RENAME', 'KEY')
    ) {
      words.take('RENAME');
      if (!words.take('TO')) words.take('AS');
      renamed = words.table();
    }
  }
  if (moves) return { kind: 'moves-rows', tables: [table, ...others] };
  if (renamed !== undefined) return { kind: 'renames', pairs: [{ from: table, to: renamed }] };
  if (heads.some((head) => DROPS_KEYS.test(head))) return { kind: 'ddl', tables: [table], reshapes, unties: 'keys' };
  if (heads.some((head) => NAMES_COLUMNS.test(head)))
    return { kind: 'ddl', tables: [table], reshapes, unties: 'columns' };
  return { kind: 'ddl', tables: [table], reshapes };
}

function create(words: SqlWords): StatementMeaning {
  const replaces = words.take('OR', 'REPLACE');
  if (words.take('TEMPORARY')) return HARMLESS;
  if (words.take('TABLE')) {
    words.take('IF', 'NOT', 'EXISTS');
    const tables = [words.table()];
    // a query, TABLE other, or VALUES ROW(…): where rows are logged as rows the text has none of them; ROW START bounds a period
    const fills = words.mention('SELECT', 'TABLE') || words.mentionCall('ROW') ? ({ fills: true } as const) : {};
    return replaces
      ? { kind: 'empties', tables, drops: true, ...fills }
      : { kind: 'ddl', tables, reshapes: false, ...fills };
  }
  if (ROWLESS_OBJECTS.has(words.peek()) || words.is('DEFINER') || words.is('ALGORITHM') || words.is('SQL'))
    return HARMLESS;
  return index(words) ?? HARMLESS;
}
