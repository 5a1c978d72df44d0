/** New tables: made of columns, like another one, or of another one's rows. */
import type { TableRef } from '@mysync/core';
import { randomDefault } from '../column-types.ts';
import { quoteName, quoteTable } from '../sql-text.ts';
import { COUNTER, type World, type WorldTable } from '../world.ts';
import type { Action } from './action.ts';
import { insertRows } from './rows.ts';

const MOST_TABLES = 6;

/** A column's definition behind its name. */
export function columnDefinition(world: World): { readonly sql: string } {
  const { random, types, flavor } = world;
  if (random.chance(0.12) && (world.isPartial || !world.omitsGenerated)) return { sql: generated(world) };
  const type = types.any();
  const nullable = random.chance(0.75) ? random.pick(['', ' NULL']) : ' NOT NULL';
  const none = / NULL$/.test(type.sql);
  const [base, comment] = type.sql.split(' COMMENT ') as [string, string?];
  const invisible = random.chance(0.08) ? ' INVISIBLE' : '';
  const fallback = randomDefault(random, base, flavor);
  // MariaDB takes an invisible column without a default only when it may be NULL, and gives old rows a text that is no JSON
  const mustBeNull = flavor === 'mariadb' && fallback === '' && (invisible !== '' || comment !== undefined);
  const isNull = none || mustBeNull ? '' : nullable;
  return {
    sql: `${base}${isNull}${fallback}${invisible}${comment === undefined ? '' : ` COMMENT ${comment}`}`,
  };
}

function generated(world: World): string {
  const { random } = world;
  const kind = random.pick(['STORED', 'VIRTUAL']);
  return random.pick([
    `BIGINT AS (${COUNTER} * 2) ${kind}`,
    `${world.longTexts ? 'TEXT' : 'VARCHAR(40)'} AS (CONCAT('v', ${COUNTER} % 7)) ${kind}`,
    `DECIMAL(20,3) GENERATED ALWAYS AS (${COUNTER} / 3) ${kind}`,
    `DOUBLE AS (${COUNTER} / 7) ${kind}`,
    `VARBINARY(20) AS (UNHEX(LPAD(HEX(${COUNTER}), 10, '0'))) ${kind}`,
  ]);
}

interface KeyPlan {
  /** Columns, with NOT NULL, and the key's own clause. */
  readonly parts: string[];
  readonly names: readonly string[];
  readonly kind: 'primary' | 'unique' | 'none';
}

function keyPlan(world: World): KeyPlan {
  const { random, types } = world;
  const chosen = random.below(10);
  if (chosen === 0) return { parts: [], names: [], kind: 'none' };
  if (chosen < 4) {
    const name = quoteName(world.newColumnName());
    return {
      parts: [`${name} BIGINT${random.pick(['', ' UNSIGNED'])} NOT NULL AUTO_INCREMENT`, `PRIMARY KEY (${name})`],
      names: [name],
      kind: 'primary',
    };
  }
  const count = random.pick([1, 1, 2, 3]);
  const columns = Array.from({ length: count }, () => ({
    name: quoteName(world.newColumnName()),
    type: types.keyable(),
  }));
  const definitions = columns.map(({ name, type }) => `${name} ${type.sql} NOT NULL`);
  const names = columns.map((column) => column.name);
  const order = random.shuffle(names).map((name) => name + (random.chance(0.1) ? ' DESC' : ''));
  const kind = chosen < 9 ? 'primary' : 'unique';
  const clause =
    kind === 'primary'
      ? `PRIMARY KEY (${order.join(', ')})`
      : `UNIQUE KEY ${quoteName(world.newColumnName())} (${order.join(', ')})`;
  return { parts: [...definitions, clause], names, kind };
}

interface Versioning {
  /** Of the period, and its own clause; none where it is hidden. */
  readonly parts: readonly string[];
  readonly option: string;
  readonly partitions: string;
}

const UNVERSIONED: Versioning = { parts: [], option: '', partitions: '' };

/** Whether the server keeps the history of the rows, in hidden columns or in such as the table has. */
function versioning(world: World): Versioning {
  const { random, flavor } = world;
  if (flavor !== 'mariadb' || !random.chance(0.25)) return UNVERSIONED;
  const partitions = random.chance(0.2)
    ? ` PARTITION BY SYSTEM_TIME LIMIT ${random.between(3, 20)} (PARTITION p0 HISTORY, PARTITION p1 HISTORY, PARTITION pc CURRENT)`
    : '';
  const option = ' WITH SYSTEM VERSIONING';
  if (random.chance(0.5)) return { parts: [], option, partitions };
  const [start, end] = [quoteName(world.newColumnName()), quoteName(world.newColumnName())];
  const definition = (bound: string): string =>
    `TIMESTAMP(6) ${random.pick(['', 'GENERATED ALWAYS '])}AS ROW ${bound}${random.pick(['', ' INVISIBLE'])}`;
  const parts = [
    `${start} ${definition('START')}`,
    `${end} ${definition('END')}`,
    `PERIOD FOR SYSTEM_TIME (${start}, ${end})`,
  ];
  return { parts, option, partitions };
}

