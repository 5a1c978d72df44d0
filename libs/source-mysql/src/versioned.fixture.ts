/** For tests of system-versioned tables: a server with full metadata and one without, and what its SELECT shows held against a copy. */
import assert from 'node:assert/strict';
import { startServer, type TestServer } from '@mysync/harness';
import { TestHistory } from './history/history.fixture.ts';
import type { SourceItem } from './port.ts';
import { type DecodedRow, readItems, readSnapshot, replay, TestDatabase } from './testing.fixture.ts';

export const VERSIONS = ['10.11', '11.8'] as const;
export const EXPLICIT = 's TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END';
export const PERIOD = 'PERIOD FOR SYSTEM_TIME(s, e)';

export class VersionedTables {
  readonly full: TestDatabase;
  readonly scanty: TestDatabase;
  readonly #servers: readonly TestServer[];

  private constructor(full: TestDatabase, scanty: TestDatabase, servers: readonly TestServer[]) {
    this.full = full;
    this.scanty = scanty;
    this.#servers = servers;
  }

  static async open(version: (typeof VERSIONS)[number]): Promise<VersionedTables> {
    const env = { MARIADB_VERSION: version };
    const fullServer = await startServer('mariadb', { env });
    const full = await TestDatabase.create('mariadb', fullServer);
    const scantyServer = await startServer('mariadb', { env, args: ['--binlog-row-metadata=NO_LOG'] });
    const scanty = await TestDatabase.create('mariadb', scantyServer);
    for (const db of [full, scanty]) {
      await db.run("SET time_zone = '+00:00'", 'SET system_versioning_alter_history = KEEP');
    }
    return new VersionedTables(full, scanty, [fullServer, scantyServer]);
  }

  /** The stream's items at once, with the catalogue of the end. */
  async streamed(db: TestDatabase, ...statements: readonly string[]): Promise<SourceItem[]> {
    const source = db.source();
    const from = await source.currentPosition();
    await db.run(...statements);
    try {
      if (db === this.full) return await readItems(source, from);
      await using kept = await TestHistory.create();
      return await kept.read(db, from);
    } finally {
      await source.close();
    }
  }

  async close(): Promise<void> {
    for (const db of [this.full, this.scanty]) await db.close();
    for (const server of this.#servers) await server.wipe();
  }
}

export async function emptied(db: TestDatabase): Promise<void> {
  const tables = await db.select(`SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '${db.name}'`);
  await db.run(...tables.map(([name]) => `DROP TABLE ${name}`));
}

/** The state is that which the server's SELECT shows, under the names that a snapshot gives the rows. */
export async function assertCopies(db: TestDatabase, state: ReadonlyMap<string, DecodedRow>): Promise<void> {
  const tables = await db.select(`SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '${db.name}'`);
  for (const [name] of tables) {
    const columns = await db.select(
      `SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '${db.name}' AND TABLE_NAME = '${name}' ORDER BY ORDINAL_POSITION`,
    );
    const rows = await db.select(`SELECT ${columns.join(', ')} FROM ${name}`);
    const copied = [...state.values()].filter((row) => row.table === name);
    const texts = copied.map((row) =>
      Object.values(row.after ?? {}).map((value) => (value === null ? null : String(value))),
    );
    const order = (list: (string | null)[][]): string[] => list.map((row) => JSON.stringify(row)).sort();
    // equal rows of a table without a key are one
    assert.deepEqual([...new Set(order(texts))], [...new Set(order(rows))], `${name}`);
    for (const { after: image } of copied) {
      assert.deepEqual(Object.keys(image ?? {}), columns.flat(), `columns of ${name}`);
    }
  }
  const source = db.source();
  const { items } = await readSnapshot(source);
  await source.close();
  assert.deepEqual([...state.keys()].sort(), [...replay(items).keys()].sort());
}

export function ofUnseen(items: readonly SourceItem[]): string[] {
  return items.flatMap((item) => (item.kind === 'unseen' ? [`${item.table.table} ${item.cause}`] : []));
}
