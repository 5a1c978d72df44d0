/** Tables as the server's catalogue has them: what the generator goes by, so that it need not model what DDL does. */
import type { TableRef } from '@mysync/core';
import type { Client } from './client.ts';
import { quoteTable } from './sql-text.ts';

export type Flavor = 'mariadb' | 'mysql';

export interface CatalogueColumn {
  readonly name: string;
  /** Without length and attributes: `decimal`. */
  readonly base: string;
  /** In full: `decimal(10,2) unsigned`. */
  readonly type: string;
  readonly charset: string;
  /** Characters, or bytes. */
  readonly length: number;
  readonly precision: number;
  readonly scale: number;
  readonly unsigned: boolean;
  readonly nullable: boolean;
  readonly generated: boolean;
  /** Of the period of a system-versioned table. */
  readonly isBound: boolean;
  /** Part of a key, or of an index. */
  readonly inKey: boolean;
  readonly comment: string;
  /** '' for any. */
  readonly srid: string;
}

export type KeyKind = 'primary' | 'unique' | 'none';

export interface CatalogueTable {
  readonly ref: TableRef;
  readonly engine: string;
  readonly partitioned: boolean;
  /** The server keeps the history of its rows (MariaDB). */
  readonly versioned: boolean;
  readonly columns: readonly CatalogueColumn[];
  readonly key: KeyKind;
  /** Names of the columns that name a row; of any unique key where there is no primary one. */
  readonly keyColumns: ReadonlySet<string>;
}

function literal(name: string): string {
  return `x'${Buffer.from(name, 'utf8').toString('hex')}'`;
}

/** undefined when there is no such table. */
export async function readTable(client: Client, flavor: Flavor, ref: TableRef): Promise<CatalogueTable | undefined> {
  const where = `TABLE_SCHEMA = CONVERT(${literal(ref.database)} USING utf8mb4) AND TABLE_NAME = CONVERT(${literal(ref.table)} USING utf8mb4)`;
  const [table] = await client.rows(
    `SELECT ENGINE, CREATE_OPTIONS, TABLE_TYPE FROM information_schema.TABLES WHERE ${where}`,
  );
  if (table === undefined) return undefined;
  const rows = await client.rows(
    `SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE,
       DATETIME_PRECISION, IS_NULLABLE, GENERATION_EXPRESSION, COLUMN_COMMENT, COLUMN_KEY, ${flavor === 'mysql' ? 'SRS_ID' : "''"}
     FROM information_schema.COLUMNS WHERE ${where} ORDER BY ORDINAL_POSITION`,
  );
  const columns = rows.map((row): CatalogueColumn => {
    const [name, base, type, charset, length, precision, scale, fraction, nullable, generated, comment, key, srid] =
      row.map((cell) => cell ?? '') as [
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
        string,
      ];
    return {
      name,
      base: base.toLowerCase(),
      type,
      charset,
      length: Number(length),
      precision: Number(precision),
      scale: fraction === '' ? Number(scale) : Number(fraction),
      unsigned: /unsigned|zerofill/.test(type),
      nullable: nullable === 'YES',
      generated: generated !== '',
      isBound: /^ROW (START|END)$/.test(generated),
      inKey: key !== '',
      comment,
      srid,
    };
  });
  const keys = await client.rows(`SHOW KEYS FROM ${quoteTable(ref)} WHERE Non_unique = 0`);
  const named = new Map<string, { columns: string[]; names: boolean }>();
  for (const row of keys) {
    const name = row[2] ?? '';
    const entry = named.get(name) ?? { columns: [], names: true };
    named.set(name, entry);
    entry.columns.push(row[4] ?? '');
    if (row[7] !== null || row[9] === 'YES' || row[4] === null) entry.names = false;
  }
  const primary = named.get('PRIMARY');
  const unique = [...named].filter(([name, key]) => name !== 'PRIMARY' && key.names).flatMap(([, key]) => key.columns);
  return {
    ref,
    engine: table[0] ?? '',
    partitioned: /partitioned/.test(table[1] ?? ''),
    versioned: table[2] === 'SYSTEM VERSIONED',
    columns,
    key: primary !== undefined ? 'primary' : unique.length > 0 ? 'unique' : 'none',
    keyColumns: new Set(primary?.columns ?? unique),
  };
}

export interface CharsetList {
  /** With their collations. */
  readonly charsets: readonly { readonly name: string; readonly collations: readonly string[] }[];
}

/** latin2_czech_cs is left out: see the exclusions. */
export async function readCharsets(client: Client, flavor: Flavor): Promise<CharsetList> {
  const table = flavor === 'mariadb' ? 'COLLATION_CHARACTER_SET_APPLICABILITY' : 'COLLATIONS';
  const rows = await client.rows(
    `SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.${table}
     WHERE CHARACTER_SET_NAME IS NOT NULL AND CHARACTER_SET_NAME <> 'binary'
       AND COLLATION_NAME <> 'latin2_czech_cs' ORDER BY 1, 2`,
  );
  const charsets = new Map<string, string[]>();
  for (const [name, collation] of rows) {
    if (name == null || collation == null) continue;
    const list = charsets.get(name) ?? [];
    charsets.set(name, list);
    list.push(collation);
  }
  return { charsets: [...charsets].map(([name, collations]) => ({ name, collations })) };
}