function tableOptions(world: World, key: KeyPlan, { option, partitions: ofHistory }: Versioning): string {
  const { random, types, flavor } = world;
  const engine = random.chance(0.8)
    ? ''
    : random.pick(
        flavor === 'mariadb'
          ? [' ENGINE=MyISAM', ' ENGINE=Aria', ' ENGINE=Aria TRANSACTIONAL=0', ' ENGINE=MEMORY']
          : [' ENGINE=MyISAM', ' ENGINE=MEMORY'],
      );
  const format =
    engine === '' && random.chance(0.2)
      ? random.pick([' ROW_FORMAT=COMPRESSED', ' ROW_FORMAT=REDUNDANT', ' ROW_FORMAT=COMPACT'])
      : '';
  const charset = random.chance(0.3) ? ` DEFAULT${types.charset()}` : '';
  if (ofHistory !== '') return `${engine}${format}${charset}${option}${ofHistory}`;
  const partitions =
    // MySQL takes the quotes from such a name, and then cannot read it
    key.kind === 'primary' && engine === '' && !key.names.some((name) => /^`\d/.test(name)) && random.chance(0.1)
      ? ` PARTITION BY KEY (${key.names.join(', ')}) PARTITIONS ${random.between(1, 4)}`
      : '';
  return `${engine}${format}${charset}${option}${partitions}`;
}

export async function createTable(world: World, ref: TableRef, how = 'CREATE TABLE'): Promise<WorldTable | undefined> {
  const { random } = world;
  const key = keyPlan(world);
  const others = Array.from({ length: random.between(0, 7) }, () => ({
    name: world.newColumnName(),
    ...columnDefinition(world),
  }));
  const versioned = versioning(world);
  const columns = random.shuffle([
    `${COUNTER} BIGINT NOT NULL`,
    ...versioned.parts.slice(0, 2),
    ...key.parts.slice(0, key.names.length),
    ...others.map(({ name, sql }) => `${quoteName(name)} ${sql}${unversioned(world, versioned, sql)}`),
  ]);
  const clauses = [...columns, ...key.parts.slice(key.names.length), ...versioned.parts.slice(2)];
  if (random.chance(0.1)) clauses.push(`KEY (${COUNTER})`);
  await world.ddl(`${how} ${quoteTable(ref)} (${clauses.join(', ')})${tableOptions(world, key, versioned)}`);
  return await world.look(ref, { stale: false });
}

/** Changes of some columns leave no history. */
function unversioned({ random }: World, { option }: Versioning, sql: string): string {
  return option !== '' && !/\bAS \(/.test(sql) && random.chance(0.1) ? ' WITHOUT SYSTEM VERSIONING' : '';
}

async function create(world: World): Promise<void> {
  if (world.tables().length >= MOST_TABLES) return;
  const table = await createTable(world, world.newRef());
  if (table === undefined) return;
  for (let i = world.random.below(3); i >= 0; i -= 1) await insertRows(world, world.main, table);
}

/** Gone, and another one of the same name. */
async function recreate(world: World): Promise<void> {
  const { random, flavor } = world;
  const table = world.pick();
  if (table === undefined) return;
  await world.checkpoint([table]);
  let how = 'CREATE TABLE';
  if (flavor === 'mariadb' && random.chance(0.4)) how = 'CREATE OR REPLACE TABLE';
  else await world.ddl(`DROP TABLE ${random.pick(['', 'IF EXISTS '])}${quoteTable(table.ref)}`);
  const made = await createTable(world, table.ref, how);
  if (made !== undefined) await insertRows(world, world.main, made);
}

async function createLike(world: World): Promise<void> {
  const table = world.pick();
  if (table === undefined || world.tables().length >= MOST_TABLES) return;
  const ref = world.newRef();
  await world.ddl(`CREATE TABLE ${quoteTable(ref)} ${world.random.pick(['LIKE', 'LIKE'])} ${quoteTable(table.ref)}`);
  const made = await world.look(ref, { stale: false });
  if (made !== undefined) await insertRows(world, world.main, made);
}

/** Its rows are in the log beside its definition. */
async function createSelect(world: World): Promise<void> {
  const { random } = world;
  const table = world.pick();
  if (table === undefined || world.tables().length >= MOST_TABLES) return;
  const ref = world.newRef();
  const visible = table.columns.map((column) => quoteName(column.name)).join(', ');
  const engine = random.chance(0.2) ? ' ENGINE=MyISAM' : '';
  await world.ddl(
    `CREATE TABLE ${quoteTable(ref)}${engine} ${random.pick(['', 'AS '])}SELECT ${visible} FROM ${quoteTable(table.ref)}`,
  );
  await world.look(ref, { stale: false });
}

export const createActions: readonly Action[] = [
  { name: 'create', weight: 7, run: create },
  { name: 'recreate', weight: 2, run: recreate },
  { name: 'like', weight: 1.5, run: createLike },
  { name: 'select', weight: 2, run: createSelect },
];
