/**
 * Which captured tables the server's foreign keys change, in how many steps ever, when rows of a table are changed. Pure.
 *
 * A step follows a key only where the change before it can set it off: a deletion its ON DELETE, a change of a column that it refers to its ON UPDATE.
 * Updates do not come back to the table itself: InnoDB refuses them.
 */
import { type TableRef, tableRefKey } from '@mysync/core';
import type { ForeignKey, ReferredColumn } from './foreign-keys.ts';

export interface ReferredTable {
  /** Changed when rows of it are deleted. */
  readonly byDelete: readonly TableRef[];
  /** Changed when one of the columns is; no columns: which ones is not known. */
  readonly byUpdate: readonly { readonly columns: readonly ReferredColumn[]; readonly tables: readonly TableRef[] }[];
}

export interface CascadeReachOptions {
  readonly keys: readonly ForeignKey[];
  captures(ref: TableRef): boolean;
  /** As names stand in the log. */
  fold(ref: TableRef): TableRef;
}

/** What happened to rows of a table. */
interface Change {
  deleted: boolean;
  /** Any column may have changed. */
  anyColumn: boolean;
  readonly columns: Set<string>;
}

export class CascadeReach {
  readonly #options: CascadeReachOptions;
  readonly #keysTo = new Map<string, ForeignKey[]>();
  readonly #tied = new Set<string>();
  /** Tables that matter, by key: those from which a captured one is reached. */
  readonly #referred = new Map<string, ReferredTable>();

  constructor(options: CascadeReachOptions) {
    this.#options = options;
    for (const key of options.keys) {
      const folded = { ...key, child: options.fold(key.child), parent: options.fold(key.parent) };
      const name = tableRefKey(folded.parent);
      const keys = this.#keysTo.get(name) ?? [];
      keys.push(folded);
      this.#keysTo.set(name, keys);
      this.#tied.add(name).add(tableRefKey(folded.child));
    }
    for (const [name, keys] of this.#keysTo) {
      const byDelete = this.#follow(name, { deleted: true, anyColumn: false, columns: new Set() });
      const byUpdate = keys.flatMap((key) => {
        const tables = this.#follow(name, { deleted: false, anyColumn: true, columns: new Set() }, [key]);
        return tables.length === 0 ? [] : [{ columns: key.referred, tables }];
      });
      if (byDelete.length + byUpdate.length > 0) this.#referred.set(name, { byDelete, byUpdate });
    }
  }

  /** No captured table is reached from anywhere. */
  get isEmpty(): boolean {
    return this.#referred.size === 0;
  }

  /** A key is of the table, or refers to it. */
  mentions(ref: TableRef): boolean {
    return this.#tied.has(tableRefKey(ref));
  }

  /** undefined: no captured table is reached from it. */
  of(ref: TableRef): ReferredTable | undefined {
    return this.#referred.get(tableRefKey(ref));
  }

  /** Captured tables that any change of rows of it may reach. */
  below(ref: TableRef): readonly TableRef[] {
    return this.#follow(tableRefKey(ref), { deleted: true, anyColumn: true, columns: new Set() });
  }

  /** Captured tables that are reached from those of the database. */
  belowDatabase(database: string): readonly TableRef[] {
    const found = new Map<string, TableRef>();
    for (const [name, keys] of this.#keysTo) {
      if (keys[0]?.parent.database !== database) continue;
      for (const table of this.#follow(name, { deleted: true, anyColumn: true, columns: new Set() })) {
        found.set(tableRefKey(table), table);
      }
    }
    return [...found.values()];
  }

  /** `first`: the keys of the first table that are followed. */
  #follow(from: string, change: Change, first = this.#keysTo.get(from) ?? []): TableRef[] {
    const changes = new Map([[from, change]]);
    const reached = new Map<string, TableRef>();
    const waiting: { readonly name: string; readonly keys: readonly ForeignKey[] }[] = [{ name: from, keys: first }];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const of = changes.get(next.name) as Change;
      for (const key of next.keys) {
        const name = tableRefKey(key.child);
        const child = changes.get(name) ?? { deleted: false, anyColumn: false, columns: new Set() };
        const isNew = apply(key, of, child);
        if (isNew === undefined) continue;
        if (this.#options.captures(key.child)) reached.set(name, key.child);
        changes.set(name, child);
        if (isNew) waiting.push({ name, keys: this.#keysTo.get(name) ?? [] });
      }
    }
    return [...reached.values()];
  }
}

/** undefined: the key is not set off. Else whether the child's rows are changed in a way that they were not before. */
function apply(key: ForeignKey, of: Change, child: Change): boolean | undefined {
  const isOwn = of === child;
  const onDelete = of.deleted ? key.onDelete : null;
  const onUpdate = key.onUpdate !== null && !isOwn && touches(of, key.referred) ? key.onUpdate : null;
  if (onDelete === null && onUpdate === null) return undefined;
  let isNew = false;
  if ((onDelete === 'deletes' || onUpdate === 'deletes') && !child.deleted) {
    child.deleted = true;
    isNew = true;
  }
  if (onDelete === 'updates' || onUpdate === 'updates') {
    if (key.columns.length === 0 && !child.anyColumn) {
      child.anyColumn = true;
      isNew = true;
    }
    for (const column of key.columns) {
      if (child.columns.has(column)) continue;
      child.columns.add(column);
      isNew = true;
    }
  }
  return isNew;
}

function touches({ anyColumn, columns }: Change, referred: readonly ReferredColumn[]): boolean {
  if (anyColumn) return true;
  if (referred.length === 0) return columns.size > 0;
  return referred.some(({ name }) => columns.has(name));
}
