/** What stands beside tables: triggers, views, routines, temporary tables, foreign keys, sequences, whole databases. */
import { quoteName, quoteTable } from '../sql-text.ts';
import { COUNTER, type World } from '../world.ts';
import type { Action } from './action.ts';
import { createTable } from './create.ts';
import { changeRows, insertRows } from './rows.ts';

/** Rows that a trigger changes are in the same statement's events. */
async function trigger(world: World): Promise<void> {
  const { random, keeper } = world;
  const [table, other] = random.shuffle(world.tables());
  if (table === undefined || other === undefined) return;
  const name = quoteTable({ database: table.ref.database, table: `tr${world.next()}` });
  const event = random.pick(['INSERT', 'UPDATE', 'DELETE']);
  const body = random.pick([
    `UPDATE ${quoteTable(other.ref)} SET ${COUNTER} = ${COUNTER} + 1 ORDER BY ${COUNTER} LIMIT 2`,
    `DELETE FROM ${quoteTable(other.ref)} ORDER BY ${COUNTER} LIMIT 1`,
  ]);
  await keeper.attempt(`CREATE TRIGGER ${name} AFTER ${event} ON ${quoteTable(table.ref)} FOR EACH ROW ${body}`);
  for (let i = random.between(1, 3); i > 0; i -= 1) await changeRows(world, world.main, table);
  await keeper.attempt(`DROP TRIGGER ${name}`);
}

async function view(world: World): Promise<void> {
  const { random, keeper, main } = world;
  const table = world.pick();
  if (table === undefined) return;
  const name = quoteTable({ database: world.home, table: `v${world.next()}` });
  await keeper.attempt(`CREATE VIEW ${name} AS SELECT ${COUNTER} FROM ${quoteTable(table.ref)}`);
  await main.attempt(`UPDATE ${name} SET ${COUNTER} = ${COUNTER} + 1 LIMIT ${random.between(1, 4)}`);
  await keeper.attempt(`ALTER VIEW ${name} AS SELECT ${COUNTER} + 1 AS m FROM ${quoteTable(table.ref)}`);
  await keeper.attempt(`DROP VIEW ${name}`);
}

async function routine(world: World): Promise<void> {
  const { random, keeper, main } = world;
  const table = world.pick();
  if (table === undefined) return;
  const name = quoteTable({ database: world.home, table: `p${world.next()}` });
  const target = quoteTable(table.ref);
  await keeper.attempt(
    `CREATE PROCEDURE ${name}() BEGIN UPDATE ${target} SET ${COUNTER} = ${COUNTER} + 1; DELETE FROM ${target} ORDER BY ${COUNTER} LIMIT 1; END`,
  );
  await main.attempt(`CALL ${name}()`);
  await keeper.attempt(`DROP PROCEDURE ${name}`);
  if (random.chance(0.3)) await main.attempt(`DO SLEEP(0)`);
}

/** Nothing of it is in the log, although it has a captured table's name. */
async function temporary(world: World): Promise<void> {
  const { random, main } = world;
  const table = world.pick();
  if (table === undefined) return;
  const name = quoteTable(random.chance(0.5) ? table.ref : { database: world.home, table: `tmp${world.next()}` });
  await main.attempt(`CREATE TEMPORARY TABLE ${name} (id INT PRIMARY KEY, ${COUNTER} BIGINT, t TEXT)`);
  await main.attempt(`INSERT INTO ${name} VALUES (1, 1, 'a'), (2, 2, 'b')`);
  await main.attempt(`UPDATE ${name} SET id = id + 1 ORDER BY id DESC`);
  if (random.chance(0.3)) await main.attempt(`ALTER TABLE ${name} ADD COLUMN x INT`);
  if (random.chance(0.3)) await main.attempt(`TRUNCATE TABLE ${name}`);
  if (random.chance(0.3)) {
    const other = world.pick((each) => each !== table);
    if (other !== undefined) {
      await main.attempt(
        `UPDATE ${quoteTable(other.ref)} o, ${name} t SET o.${COUNTER} = o.${COUNTER} + 1 WHERE t.id = 2`,
      );
    }
  }
  await main.attempt(random.chance(0.5) ? `DROP TABLE ${name}` : `DROP TEMPORARY TABLE ${name}`);
}

