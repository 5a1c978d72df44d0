import type { ChangeId, Column, SourcePosition } from '@mysync/core';
import type { BinlogSource, ServerIdentity, Snapshot, SourceItem, TableReader } from '@mysync/source-mysql';
import { compileTable, encodeTransaction, makeTableSchema, RowEncoder, type RowValues } from '@mysync/wire';

const column = (name: string, kind: Column['kind'], keyPosition = 0): Column => ({
  name,
  type: kind === 'int' ? 'int' : 'varchar(20)',
  kind,
  keyPosition,
  nullable: keyPosition === 0,
  charset: '',
  members: [],
});
const columns = [column('id', 'int', 1), column('state', 'text')];
const tableOf = (table: string) =>
  compileTable({ schema: makeTableSchema({ database: 'shop', table, columns, keyRule: 'primary' }) });

const FILE = 'bin.000001';
/** Bytes that a transaction takes in the log. */
const TRANSACTION_BYTES = 100;
const SERVER: ServerIdentity = { uuid: 'server-1', flavor: 'mariadb', version: '10.11' };

/** `state` null: the row is deleted. */
export interface Change {
  readonly table: string;
  readonly id: number;
  readonly state: string | null;
}
export type Transaction = readonly (Change | { readonly truncate: string })[];

/** A server: its log, from which its tables follow. */
export class TestServer {
  readonly transactions: Transaction[] = [];

  commit(...changes: Transaction): this {
    this.transactions.push(changes);
    return this;
  }

  /** Where the log ends. */
  get position(): SourcePosition {
    return { file: FILE, offset: 4 + this.transactions.length * TRANSACTION_BYTES, gtidSet: '' };
  }

  /** `table:id` → state. */
  tables(count = this.transactions.length): Map<string, string> {
    const rows = new Map<string, string>();
    for (const change of this.transactions.slice(0, count).flat()) {
      if ('truncate' in change) {
        for (const key of [...rows.keys()]) if (key.startsWith(`${change.truncate}:`)) rows.delete(key);
      } else if (change.state === null) {
        rows.delete(`${change.table}:${change.id}`);
      } else {
        rows.set(`${change.table}:${change.id}`, change.state);
      }
    }
    return rows;
  }
}

/** Reads the captured tables of a `TestServer`, in batches of a few items, and waits at the end of its log. */
export class TestSource implements BinlogSource {
  readonly #server: TestServer;
  readonly #captures: readonly string[];
  readonly #pace: number;
  readonly #encoder = new RowEncoder();
  /** Resolves what waits at the end of the log. */
  readonly atEnd: () => void;
  /** Thrown by the stream once its end is reached. */
  failure: Error | null = null;

  constructor(server: TestServer, options: { captures: readonly string[]; pace: number; atEnd?: () => void }) {
    this.#server = server;
    this.#captures = options.captures;
    this.#pace = options.pace;
    this.atEnd = options.atEnd ?? (() => undefined);
  }

  check(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  openTable(): Promise<TableReader> {
    throw new Error('a reader opens no table');
  }

  identify(): Promise<ServerIdentity> {
    return Promise.resolve(SERVER);
  }

  tableSchemas(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  currentPosition(): Promise<SourcePosition> {
    return Promise.resolve(this.#server.position);
  }

  earliestPosition(): Promise<SourcePosition> {
    return Promise.resolve({ file: FILE, offset: 4, gtidSet: '' });
  }

  snapshot(): Promise<Snapshot> {
    const { position } = this.#server;
    const tables = this.#captures.map((table) => ({ database: 'shop', table }));
    return Promise.resolve({
      position,
      serverUuid: SERVER.uuid,
      tables,
      items: this.#snapshotItems(this.#server.tables()),
      close: () => Promise.resolve(),
    });
  }

  async *stream({
    from,
    signal,
  }: {
    from: SourcePosition;
    signal: AbortSignal;
  }): AsyncGenerator<readonly SourceItem[]> {
    const first = (from.offset - 4) / TRANSACTION_BYTES;
    for (const [index, transaction] of this.#server.transactions.entries()) {
      if (index < first) continue;
      const items = this.#items(index, transaction);
      while (items.length > 0) {
        if (signal.aborted) return;
        yield items.splice(0, 3);
        for (let turns = this.#pace; turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
      }
    }
    this.atEnd();
    if (this.failure !== null) throw this.failure;
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  *#snapshotOf(table: string, rows: ReadonlyMap<string, string>): Generator<SourceItem> {
    const block = this.#block({ file: '', offset: 0, gtid: '', ordinal: 0 });
    for (const [key, state] of rows) {
      const [name, id] = key.split(':');
      if (name === table) yield this.#row(block, table, 'read', null, [Number(id), state], 0);
    }
    yield { kind: 'sweep', table: { database: 'shop', table }, statement: '', ordinal: 0 };
  }

  async *#snapshotItems(rows: ReadonlyMap<string, string>): AsyncGenerator<readonly SourceItem[]> {
    for (const table of this.#captures) {
      for (const item of this.#snapshotOf(table, rows)) {
        yield [item];
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  #items(index: number, transaction: Transaction): SourceItem[] {
    const offset = 4 + index * TRANSACTION_BYTES;
    const id = { file: FILE, offset, gtid: '', ordinal: 0 };
    const position = { file: FILE, offset: offset + TRANSACTION_BYTES, gtidSet: '' };
    const before = this.#server.tables(index);
    const block = this.#block(id);
    const items: SourceItem[] = [];
    for (const change of transaction) {
      const table = 'truncate' in change ? change.truncate : change.table;
      if (!this.#captures.includes(table)) continue;
      const ordinal = items.length + 1;
      if ('truncate' in change) {
        items.push({ kind: 'truncate', table: { database: 'shop', table }, statement: 'TRUNCATE', ordinal });
        continue;
      }
      const key = `${table}:${change.id}`;
      const old = before.get(key);
      const image: RowValues | null = old === undefined ? null : [change.id, old];
      if (change.state === null) {
        items.push(this.#row(block, table, 'delete', image ?? [change.id, ''], null, ordinal));
        before.delete(key);
      } else {
        const operation = image === null ? 'insert' : 'update';
        items.push(this.#row(block, table, operation, image, [change.id, change.state], ordinal));
        before.set(key, change.state);
      }
    }
    if (items.length === 0) return [{ kind: 'keepalive', position, timeMicros: 1 }];
    return [{ kind: 'begin', id, commitTimeMicros: 1 }, ...items, { kind: 'commit', position, ordinals: items.length }];
  }

  #block(id: ChangeId) {
    return encodeTransaction({ source: 'shop', serverUuid: SERVER.uuid, id, commitTimeMicros: 1 });
  }

  #row(
    block: ReturnType<typeof encodeTransaction>,
    table: string,
    operation: 'insert' | 'update' | 'delete' | 'read',
    before: RowValues | null,
    after: RowValues | null,
    ordinal: number,
  ): SourceItem {
    const change = { operation, eventFile: '', eventOffset: 0, ordinal, before, after };
    return this.#encoder.encode(tableOf(table), block, change);
  }
}
