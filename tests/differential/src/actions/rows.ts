/** Changes of rows, as statements of one table or two. */
import type { CatalogueColumn } from '../catalogue.ts';
import type { Client } from '../client.ts';
import { jsonChange } from '../json-values.ts';
import { quoteName, quoteTable } from '../sql-text.ts';
import { randomValue } from '../values.ts';
import { COUNTER, type World, type WorldTable } from '../world.ts';

const MOST_ROWS = 25;
/** How far apart counters begin, so that adding one a few times never makes two rows equal. */
const COUNTER_STEP = 1000;

function written(table: WorldTable): CatalogueColumn[] {
  return table.columns.filter((column) => !column.generated && column.name !== COUNTER);
}

function valueFor(world: World, column: CatalogueColumn): string {
  return randomValue(world.random, column, world.flavor);
}

function rowList(world: World, columns: readonly CatalogueColumn[], count: number): string {
  const rows = Array.from(
    { length: count },
    () => `(${[...columns.map((column) => valueFor(world, column)), String(world.next() * COUNTER_STEP)].join(', ')})`,
  );
  return rows.join(', ');
}

export async function insertRows(world: World, client: Client, table: WorldTable): Promise<void> {
  const { random } = world;
  // what is left out gets its default
  const columns = random.chance(0.8) ? written(table) : random.some(written(table), 0.8);
  const names = [...columns.map((column) => quoteName(column.name)), COUNTER].join(', ');
  const count = random.chance(0.05) ? MOST_ROWS : random.between(1, 5);
  const verb = random.pick(['INSERT', 'INSERT', 'INSERT', 'INSERT IGNORE', 'REPLACE']);
  const upsert =
    verb === 'INSERT' && random.chance(0.2) && columns.length > 0
      ? ` ON DUPLICATE KEY UPDATE ${assignments(world, table, 2)}`
      : '';
  await client.attempt(
    `${verb} INTO ${quoteTable(table.ref)} (${names}) VALUES ${rowList(world, columns, count)}${upsert}`,
  );
}

function assignments(world: World, table: WorldTable, most: number): string {
  const { random } = world;
  const columns = random.shuffle(written(table)).slice(0, random.between(0, most));
  const parts = columns.map((column) => {
    const name = quoteName(column.name);
    if (column.base === 'json' && random.chance(0.7)) return `${name} = ${jsonChange(random, name)}`;
    return `${name} = ${valueFor(world, column)}`;
  });
  return [...parts, `${COUNTER} = ${COUNTER} + 1`].join(', ');
}

function condition(world: World, table: WorldTable, prefix = ''): string {
  const { random } = world;
  const counter = `${prefix}${COUNTER}`;
  if (random.chance(0.1)) return '1 = 1';
  const column = random.pick(table.columns);
  if (random.chance(0.15)) return `${prefix}${quoteName(column.name)} IS ${random.pick(['', 'NOT '])}NULL`;
  const modulus = random.between(2, 5);
  return `(${counter} DIV ${COUNTER_STEP}) % ${modulus} = ${random.below(modulus)}`;
}

export async function updateRows(world: World, client: Client, table: WorldTable): Promise<void> {
  const { random } = world;
  const ignore = random.chance(0.2) ? ' IGNORE' : '';
  const limit = random.chance(0.3) ? ` ORDER BY ${COUNTER} LIMIT ${random.between(1, 4)}` : '';
  await client.attempt(
    `UPDATE${ignore} ${quoteTable(table.ref)} SET ${assignments(world, table, 4)} WHERE ${condition(world, table)}${limit}`,
  );
}

export async function deleteRows(world: World, client: Client, table: WorldTable): Promise<void> {
  const { random } = world;
  const limit = random.chance(0.5) ? ` ORDER BY ${COUNTER} LIMIT ${random.between(1, 3)}` : '';
  await client.attempt(`DELETE FROM ${quoteTable(table.ref)} WHERE ${condition(world, table)}${limit}`);
}

/** Two tables in one statement. */
async function joined(world: World, client: Client, table: WorldTable, other: WorldTable): Promise<void> {
  const { random } = world;
  if (other === table) return;
  const from = `${quoteTable(table.ref)} a, ${quoteTable(other.ref)} b`;
  const where = `${condition(world, table, 'a.')} AND ${condition(world, other, 'b.')}`;
  if (random.chance(0.3)) {
    await client.attempt(`DELETE ${random.pick(['a', 'b', 'a, b'])} FROM ${from} WHERE ${where}`);
    return;
  }
  const columns = random.shuffle(written(table)).slice(0, 2);
  const sets = [
    ...columns.map((column) => `a.${quoteName(column.name)} = ${valueFor(world, column)}`),
    `a.${COUNTER} = a.${COUNTER} + 1`,
    `b.${COUNTER} = b.${COUNTER} + 1`,
  ];
  await client.attempt(`UPDATE ${from} SET ${sets.join(', ')} WHERE ${where}`);
}

/** Rows of a table into the same one, under other counters; keys of their own where a key column can be computed. */
async function insertSelect(world: World, client: Client, table: WorldTable): Promise<void> {
  if (table.key === 'none') return;
  const columns = written(table);
  const names = columns.map((column) => quoteName(column.name));
  const values = columns.map((column) => {
    const value = table.keyColumns.has(column.name) ? valueFor(world, column) : 'DEFAULT';
    return value === 'DEFAULT' ? quoteName(column.name) : value;
  });
  const target = quoteTable(table.ref);
  await client.attempt(
    `INSERT IGNORE INTO ${target} (${[...names, COUNTER].join(', ')}) SELECT ${[...values, `${COUNTER} + ${world.next() * 10_000_000}`].join(', ')} FROM ${target} ORDER BY ${COUNTER} LIMIT 5`,
  );
}

/** A statement that changes rows of the table, through that session; perhaps of one of `others` too. */
export async function changeRows(
  world: World,
  client: Client,
  table: WorldTable,
  others: readonly WorldTable[] = world.tables(),
): Promise<void> {
  const { random } = world;
  if (table.versioned && random.chance(0.05)) {
    await client.attempt(`DELETE HISTORY FROM ${quoteTable(table.ref)}`);
    return;
  }
  const kind = random.below(20);
  if (kind < 9) await insertRows(world, client, table);
  else if (kind < 14) await updateRows(world, client, table);
  else if (kind < 17) await deleteRows(world, client, table);
  else if (kind < 19) await joined(world, client, table, random.pick(others));
  else await insertSelect(world, client, table);
}
