/** Tables under other names: alone, in chains, in place of each other, as the tools that copy a table do it. */
import type { TableRef } from '@mysync/core';
import { quoteName, quoteTable } from '../sql-text.ts';
import type { World, WorldTable } from '../world.ts';
import type { Action } from './action.ts';
import { empty } from './alter.ts';
import { columnDefinition } from './create.ts';
import { changeRows, insertRows } from './rows.ts';

async function arrived(world: World, from: TableRef, to: TableRef): Promise<WorldTable | undefined> {
  await world.look(from);
  return await world.look(to, { stale: true });
}

async function rename(world: World): Promise<void> {
  const { random } = world;
  const table = world.pick();
  if (table === undefined) return;
  await world.checkpoint([table]);
  const to = world.newRef();
  const [a, b] = [quoteTable(table.ref), quoteTable(to)];
  await world.ddl(
    random.pick([
      `RENAME TABLE ${a} TO ${b}`,
      `ALTER TABLE ${a} RENAME TO ${b}`,
      `ALTER TABLE ${a} RENAME ${b}`,
      `ALTER TABLE ${a} RENAME = ${b}`,
      `ALTER TABLE ${a} RENAME AS ${b}`,
      `RENAME /* TO c */ TABLE ${a} -- x\n TO ${b}`,
    ]),
  );
  const now = await arrived(world, table.ref, to);
  if (now !== undefined) await world.touch(now);
}

/** a to b to c in one statement, backwards so that each name is free. */
async function chain(world: World): Promise<void> {
  const { random } = world;
  const tables = random.shuffle(world.tables()).slice(0, 2);
  const [first, second] = tables;
  if (first === undefined || second === undefined) return;
  await world.checkpoint(tables);
  // a table that takes the name of another one brings none of its rows along: see the exclusions
  for (const table of tables) await empty(world, table);
  const free = world.newRef();
  const [a, b, c] = [quoteTable(first.ref), quoteTable(second.ref), quoteTable(free)];
  const swaps = random.chance(0.5);
  await world.ddl(
    swaps ? `RENAME TABLE ${a} TO ${c}, ${b} TO ${a}, ${c} TO ${b}` : `RENAME TABLE ${b} TO ${c}, ${a} TO ${b}`,
  );
  for (const ref of [first.ref, second.ref, free]) {
    const now = await world.look(ref, { stale: true });
    if (now !== undefined) await insertRows(world, world.main, now);
  }
}

/** gh-ost and pt-online-schema-change: a copy with another shape, filled, then put in place. */
async function ghost(world: World): Promise<void> {
  const { random, keeper } = world;
  const table = world.pick((each) => each.key === 'primary');
  if (table === undefined) return;
  const copy: TableRef = { database: table.ref.database, table: `_${world.next()}_gho` };
  const old: TableRef = { database: table.ref.database, table: `_${world.next()}_del` };
  if ((await world.ddl(`CREATE TABLE ${quoteTable(copy)} LIKE ${quoteTable(table.ref)}`)) !== 0) return;
  const column = columnDefinition(world);
  await world.ddl(`ALTER TABLE ${quoteTable(copy)} ADD COLUMN ${quoteName(world.newColumnName())} ${column.sql}`);
  await changeRows(world, world.main, table);
  const names = table.columns
    .filter((each) => !each.generated)
    .map((each) => quoteName(each.name))
    .join(', ');
  await keeper.attempt(
    `INSERT IGNORE INTO ${quoteTable(copy)} (${names}) SELECT ${names} FROM ${quoteTable(table.ref)}`,
  );
  const count = async (ref: TableRef): Promise<string> =>
    (await keeper.rows(`SELECT COUNT(*) FROM ${quoteTable(ref)}`))[0]?.[0] ?? '';
  if ((await count(copy)) === (await count(table.ref))) {
    await world.checkpoint([table]);
    await world.ddl(
      `RENAME TABLE ${quoteTable(table.ref)} TO ${quoteTable(old)}, ${quoteTable(copy)} TO ${quoteTable(table.ref)}`,
    );
    const now = await world.look(table.ref, { stale: true });
    if (now !== undefined && random.chance(0.8)) await world.touch(now);
  }
  await world.ddl(`DROP TABLE IF EXISTS ${quoteTable(copy)}, ${quoteTable(old)}`);
}

export const renameActions: readonly Action[] = [
  { name: 'rename', weight: 3, run: rename },
  { name: 'chain', weight: 1.5, run: chain },
  { name: 'ghost', weight: 2, run: ghost },
];
