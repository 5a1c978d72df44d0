/** The definition of a table as the server's catalogue has it now. */
import type { TableRef } from '@mysync/core';
import { readColumnShapes } from '../schema/info-schema.ts';
import { keyRows, readColumnRoles } from '../schema/table-facts.ts';
import type { ServerSession } from '../server/session.ts';
import type { DefinedColumn, KeyPart, TableDefinition, TableKey } from './definition.ts';

/** undefined: there is no such table. A column of a type that we do not know ends the columns: it will not fit the table map. */
export async function readDefinition(session: ServerSession, ref: TableRef): Promise<TableDefinition | undefined> {
  const table = await session.first(
    `SELECT TABLE_TYPE AS type, c.CHARACTER_SET_NAME AS charset FROM information_schema.TABLES t
     LEFT JOIN information_schema.COLLATION_CHARACTER_SET_APPLICABILITY c ON ${COLLATION[session.facts.flavor]} = t.TABLE_COLLATION
     WHERE t.TABLE_SCHEMA = ? AND t.TABLE_NAME = ?`,
    [ref.database, ref.table],
  );
  if (table === undefined) return undefined;
  const rows = await keyRows(session, ref, false);
  if (rows === undefined) return undefined;
  const { shapes } = await readColumnShapes(session, ref);
  const keys = new Map<string, TableKey & { readonly parts: KeyPart[] }>();
  for (const row of rows) {
    const name = row['Key_name'] ?? '';
    const kind = name === 'PRIMARY' ? 'primary' : row['Non_unique'] === '0' ? 'unique' : 'other';
    const key = keys.get(name) ?? { name, kind, parts: [] };
    keys.set(name, key);
    key.parts.push({ column: row['Column_name'] ?? '', prefix: Number(row['Sub_part'] ?? 0) });
  }
  const type = table['type'] ?? '';
  const roles = session.facts.flavor === 'mariadb' ? await readRoles(session, ref) : NONE;
  return {
    columns: shapes.map((shape) => ({ ...shape, ...roles.get(shape.name) })),
    keys: [...keys.values()],
    charset: table['charset'] ?? null,
    versioned: type === 'SYSTEM VERSIONED',
    sequence: type === 'SEQUENCE',
  };
}

type Role = Pick<DefinedColumn, 'bound' | 'virtual'>;

const NONE: ReadonlyMap<string, Role> = new Map();

/** Columns that bound the time of a row, and those that are computed. */
async function readRoles(session: ServerSession, ref: TableRef): Promise<typeof NONE> {
  const roles = new Map<string, Role>();
  for (const { name, generated, isVirtual } of await readColumnRoles(session, ref)) {
    if (generated === 'ROW START') roles.set(name, { bound: 'start' });
    else if (generated === 'ROW END') roles.set(name, { bound: 'end' });
    else if (isVirtual) roles.set(name, { virtual: true });
  }
  return roles;
}

/** MariaDB's newer collations stand with their charset in front in TABLES. */
const COLLATION = { mysql: 'c.COLLATION_NAME', mariadb: 'c.FULL_COLLATION_NAME' } as const;

/** The default charset of a database as it is now; null when there is none of this name. */
export async function readDatabaseCharset(session: ServerSession, database: string): Promise<string | null> {
  const row = await session.first(
    'SELECT DEFAULT_CHARACTER_SET_NAME AS charset FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?',
    [database],
  );
  return row?.['charset'] ?? null;
}

/** Members of ENUM and SET as their column's charset can hold them: the server puts a question mark for what it cannot. */
export async function withStorableMembers(
  session: ServerSession,
  definition: TableDefinition,
): Promise<TableDefinition> {
  const columns: DefinedColumn[] = [];
  for (const column of definition.columns) columns.push(await storable(session, column));
  return columns.every((column, i) => column === definition.columns[i]) ? definition : { ...definition, columns };
}

async function storable(session: ServerSession, column: DefinedColumn): Promise<DefinedColumn> {
  const { charset, members } = column;
  if (members.length === 0 || charset === null || /^(utf8mb4|utf16|utf16le|utf32|binary)$/.test(charset)) return column;
  if (charset !== 'swe7' && members.every((member) => /^[ -~]*$/.test(member))) return column;
  const list = members.map((_, i) => `CONVERT(CONVERT(? USING ${charset}) USING utf8mb4) AS m${i}`);
  const row = await session.first(`SELECT ${list.join(', ')}`, members);
  const held = members.map((member, i) => row?.[`m${i}`] ?? member);
  return held.every((member, i) => member === members[i]) ? column : { ...column, members: held };
}
