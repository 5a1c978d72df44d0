/** ALTER TABLE and its kin. Before each, what the table holds is written down; after most, every row is touched. */
import { randomDefault } from '../column-types.ts';
import { isAscii, quoteName, quoteTable } from '../sql-text.ts';
import { COUNTER, type World, type WorldTable } from '../world.ts';
import type { Action } from './action.ts';
import { columnDefinition } from './create.ts';
import { changeRows } from './rows.ts';

interface Change {
  /** Behind `ALTER TABLE name`. */
  readonly sql: string;
  /** Rows may be named otherwise afterwards. */
  readonly rekeys: boolean;
}

function place(world: World, table: WorldTable, self = ''): string {
  const kind = world.random.below(4);
  if (kind === 0) return ' FIRST';
  const { name } = world.random.pick(table.columns);
  return kind === 1 && name !== self ? ` AFTER ${quoteName(name)}` : '';
}

/** Columns that may change without changing how rows are named. */
function free(table: WorldTable): string[] {
  return table.columns
    .filter(({ name, isBound }) => name !== COUNTER && !table.keyColumns.has(name) && !isBound)
    .map((column) => column.name);
}

/** Not of members that are not ASCII: the server keeps their bytes, whatever they are in the other charset. */
function conversion({ types }: World, table: WorldTable): Change | undefined {
  const charset = types.charset();
  const members = table.columns.filter(({ base }) => base === 'enum' || base === 'set');
  const isWide = WIDE.test(charset) || members.some((column) => WIDE.test(column.charset));
  const areKept = members.some((column) => isWide || !isAscii(column.type));
  return areKept ? undefined : { sql: `CONVERT TO${charset}`, rekeys: true };
}

const WIDE = /ucs2|utf16|utf32/;

/** What makes the server keep the history of the rows, or end it, or call its columns otherwise. */
function versioning(world: World, table: WorldTable): Change | undefined {
  const { random } = world;
  if (!table.versioned) return { sql: 'ADD SYSTEM VERSIONING', rekeys: false };
  const bounds = table.columns.filter(({ isBound }) => isBound).map(({ name }) => quoteName(name));
  const [bound] = bounds;
  if (bound !== undefined && random.chance(0.5)) {
    return { sql: `RENAME COLUMN ${bound} TO ${quoteName(world.newColumnName())}`, rekeys: false };
  }
  return { sql: ['DROP SYSTEM VERSIONING', ...bounds.map((name) => `DROP COLUMN ${name}`)].join(', '), rekeys: false };
}

function change(world: World, table: WorldTable): Change | undefined {
  const { random, types, flavor } = world;
  if (flavor === 'mariadb' && random.chance(0.1)) return versioning(world, table);
  const others = free(table);
  const kind = random.below(13);
  if (kind < 3) {
    const column = columnDefinition(world);
    return {
      sql: `ADD ${random.pick(['', 'COLUMN '])}${quoteName(world.newColumnName())} ${column.sql}${place(world, table)}`,
      rekeys: false,
    };
  }
  if (kind === 3) {
    const [a, b] = [columnDefinition(world), columnDefinition(world)];
    return {
      sql: `ADD COLUMN ${quoteName(world.newColumnName())} ${a.sql}${place(world, table)}, ADD COLUMN ${quoteName(world.newColumnName())} ${b.sql}`,
      rekeys: false,
    };
  }
  if (kind === 4) return conversion(world, table);
  if (kind === 5)
    return {
      sql: random.pick([
        'FORCE',
        'ENGINE=InnoDB',
        `COMMENT = 'RENAME TO x; DROP PARTITION p'`,
        'ROW_FORMAT=DYNAMIC',
        `DEFAULT${types.charset()}`,
        `ADD KEY (${COUNTER})`,
      ]),
      rekeys: false,
    };
  if (kind === 6 && table.key === 'primary' && random.chance(0.3))
    return { sql: random.pick(['DROP PRIMARY KEY', `DROP PRIMARY KEY, ADD PRIMARY KEY (${COUNTER})`]), rekeys: true };
  if (kind === 6 && table.key === 'none') return { sql: `ADD PRIMARY KEY (${COUNTER})`, rekeys: true };
  const name = others.length === 0 ? undefined : random.pick(others);
  if (kind === 7) {
    const bounds = new Set(table.columns.filter(({ isBound }) => isBound).map((column) => column.name));
    const key = [...table.keyColumns].filter((column) => column !== COUNTER && !bounds.has(column));
    if (key.length > 0 && random.chance(0.3)) {
      return {
        sql: `RENAME COLUMN ${quoteName(random.pick(key))} TO ${quoteName(world.newColumnName())}`,
        rekeys: true,
      };
    }
  }
  if (name === undefined) return undefined;
  if (kind < 9) return { sql: `DROP ${random.pick(['', 'COLUMN '])}${quoteName(name)}`, rekeys: false };
  if (kind === 9)
    return { sql: `RENAME COLUMN ${quoteName(name)} TO ${quoteName(world.newColumnName())}`, rekeys: false };
  const type = types.any();
  const [base, comment] = type.sql.split(' COMMENT ') as [string, string?];
  const definition = `${base}${randomDefault(random, base, flavor)}${comment === undefined ? '' : ` COMMENT ${comment}`}${place(world, table, name)}`;
  if (kind === 10)
    return {
      sql: `CHANGE ${quoteName(name)} ${quoteName(world.newColumnName())} ${definition}`,
      rekeys: false,
    };
  return {
    sql: `MODIFY ${random.pick(['', 'COLUMN '])}${quoteName(name)} ${definition}`,
    rekeys: false,
  };
}

