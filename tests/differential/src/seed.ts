/** One seed: a history on the server, then the same read from its log. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileCheckpointStore, type SchemaHistoryStore } from '@mysync/checkpoint';
import { type SourcePosition, tableRefKey } from '@mysync/core';
import { TcpProxy } from '@mysync/harness';
import { type BinlogSource, createMysqlSource } from '@mysync/source-mysql';
import type { Action } from './actions/action.ts';
import { alterActions } from './actions/alter.ts';
import { createActions } from './actions/create.ts';
import { objectActions } from './actions/objects.ts';
import { renameActions } from './actions/rename.ts';
import { resetServer, settingActions } from './actions/settings.ts';
import { transactionActions } from './actions/transactions.ts';
import { type CharsetList, type Flavor, readCharsets } from './catalogue.ts';
import { Client, type ServerAddress } from './client.ts';
import { ColumnTypes } from './column-types.ts';
import type { Metadata, ServerKind } from './options.ts';
import { Random } from './random.ts';
import { type ReadingResult, readBack } from './reading.ts';
import { compareSnapshot } from './snapshot.ts';
import { quoteName, quoteTable } from './sql-text.ts';
import { MARKS, World } from './world.ts';

export interface SeedOptions {
  readonly seed: number;
  readonly server: ServerKind;
  readonly metadata: Metadata;
  readonly address: ServerAddress;
}

export interface SeedResult {
  readonly seed: number;
  /** Rows that were compared. */
  readonly rows: number;
  /** What is wrong; empty when nothing is. */
  readonly failures: readonly string[];
  /** Every statement, in order, with the server's errors. */
  readonly log: readonly string[];
}

const ACTIONS: readonly Action[] = [
  ...transactionActions,
  ...settingActions,
  ...createActions,
  ...alterActions,
  ...renameActions,
  ...objectActions,
];
const STEPS = 40;
const FIRST_TABLES = 3;
/** How long reading may wait for what is in the log. */
const DEADLINE_MS = 60_000;

const charsets = new Map<Flavor, CharsetList>();

export async function runSeed(options: SeedOptions): Promise<SeedResult> {
  const { seed, server, metadata, address } = options;
  const { flavor, omitsGenerated } = server;
  const log: string[] = [];
  const databases = [`d${seed}`, `d${seed}-b.ü`];
  const main = await Client.open(address, 'main', log);
  const keeper = await Client.open(address, 'keeper', log);
  let rows = 0;
  const failures: string[] = [];
  try {
    const list = charsets.get(flavor) ?? (await readCharsets(keeper, flavor));
    charsets.set(flavor, list);
    const random = new Random(seed);
    const types = new ColumnTypes(random, flavor, list);
    const breaksOff = random.chance(0.3);
    const isCut = !breaksOff && random.chance(0.15);
    const asksLater = metadata === 'minimal';
    // a draw of its own: the histories of all others stay what they were
    const isPartial = new Random(-seed).chance(0.25);
    const told = { asksLater, isPartial, omitsGenerated };
    const world = new World({ random, flavor, types, main, keeper, databases, ...told });
    await prepare(world, metadata);
    const schemas = await History.open(metadata === 'full' ? 'full' : 'history');
    const proxy = isCut ? await TcpProxy.open(address.port) : undefined;
    try {
      const open = opener(world, address, proxy?.port ?? address.port, schemas);
      const from = await start(world, open);
      await history(world);
      const cut = async (): Promise<void> => {
        await proxy?.close();
        await proxy?.listen();
      };
      const reading = { open, from, checkpoints: world.checkpoints, random, breaksOff, isPartial };
      const result = await within(readBack(isCut ? { ...reading, cut } : reading), DEADLINE_MS);
      rows = result.compared;
      failures.push(...result.differences);
      if (failures.length === 0 && random.chance(0.3)) failures.push(...(await snapshotOf(world, open, result)));
    } finally {
      await proxy?.close();
      await schemas.close();
    }
  } catch (error) {
    failures.push(errorText(error));
  } finally {
    await main.close();
    for (const name of databases) await keeper.attempt(`DROP DATABASE IF EXISTS ${quoteName(name)}`);
    await keeper.close();
  }
  return { seed, rows, failures, log };
}

type Open = () => BinlogSource;

