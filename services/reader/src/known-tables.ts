import { type TableRef, tableRefKey } from '@mysync/core';

interface Known {
  readonly table: TableRef;
  /** Counter of the transaction that dropped it; undefined while it is there. */
  readonly goneBy: number | undefined;
}

/**
 * The tables that consumers may hold rows of. When a database is dropped while nobody reads, the catalogue no longer says what was in it,
 * and the statement in the log names no table: this is what tells.
 *
 * 1. A table is known from the start at which it is captured, or from the statement that makes it.
 * 2. It stays known until the transaction that drops it is acked: a life that meets the statement again must name it again. A drop that the log does not
 *    show is told at the place of a view (docs/spec/table-resync.md), and the name forgotten once that is acked.
 */
export class KnownTables {
  readonly #tables = new Map<string, Known>();

  constructor(tables: readonly TableRef[]) {
    for (const table of tables) this.add(table);
  }

  get all(): readonly TableRef[] {
    return [...this.#tables.values()].map(({ table }) => table);
  }

  add(table: TableRef): void {
    this.#tables.set(tableRefKey(table), { table, goneBy: undefined });
  }

  /** `counter`: of the transaction that drops it, or takes its name away. */
  gone(table: TableRef, counter: number): void {
    this.#tables.set(tableRefKey(table), { table, goneBy: counter });
  }

  /** Consumers were told that it is gone, and all of that is acked. */
  forget(table: TableRef): void {
    this.#tables.delete(tableRefKey(table));
  }

  /** What a checkpoint has to name behind the transaction `counter`, all of which is acked. Forgets what is gone by then. */
  behind(counter: number): readonly TableRef[] {
    for (const [key, { goneBy }] of this.#tables) {
      if (goneBy !== undefined && goneBy <= counter) this.#tables.delete(key);
    }
    return this.all;
  }
}
