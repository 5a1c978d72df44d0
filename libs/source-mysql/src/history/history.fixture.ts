/** For tests: a server that logs without full metadata, and a history in a folder of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  FileCheckpointStore,
  readSchemaHistoryFile,
  type SchemaHistoryEntry,
  schemaHistoryPath,
} from '@mysync/checkpoint';
import { type ColumnValue, compareBinlogPositions, type SourcePosition } from '@mysync/core';
import type { MysqlSourceOptions } from '../options.ts';
import type { SourceItem } from '../port.ts';
import { readItems, rowsOf, type TestDatabase } from '../testing.fixture.ts';

/** Each with the least that its server logs. */
export const SCANTY = [
  { flavor: 'mariadb', metadata: 'NO_LOG' },
  { flavor: 'mariadb', metadata: 'MINIMAL' },
  { flavor: 'mysql', metadata: 'MINIMAL' },
] as const;

export class TestHistory {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<TestHistory> {
    return new TestHistory(await mkdtemp(join(tmpdir(), 'mysync-history-')));
  }

  get path(): string {
    return join(this.folder, 'test.json');
  }

  /** Reads as a process of its own would: opens the store, streams up to the log's end now, closes it. */
  async read(
    db: TestDatabase,
    from: SourcePosition,
    more: Partial<MysqlSourceOptions> = {},
    to?: SourcePosition,
  ): Promise<SourceItem[]> {
    const store = await FileCheckpointStore.open({ path: this.path });
    const source = db.source({ rowMetadata: 'history', schemaHistory: await store.schemaHistory(), ...more });
    try {
      const items = await readItems(source, from, to);
      const last = to === undefined ? -1 : items.findIndex((item) => endsAt(item, to));
      return last < 0 ? items : items.slice(0, last + 1);
    } finally {
      await source.close();
      await store.close();
    }
  }

  async entries(): Promise<readonly SchemaHistoryEntry[]> {
    return (await readSchemaHistoryFile(schemaHistoryPath(this.path)))?.entries ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

function endsAt(item: SourceItem, to: SourcePosition): boolean {
  if (item.kind !== 'commit' && item.kind !== 'keepalive') return false;
  return compareBinlogPositions(item.position, to) >= 0;
}

export type TextRecord = Readonly<Record<string, string | null>>;

/** Rows as the server shows them now. */
export async function shown(db: TestDatabase, sql: string): Promise<TextRecord[]> {
  const [rows] = await db.sql.query(sql);
  return (rows as TextRecord[]).map((row) => ({ ...row }));
}

/** The rows after their changes, in the order of the log, as text. */
export function afterImages(items: readonly SourceItem[], table?: string): TextRecord[] {
  return rowsOf(items)
    .filter((row) => row.after !== null && (table === undefined || row.table === table))
    .map(({ after }) => asText(after));
}

function asText(row: Readonly<Record<string, ColumnValue>> | null): TextRecord {
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [
      name,
      value === null ? null : value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value),
    ]),
  );
}

/** Statements run one after the other; after each that changes rows, what the server shows of the newest row is kept. */
export class Script {
  readonly #db: TestDatabase;
  readonly expected: TextRecord[] = [];

  constructor(db: TestDatabase) {
    this.#db = db;
  }

  async run(...statements: readonly string[]): Promise<this> {
    await this.#db.run(...statements);
    return this;
  }

  /** Inserts, and remembers what `SELECT` shows of it. */
  async row(insert: string, select: string): Promise<this> {
    await this.#db.run(insert);
    this.expected.push(...(await shown(this.#db, select)));
    return this;
  }
}
