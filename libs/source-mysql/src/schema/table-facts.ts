/** What only the server's catalogue tells of a table. It tells of now: see each use for why that is right for rows of then. */
import type { TableRef } from '@mysync/core';
import { quoteTable } from '../server/dialect.ts';
import { SERVER_ERRORS, serverErrorNumber } from '../server/mysql-error.ts';
import type { ServerSession, TextRow } from '../server/session.ts';
import { HIDDEN_PERIOD, type Period, withoutEnd } from './period.ts';

export interface TableFacts {
  readonly ref: TableRef;
  /** Of a system-versioned table: its rows are current for a time, its keys are told without it. */
  readonly period: Period | null;
  /** Columns that are computed where they are read; empty on MySQL. */
  readonly virtual: readonly string[];
  readonly sequence: boolean;
  readonly primaryKey: readonly string[];
  /** Column names of the unique keys that name every row (no NULL, no prefix, no expression), in the server's order. */
  readonly uniqueKeys: readonly (readonly string[])[];
}

/** Tables of the server that a filter wants; never those of the server itself. */
export async function listTables(
  session: ServerSession,
  captures: (ref: TableRef) => boolean,
): Promise<readonly TableRef[]> {
  const rows = await session.query(
    `SELECT TABLE_SCHEMA AS db, TABLE_NAME AS name FROM information_schema.TABLES
     WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
       AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
     ORDER BY TABLE_SCHEMA, TABLE_NAME`,
  );
  return rows.map((row) => ({ database: row['db'] ?? '', table: row['name'] ?? '' })).filter((ref) => captures(ref));
}

/** Views of all databases but the server's own. */
export async function listViews(session: ServerSession): Promise<readonly TableRef[]> {
  const rows = await session.query(
    `SELECT TABLE_SCHEMA AS db, TABLE_NAME AS name FROM information_schema.TABLES
     WHERE TABLE_TYPE = 'VIEW' AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')`,
  );
  return rows.map((row) => ({ database: row['db'] ?? '', table: row['name'] ?? '' }));
}

/** undefined when there is no such table (any more). */
export async function readTableFacts(session: ServerSession, ref: TableRef): Promise<TableFacts | undefined> {
  const names = [ref.database, ref.table];
  const table = await session.first(
    'SELECT TABLE_TYPE AS type FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?',
    names,
  );
  if (table === undefined) {
    await requireGone(session, ref);
    return undefined;
  }
  const type = table['type'] ?? '';
  const keys = await showKeys(session, ref);
  if (keys === undefined) return undefined;
  const columns = session.facts.flavor === 'mariadb' ? await readColumnRoles(session, ref) : [];
  const period = periodOf(type === 'SYSTEM VERSIONED', columns);
  const named = (key: Key | undefined): readonly string[] => withoutEnd(key?.columns ?? [], period);
  return {
    ref,
    period,
    virtual: columns.flatMap(({ name, isVirtual }) => (isVirtual ? [name] : [])),
    sequence: type === 'SEQUENCE',
    primaryKey: named(keys.get('PRIMARY')),
    uniqueKeys: [...keys].filter(([name, key]) => name !== 'PRIMARY' && key.namesRows).map(([, key]) => named(key)),
  };
}

export interface ColumnRole {
  readonly name: string;
  /** ROW START or ROW END, or the expression of a generated column; '' for others. */
  readonly generated: string;
  readonly isVirtual: boolean;
}

/** Of a MariaDB table. */
export async function readColumnRoles(session: ServerSession, ref: TableRef): Promise<readonly ColumnRole[]> {
  const rows = await session.query(
    `SELECT COLUMN_NAME AS name, GENERATION_EXPRESSION AS expression, EXTRA AS extra
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?`,
    [ref.database, ref.table],
  );
  return rows.map((row) => ({
    name: row['name'] ?? '',
    generated: row['expression'] ?? '',
    isVirtual: /\bVIRTUAL GENERATED\b/.test(row['extra'] ?? ''),
  }));
}

/** The columns are asked after the table: what they say goes first. */
function periodOf(isVersioned: boolean, columns: readonly ColumnRole[]): Period | null {
  const start = columns.find(({ generated }) => generated === 'ROW START')?.name;
  const end = columns.find(({ generated }) => generated === 'ROW END')?.name;
  if (start !== undefined && end !== undefined) return { start, end, isHidden: false };
  return isVersioned ? HIDDEN_PERIOD : null;
}

/**
 * The catalogue hides tables on which a user has no privilege: such a table must not be taken for one that is gone. Throws
 * SOURCE_GRANT_MISSING.
 */
export async function requireGone(session: ServerSession, ref: TableRef): Promise<void> {
  await isGone(session, ref);
}

/** The server itself says that there is no such table. False where it can be read, be it a view. Throws whatever else it answers. */
export async function isGone(session: ServerSession, ref: TableRef): Promise<boolean> {
  try {
    await session.query(`SELECT 1 FROM ${quoteTable(ref)} LIMIT 0`);
    return false;
  } catch (error) {
    const number = serverErrorNumber(error);
    if (number === SERVER_ERRORS.NO_SUCH_TABLE || number === SERVER_ERRORS.NO_SUCH_DATABASE) return true;
    throw error;
  }
}

interface Key {
  readonly columns: string[];
  namesRows: boolean;
}

async function showKeys(session: ServerSession, ref: TableRef): Promise<ReadonlyMap<string, Key> | undefined> {
  const rows = await keyRows(session, ref, true);
  if (rows === undefined) return undefined;
  const keys = new Map<string, Key>();
  for (const row of rows) {
    const name = row['Key_name'] ?? '';
    const key = keys.get(name) ?? { columns: [], namesRows: true };
    keys.set(name, key);
    key.columns.push(row['Column_name'] ?? '');
    if (row['Null'] === 'YES' || row['Sub_part'] != null || row['Column_name'] == null) key.namesRows = false;
  }
  return keys;
}

/** Rows of SHOW KEYS: a row for each part of each key, in the server's order; undefined when there is no such table. */
export async function keyRows(
  session: ServerSession,
  ref: TableRef,
  uniqueOnly: boolean,
): Promise<readonly TextRow[] | undefined> {
  try {
    return await session.query(`SHOW KEYS FROM ${quoteTable(ref)}${uniqueOnly ? ' WHERE Non_unique = 0' : ''}`);
  } catch (error) {
    if (serverErrorNumber(error) === SERVER_ERRORS.NO_SUCH_TABLE) return undefined;
    throw error;
  }
}

/** A foreign key of `child` by which the server itself changes its rows. */
export interface CascadingKey {
  readonly child: TableRef;
  readonly parent: TableRef;
}

/** Foreign keys of a table whose actions change rows of it. */
export async function readCascades(session: ServerSession, child: TableRef): Promise<readonly CascadingKey[]> {
  const rows = await session.query(
    `SELECT UNIQUE_CONSTRAINT_SCHEMA AS parent_db, REFERENCED_TABLE_NAME AS parent
     FROM information_schema.REFERENTIAL_CONSTRAINTS
     WHERE (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
     AND CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ?`,
    [child.database, child.table],
  );
  return rows.map((row) => ({ child, parent: { database: row['parent_db'] ?? '', table: row['parent'] ?? '' } }));
}