/** Rows that the server changes by a foreign key are in MySQL's log from 9.6 on. */
async function foreignKey(world: World): Promise<void> {
  const { random, keeper, main } = world;
  const name = (text: string): string => quoteTable({ database: world.home, table: `${text}${number}` });
  const number = world.next();
  const rule = random.pick(['CASCADE', 'SET NULL']);
  await keeper.run(`CREATE TABLE ${name('parent')} (id INT PRIMARY KEY, ${COUNTER} BIGINT) ENGINE=InnoDB`);
  await keeper.run(
    `CREATE TABLE ${name('child')} (id INT PRIMARY KEY, p INT, ${COUNTER} BIGINT, FOREIGN KEY (p) REFERENCES ${name('parent')} (id) ON DELETE ${rule} ON UPDATE ${rule}) ENGINE=InnoDB`,
  );
  await main.attempt(`INSERT INTO ${name('parent')} VALUES (1, 1), (2, 2), (3, 3)`);
  await main.attempt(`INSERT INTO ${name('child')} VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3), (4, NULL, 4)`);
  await main.attempt(`DELETE FROM ${name('parent')} WHERE id = ${random.between(1, 2)}`);
  await main.attempt(`UPDATE ${name('parent')} SET id = id + 10`);
  const tables = [];
  for (const text of ['parent', 'child']) {
    const table = await world.look({ database: world.home, table: `${text}${number}` }, { stale: false });
    if (table !== undefined) tables.push(table);
  }
  await world.checkpoint(tables);
  await keeper.run(`DROP TABLE ${name('child')}, ${name('parent')}`);
  for (const table of tables) await world.look(table.ref);
}

async function sequence(world: World): Promise<void> {
  const { keeper, main } = world;
  const name = quoteTable({ database: world.home, table: `s${world.next()}` });
  await keeper.attempt(`CREATE SEQUENCE ${name} START WITH 1 INCREMENT BY 3 CACHE 2`);
  for (let i = world.random.between(1, 5); i > 0; i -= 1) await main.attempt(`DO NEXT VALUE FOR ${name}`);
  await keeper.attempt(`DROP SEQUENCE ${name}`);
}

/** A database that goes with all its tables, and is there again. */
async function database(world: World): Promise<void> {
  const { random, keeper } = world;
  // see the exclusions
  if (world.asksLater) return;
  const name = world.databases[1];
  const inside = (database: string): boolean => database === name;
  if (name === undefined || [...world.busy].some((key) => inside(key.split('\0')[0] ?? ''))) return;
  const tables = world.tables((table) => inside(table.ref.database));
  await world.checkpoint(tables);
  await keeper.attempt(
    `DROP ${random.pick(['DATABASE', 'SCHEMA'])} ${random.pick(['', 'IF EXISTS '])}${quoteName(name)}`,
  );
  await keeper.run(`CREATE DATABASE IF NOT EXISTS ${quoteName(name)} CHARACTER SET utf8mb4`);
  for (const table of tables) await world.look(table.ref);
  const again = tables[0];
  if (again === undefined || random.chance(0.5)) return;
  const made = await createTable(world, again.ref);
  if (made !== undefined) await insertRows(world, world.main, made);
}

export const objectActions: readonly Action[] = [
  { name: 'trigger', weight: 1.5, run: trigger },
  { name: 'view', weight: 0.5, run: view },
  { name: 'routine', weight: 0.5, run: routine },
  { name: 'temporary', weight: 1.5, run: temporary },
  { name: 'foreign-key', weight: 0.7, only: 'mysql', run: foreignKey },
  { name: 'sequence', weight: 0.5, only: 'mariadb', run: sequence },
  { name: 'database', weight: 0.5, run: database },
];
