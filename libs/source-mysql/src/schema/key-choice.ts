/** How rows of a table are named: the same answer for the snapshot and for the stream. */
import { formatTableRef, type KeyRule, type TableRef, type TableSchema } from '@mysync/core';
import { makeTableSchema } from '@mysync/wire';
import { sourceErrors } from '../errors.ts';
import type { TableRule } from '../options.ts';
import { type ColumnShape, toColumn } from './column-shape.ts';

export interface KeyChoice {
  readonly rule: KeyRule;
  /** Names in key order; empty for row-hash. */
  readonly columns: readonly string[];
}

/**
 * The key that a table map names: the primary key, or what the server takes for it in a table without one, the first unique key over whole
 * NOT NULL columns. So what the map says is all there is, and of then; only which of the two it is, nobody but the catalogue of now tells.
 */
export function keyInLog(
  named: readonly string[],
  now: { readonly primaryKey: readonly string[]; readonly uniqueKeys: readonly (readonly string[])[] } | undefined,
): KeyChoice {
  if (named.length === 0) return { rule: 'row-hash', columns: [] };
  const text = named.join('\0');
  const isUnique = now?.primaryKey.length === 0 && now.uniqueKeys.some((key) => key.join('\0') === text);
  return { rule: isUnique ? 'unique' : 'primary', columns: named };
}

/** The primary key; else the first unique key whose columns are all there and NOT NULL; else the hash of the row, where the rule allows it. */
export function chooseKey(
  columns: readonly ColumnShape[],
  primaryKey: readonly string[],
  uniqueKeys: readonly (readonly string[])[],
): KeyChoice {
  if (primaryKey.length > 0) return { rule: 'primary', columns: primaryKey };
  const notNull = new Set(columns.filter((column) => !column.nullable).map((column) => column.name));
  const unique = uniqueKeys.find((key) => key.length > 0 && key.every((name) => notNull.has(name)));
  if (unique !== undefined) return { rule: 'unique', columns: unique };
  return { rule: 'row-hash', columns: [] };
}

/** Throws SOURCE_TABLE_WITHOUT_KEY where a table without a key is refused. */
export function buildSchema(
  table: TableRef,
  columns: readonly ColumnShape[],
  key: KeyChoice,
  rule: TableRule,
): TableSchema {
  if (key.rule === 'row-hash' && rule.noKey === 'refuse') throw tableWithoutKey(table);
  return makeTableSchema({
    database: table.database,
    table: table.table,
    columns: columns.map((shape) => toColumn(shape, key.columns.indexOf(shape.name) + 1)),
    keyRule: key.rule,
  });
}

/** What that means for whoever has such a table: docs/spec/keys.md, "Rows without a key". */
export function namedByHash(table: TableRef): string {
  return `table ${formatTableRef(table)} has no key: rows are named by the hash of the whole row, so equal rows are one row in the sinks, and deleting one of them removes it there though the others stay in the table`;
}

export function tableWithoutKey(table: TableRef): Error {
  return sourceErrors.SOURCE_TABLE_WITHOUT_KEY({
    message: `table ${formatTableRef(table)} has neither a primary key nor a unique key over NOT NULL columns`,
    where: { table: formatTableRef(table) },
    remedy: `ALTER TABLE \`${table.database}\`.\`${table.table}\` ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY; or set noKey: row-hash for it; or do not capture it.`,
  });
}