export async function empty(world: World, table: WorldTable): Promise<void> {
  const name = quoteTable(table.ref);
  const keeps = world.random.chance(0.5) || table.versioned;
  await world.keeper.run(keeps ? `DELETE FROM ${name}` : `TRUNCATE TABLE ${name}`);
}

/** Comments and spellings that leave the statement the same. */
function alterVerb(world: World): string {
  return world.random.pick([
    'ALTER TABLE',
    'ALTER TABLE',
    'alter  table',
    '/* DROP TABLE x */ ALTER /**/ TABLE',
    'ALTER TABLE /*!50100 */',
    '-- RENAME TABLE a TO b\nALTER TABLE',
    '#\nALTER\tTABLE\n',
  ]);
}

async function alter(world: World): Promise<void> {
  const { random } = world;
  const table = world.pick();
  if (table === undefined) return;
  const wanted = change(world, table);
  if (wanted === undefined) return;
  await world.checkpoint([table]);
  if (wanted.rekeys || table.key === 'none') await empty(world, table);
  const failed = await world.ddl(
    `${alterVerb(world)} ${quoteTable(table.ref)} ${wanted.sql}${random.pick(['', '', ' /* RENAME TO y */', ' -- end', ' #'])}`,
  );
  const now = await world.look(table.ref, failed === 0 ? { stale: true } : {});
  if (now === undefined) throw new Error(`${table.ref.table} is gone after an ALTER`);
  // sometimes other changes come before the touch
  for (let i = random.below(3); i > 0; i -= 1) await changeRows(world, world.main, now);
  if (random.chance(0.8)) await world.touch(now);
}

async function truncate(world: World): Promise<void> {
  const { random } = world;
  const table = world.pick();
  if (table === undefined) return;
  await world.checkpoint([table]);
  await world.ddl(
    `${random.pick(['TRUNCATE TABLE', 'TRUNCATE', 'truncate /* DROP */ table'])} ${quoteTable(table.ref)}`,
  );
}

async function drop(world: World): Promise<void> {
  const { random } = world;
  const tables = random.shuffle(world.tables()).slice(0, random.pick([1, 1, 2]));
  if (tables.length === 0 || world.tables().length < 4) return;
  await world.checkpoint(tables);
  await world.ddl(
    `DROP TABLE ${random.pick(['', 'IF EXISTS '])}${tables.map((table) => quoteTable(table.ref)).join(', ')}${random.pick(['', ' RESTRICT', ' CASCADE'])}`,
  );
  for (const table of tables) await world.look(table.ref);
}

export const alterActions: readonly Action[] = [
  { name: 'alter', weight: 16, run: alter },
  { name: 'truncate', weight: 2, run: truncate },
  { name: 'drop', weight: 2, run: drop },
];
