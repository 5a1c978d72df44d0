/** Settings of the session and of the server under which the next statements are logged. */
import type { Flavor } from '../catalogue.ts';
import type { Client } from '../client.ts';
import type { World } from '../world.ts';
import type { Action } from './action.ts';

const ZONES = ["'+00:00'", "'-11:30'", "'+13:00'", "'SYSTEM'"];

const SESSION: Readonly<Record<string, readonly string[]>> = {
  time_zone: ZONES,
  sql_mode: [
    "''",
    "''",
    "''",
    "'ANSI_QUOTES'",
    "'NO_BACKSLASH_ESCAPES'",
    "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "'STRICT_ALL_TABLES'",
    "'ALLOW_INVALID_DATES'",
    "'PAD_CHAR_TO_FULL_LENGTH'",
    "'NO_AUTO_VALUE_ON_ZERO'",
  ],
  foreign_key_checks: ['0', '1'],
  timestamp: ['DEFAULT', '1000000000.123456', '1700000000'],
};
const SESSION_MYSQL: Readonly<Record<string, readonly string[]>> = {
  binlog_transaction_compression: ['ON', 'ON', 'OFF'],
  binlog_row_value_options: ["'PARTIAL_JSON'", "'PARTIAL_JSON'", "''"],
  binlog_rows_query_log_events: ['ON', 'OFF'],
  unique_checks: ['0', '1'],
  gtid_next: ["'AUTOMATIC'", "'AUTOMATIC:tag_1'"],
};
const SESSION_MARIADB: Readonly<Record<string, readonly string[]>> = {
  binlog_annotate_row_events: ['ON', 'OFF'],
  gtid_domain_id: ['0', '0', '7'],
  server_id: ['DEFAULT', '77'],
  binlog_alter_two_phase: ['ON', 'OFF'],
  binlog_direct_non_transactional_updates: ['ON', 'OFF'],
};
/** `FULL_NODUP` is MariaDB's from 11.4 on; others refuse it. */
const ROW_IMAGES = ["'MINIMAL'", "'NOBLOB'", "'FULL_NODUP'", "'FULL'"];
const GLOBAL: Readonly<Record<string, readonly string[]>> = { binlog_checksum: ["'CRC32'", "'CRC32'", "'NONE'"] };
const GLOBAL_MARIADB: Readonly<Record<string, readonly string[]>> = {
  log_bin_compress: ['ON', 'OFF'],
  log_bin_compress_min_len: ['10', '100', '256'],
};

async function session(world: World): Promise<void> {
  const { random, main, flavor } = world;
  const all = { ...SESSION, ...(flavor === 'mysql' ? SESSION_MYSQL : SESSION_MARIADB) };
  const name = random.pick(Object.keys(all));
  await main.attempt(`SET SESSION ${name} = ${random.pick(all[name] ?? [])}`);
}

/** What the client says its text is in. */
async function names(world: World): Promise<void> {
  const { random, main } = world;
  await main.setNames(random.pick(['utf8mb4', 'utf8mb4', 'utf8mb3', 'latin1', 'gbk', 'sjis', 'cp1251', 'koi8r']));
}

async function rowImage(world: World): Promise<void> {
  const { random, main, isPartial } = world;
  if (isPartial) await main.attempt(`SET SESSION binlog_row_image = ${random.pick(ROW_IMAGES)}`);
}

async function server(world: World): Promise<void> {
  const { random, keeper, flavor } = world;
  const all = { ...GLOBAL, ...(flavor === 'mariadb' ? GLOBAL_MARIADB : {}) };
  const name = random.pick(Object.keys(all));
  await keeper.attempt(`SET GLOBAL ${name} = ${random.pick(all[name] ?? [])}`);
}

/** As a server starts: what another seed set is no part of this one. */
export async function resetServer(client: Client, flavor: Flavor, metadata: string): Promise<void> {
  await client.run(`SET GLOBAL binlog_row_metadata = ${metadata}`);
  for (const name of Object.keys({ ...GLOBAL, ...(flavor === 'mariadb' ? GLOBAL_MARIADB : {}) })) {
    await client.run(`SET GLOBAL ${name} = DEFAULT`);
  }
}

async function rotate(world: World): Promise<void> {
  await world.keeper.attempt('FLUSH BINARY LOGS');
}

export const settingActions: readonly Action[] = [
  { name: 'session', weight: 8, run: session },
  { name: 'names', weight: 2, run: names },
  { name: 'row image', weight: 4, run: rowImage },
  { name: 'server', weight: 2, run: server },
  { name: 'rotate', weight: 1.5, run: rotate },
];