/** What a reader keeps of definitions, in a folder of its own. */
class History {
  readonly #folder: string;
  readonly #store: FileCheckpointStore;
  readonly options: { readonly rowMetadata: 'full' | 'history'; readonly schemaHistory: SchemaHistoryStore };

  private constructor(folder: string, store: FileCheckpointStore, options: History['options']) {
    this.#folder = folder;
    this.#store = store;
    this.options = options;
  }

  static async open(rowMetadata: 'full' | 'history'): Promise<History> {
    const folder = await mkdtemp(join(tmpdir(), 'mysync-differential-'));
    const store = await FileCheckpointStore.open({ path: join(folder, 'checkpoint.json') });
    return new History(folder, store, { rowMetadata, schemaHistory: await store.schemaHistory() });
  }

  async close(): Promise<void> {
    await this.#store.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Sources that differ in what a reader may set. */
function opener({ random, databases }: World, address: ServerAddress, port: number, history: History): Open {
  return () =>
    createMysqlSource({
      name: 'differential',
      hosts: [{ host: address.host, port }],
      user: address.user,
      password: address.password,
      captures: (ref) => databases.includes(ref.database),
      tableRule: () => ({ noKey: 'row-hash' }),
      ...history.options,
      // rows of a transaction in a file, and a socket that is paused all the time, for some
      ...(random.chance(0.2) ? { spoolBytes: 5000 } : {}),
      ...(random.chance(0.2) ? { queueBytes: 1000 } : {}),
    });
}

/** Where reading begins: here, or behind the transactions executed so far, wherever the server finds that. */
async function start({ random }: World, open: Open): Promise<SourcePosition> {
  const source = open();
  const now = await source.currentPosition();
  await source.close();
  return random.chance(0.15) && now.gtidSet !== '' ? { ...now, file: '', offset: 0 } : now;
}

async function snapshotOf(world: World, open: Open, { copy, unseen }: ReadingResult): Promise<string[]> {
  const last = world.checkpoints.at(-1);
  if (last === undefined) return [];
  const tables = last.tables.filter(({ ref }) => !unseen.has(tableRefKey(ref)));
  const source = open();
  try {
    return await compareSnapshot(source, copy, { ...last, tables });
  } finally {
    await source.close();
  }
}

async function prepare({ random, keeper, main, databases, home, flavor }: World, metadata: Metadata): Promise<void> {
  const least = flavor === 'mysql' ? 'MINIMAL' : random.pick(['MINIMAL', 'NO_LOG']);
  await resetServer(keeper, flavor, metadata === 'full' ? 'FULL' : least);
  for (const name of databases) {
    await keeper.run(`DROP DATABASE IF EXISTS ${quoteName(name)}`);
    await keeper.run(`CREATE DATABASE ${quoteName(name)} CHARACTER SET utf8mb4`);
  }
  for (const client of [keeper, main]) {
    // a zero that is copied stays a zero
    await client.run(
      `SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', lock_wait_timeout = 2, innodb_lock_wait_timeout = 1`,
    );
    await client.run(`USE ${quoteName(home)}`);
    if (flavor === 'mariadb') await client.run('SET SESSION system_versioning_alter_history = KEEP');
    if (flavor === 'mysql') await client.run('SET SESSION show_gipk_in_create_table_and_information_schema = ON');
  }
  await keeper.run(`CREATE TABLE ${quoteTable({ database: home, table: MARKS })} (id INT PRIMARY KEY)`);
}

async function history(world: World): Promise<void> {
  const { random } = world;
  const usable = ACTIONS.filter((action) => action.only === undefined || action.only === world.flavor);
  const create = usable.find((action) => action.name === 'create') as Action;
  for (let i = 0; i < FIRST_TABLES; i += 1) await create.run(world);
  for (let i = 0; i < STEPS; i += 1) await random.weighted(usable).run(world);
  await world.checkpoint();
}

async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the end of the history did not come within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function errorText(error: unknown): string {
  const parts: string[] = [];
  for (let each = error; each instanceof Error && parts.length < 4; each = each.cause) {
    const where = 'where' in each ? ` ${JSON.stringify(each.where)}` : '';
    parts.push(`${each.message}${where}`);
  }
  const isOurs = error instanceof Error && !('code' in error);
  const stack = isOurs ? `\n${error.stack?.split('\n').slice(1, 6).join('\n')}` : '';
  return parts.length > 0 ? `${parts.join(': ')}${stack}` : String(error);
}
