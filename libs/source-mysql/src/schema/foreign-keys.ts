/** Foreign keys whose actions change rows of their child, as the catalogue has them now. */
import type { TableRef } from '@mysync/core';
import type { ServerSession } from '../server/session.ts';

/** What the action does to rows of the child; null: nothing. */
export type ChildAction = 'deletes' | 'updates' | null;

export interface ReferredColumn {
  /** In lower case: names of columns are compared so. */
  readonly name: string;
  /** Its place in the parent as it is now, from 0; undefined where the user may not see it. */
  readonly index: number | undefined;
}

export interface ForeignKey {
  /** Of its constraint: another one of the same child has another name. */
  readonly name: string;
  readonly child: TableRef;
  readonly parent: TableRef;
  /** Of the child, in lower case. None where the user may not see them; `referred` has none then, too. */
  readonly columns: readonly string[];
  readonly referred: readonly ReferredColumn[];
  readonly onDelete: ChildAction;
  readonly onUpdate: ChildAction;
}

const CHANGING = "('CASCADE', 'SET NULL', 'SET DEFAULT')";

/** Those of all tables that the user may see. */
export async function readForeignKeys(session: ServerSession): Promise<readonly ForeignKey[]> {
  const rows = await session.query(
    `SELECT r.CONSTRAINT_SCHEMA AS db, r.TABLE_NAME AS name, r.CONSTRAINT_NAME AS fk, r.UNIQUE_CONSTRAINT_SCHEMA AS parent_db,
            r.REFERENCED_TABLE_NAME AS parent, r.DELETE_RULE AS on_delete, r.UPDATE_RULE AS on_update,
            k.COLUMN_NAME AS column_name, k.REFERENCED_COLUMN_NAME AS referred, c.ORDINAL_POSITION AS place
     FROM information_schema.REFERENTIAL_CONSTRAINTS r
     LEFT JOIN information_schema.KEY_COLUMN_USAGE k ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA
       AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME AND k.TABLE_SCHEMA = r.CONSTRAINT_SCHEMA AND k.TABLE_NAME = r.TABLE_NAME
     LEFT JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = r.UNIQUE_CONSTRAINT_SCHEMA
       AND c.TABLE_NAME = r.REFERENCED_TABLE_NAME AND c.COLUMN_NAME = k.REFERENCED_COLUMN_NAME
     WHERE r.DELETE_RULE IN ${CHANGING} OR r.UPDATE_RULE IN ${CHANGING}
     ORDER BY db, name, fk, k.ORDINAL_POSITION`,
  );
  const keys = new Map<string, ForeignKey & { readonly columns: string[]; readonly referred: ReferredColumn[] }>();
  for (const row of rows) {
    const id = `${row['db']}\0${row['name']}\0${row['fk']}`;
    const key = keys.get(id) ?? {
      name: row['fk'] ?? '',
      child: { database: row['db'] ?? '', table: row['name'] ?? '' },
      parent: { database: row['parent_db'] ?? '', table: row['parent'] ?? '' },
      columns: [],
      referred: [],
      onDelete: actionOf(row['on_delete'], 'deletes'),
      onUpdate: actionOf(row['on_update'], 'updates'),
    };
    keys.set(id, key);
    if (row['column_name'] == null || row['referred'] == null) continue;
    key.columns.push(row['column_name'].toLowerCase());
    const index = row['place'] == null ? undefined : Number(row['place']) - 1;
    key.referred.push({ name: row['referred'].toLowerCase(), index });
  }
  return [...keys.values()];
}

function actionOf(rule: string | null | undefined, ofCascade: 'deletes' | 'updates'): ChildAction {
  if (rule === 'CASCADE') return ofCascade;
  return rule === 'SET NULL' || rule === 'SET DEFAULT' ? 'updates' : null;
}
