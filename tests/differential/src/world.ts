/**
 * One seed's tables on the server, and what the server said of them at each checkpoint.
 *
 * 1. The catalogue is asked after each DDL, so what DDL does is the server's own answer.
 * 2. A checkpoint is a row in the table of marks, written right behind the SELECTs: where it stands in the log, the copy must be
 *    equal to them.
 * 3. `n` is a column of every table, unique over all rows ever made and changed by adding one only: what makes rows of tables without a key
 *    differ, and what touches a row without changing anything else.
 */
import { type TableRef, tableRefKey } from '@mysync/core';
import { type CatalogueTable, type Flavor, readTable } from './catalogue.ts';
import type { Client } from './client.ts';
import type { ColumnTypes } from './column-types.ts';
import { randomName } from './names.ts';
import type { Random } from './random.ts';
import { quoteTable } from './sql-text.ts';
import { type ExpectedTable, readTruth } from './truth.ts';

export interface WorldTable extends CatalogueTable {
  /** Rows may have the shape of before the last ALTER. */
  stale: boolean;
}

export interface Checkpoint {
  readonly mark: number;
  readonly tables: readonly ExpectedTable[];
}

export interface WorldOptions {
  readonly random: Random;
  readonly flavor: Flavor;
  readonly types: ColumnTypes;
  /** The session whose settings change. */
  readonly main: Client;
  /** A session in utf8mb4, UTC, without sql_mode: for what must work, and for the SELECTs. */
  readonly keeper: Client;
  readonly databases: readonly string[];
  /** What a database was like before it was dropped is asked later. */
  readonly asksLater: boolean;
  /** Rows of the log may lack columns: what is read again in their place may be newer than the place, so only the end can be compared. */
  readonly isPartial: boolean;
  /** The server logs updates without the generated columns, whatever the row image (MariaDB 11.8). */
  readonly omitsGenerated: boolean;
}

export const COUNTER = 'n';
export const MARKS = 'marks';

export class World {
  readonly random: Random;
  readonly flavor: Flavor;
  readonly types: ColumnTypes;
  readonly main: Client;
  readonly keeper: Client;
  readonly databases: readonly string[];
  readonly asksLater: boolean;
  readonly isPartial: boolean;
  readonly omitsGenerated: boolean;
  readonly checkpoints: Checkpoint[] = [];
  /** Tables that an open transaction holds. */
  readonly busy = new Set<string>();
  readonly #tables = new Map<string, WorldTable>();
  #number = 0;

  constructor(options: WorldOptions) {
    this.random = options.random;
    this.flavor = options.flavor;
    this.types = options.types;
    this.main = options.main;
    this.keeper = options.keeper;
    this.databases = options.databases;
    this.asksLater = options.asksLater;
    this.isPartial = options.isPartial;
    this.omitsGenerated = options.omitsGenerated;
  }

  /** A number that was never given before. */
  next(): number {
    this.#number += 1;
    return this.#number;
  }

  /** Of generated columns: MariaDB logs long virtual ones wrong where rows are versioned, so that these are read again. */
  get longTexts(): boolean {
    return this.flavor === 'mariadb' && this.isPartial && this.#number % 2 === 0;
  }

  get home(): string {
    return this.databases[0] as string;
  }

  newRef(): TableRef {
    return {
      database: this.random.chance(0.85) ? this.home : this.random.pick(this.databases),
      table: randomName(this.random, this.next()),
    };
  }

  newColumnName(): string {
    return randomName(this.random, this.next());
  }

  tables(fits: (table: WorldTable) => boolean = () => true): WorldTable[] {
    return [...this.#tables.values()].filter((table) => !this.busy.has(tableRefKey(table.ref)) && fits(table));
  }

  pick(fits?: (table: WorldTable) => boolean): WorldTable | undefined {
    const list = this.tables(fits);
    return list.length === 0 ? undefined : this.random.pick(list);
  }

  /** Asks the catalogue what became of a table. */
  async look(ref: TableRef, change: { stale?: boolean } = {}): Promise<WorldTable | undefined> {
    const found = await readTable(this.keeper, this.flavor, ref);
    const key = tableRefKey(ref);
    const former = this.#tables.get(key);
    if (found === undefined || !found.columns.some((column) => column.name === COUNTER)) {
      this.#tables.delete(key);
      return undefined;
    }
    const table: WorldTable = {
      ...found,
      stale: change.stale ?? former?.stale ?? false,
    };
    this.#tables.set(key, table);
    return table;
  }

  /**
   * A statement on definitions: by the session whose settings change, or by the other one, which always speaks UTF-8 (see the exclusions). The number of
   * its error, or 0.
   */
  async ddl(sql: string): Promise<number> {
    const client = this.random.chance(0.5) && this.main.speaksUtf8 ? this.main : this.keeper;
    return await client.attempt(sql, true);
  }

  /** Changes every row a little, so that all of them are in the log as they are now. */
  async touch(table: WorldTable): Promise<void> {
    if (!table.stale) return;
    await this.keeper.run(`UPDATE ${quoteTable(table.ref)} SET ${COUNTER} = ${COUNTER} + 1`);
    table.stale = false;
  }

  /** Of these tables, or of all that no open transaction holds. */
  async checkpoint(tables: readonly WorldTable[] = this.tables()): Promise<void> {
    const expected: ExpectedTable[] = [];
    for (const table of tables) {
      await this.touch(table);
      expected.push(await readTruth(this.keeper, table));
    }
    const mark = this.checkpoints.length + 1;
    await this.keeper.run(`INSERT INTO ${quoteTable({ database: this.home, table: MARKS })} VALUES (${mark})`);
    this.checkpoints.push({ mark, tables: expected });
  }
}
