import type { BinlogPosition, ChangeId, Column, SourcePosition, TableRef, TableSchema } from '@mysync/core';
import {
  type BinlogSource,
  type ServerIdentity,
  type Snapshot,
  type SnapshotOptions,
  type SourceItem,
  type StreamObserver,
  type StreamOptions,
  sourceErrors,
  type TableFate,
  type TableReader,
} from '@mysync/source-mysql';
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
/** `unseen`: changes of one table that happen without rows in the log. */
export type Transaction = readonly (
  | Change
  | { readonly truncate: string }
  | { readonly unseen: string; readonly changes: readonly Change[] }
)[];

/** A server: its log, from which its tables follow. */
export class TestServer {
  readonly transactions: Transaction[] = [];
  /** How many of them had happened when a view was opened or the log was read: time does not go back. */
  happened = 0;

  commit(...changes: Transaction): this {
    this.transactions.push(changes);
    return this;
  }

  /** Where the log ends. */
  get position(): SourcePosition {
    return this.positionAfter(this.transactions.length);
  }

  positionAfter(count: number): SourcePosition {
    return { file: FILE, offset: 4 + count * TRANSACTION_BYTES, gtidSet: '' };
  }

  /** `table:id` → state. */
  tables(count = this.transactions.length): Map<string, string> {
    const rows = new Map<string, string>();
    const flat: (Change | { readonly truncate: string })[] = [];
    for (const change of this.transactions.slice(0, count).flat()) {
      if ('unseen' in change) flat.push(...change.changes);
      else flat.push(change);
    }
    for (const change of flat) {
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
  readonly #ahead: number;
  /** Transactions that the stream has handed over. */
  #streamed = 0;
  /** Views that break off after so many items, one after the other. */
  readonly breaks: number[] = [];
  /** Views that do not show so many of the transactions that the log has already, one after the other. */
  readonly stale: number[] = [];
  readonly #encoder = new RowEncoder();
  /** Resolves what waits at the end of the log. */
  readonly atEnd: () => void;
  /** That of the stream. */
  observer: StreamObserver | undefined;
  /** Thrown by the stream once its end is reached. */
  failure: Error | null = null;

  constructor(
    server: TestServer,
    options: { captures: readonly string[]; pace: number; ahead?: number; atEnd?: () => void },
  ) {
    this.#server = server;
    this.#captures = options.captures;
    this.#pace = options.pace;
    this.#ahead = options.ahead ?? Number.POSITIVE_INFINITY;
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

  tableSchemas(): Promise<readonly TableSchema[]> {
    return Promise.resolve(this.#captures.map((table) => tableOf(table).schema));
  }

  fates(tables: readonly TableRef[]): Promise<readonly TableFate[]> {
    return Promise.resolve(tables.map((table) => ({ table, fate: 'left' })));
  }

  currentPosition(): Promise<SourcePosition> {
    return Promise.resolve(this.#server.position);
  }

  earliestPosition(): Promise<SourcePosition> {
    return Promise.resolve({ file: FILE, offset: 4, gtidSet: '' });
  }

  snapshot({ only }: Partial<SnapshotOptions> = {}): Promise<Snapshot> {
    const server = this.#server;
    const happened = Math.min(server.transactions.length, Math.max(this.#streamed + this.#ahead, server.happened));
    server.happened = happened;
    const count = only === undefined ? server.transactions.length : Math.max(0, happened - (this.stale.shift() ?? 0));
    const names = this.#captures.filter((name) => only === undefined || only.some(({ table }) => table === name));
    return Promise.resolve({
      position: server.positionAfter(count),
      serverUuid: SERVER.uuid,
      tables: names.map((table) => ({ database: 'shop', table })),
      gone: [],
      items: this.#snapshotItems(
        names,
        server.tables(count),
        server.positionAfter(count),
        only === undefined ? undefined : this.breaks.shift(),
      ),
      close: () => Promise.resolve(),
    });
  }

  async *stream({ from, signal, observer }: StreamOptions): AsyncGenerator<readonly SourceItem[]> {
    this.observer = observer;
    observer?.reads();
    const first = (from.offset - 4) / TRANSACTION_BYTES;
    for (const [index, transaction] of this.#server.transactions.entries()) {
      if (index < first) continue;
      this.#streamed = index;
      this.#server.happened = Math.max(this.#server.happened, index + 1);
      const items = this.#items(index, transaction);
      while (items.length > 0) {
        if (signal.aborted) return;
        if (items.length <= 3) this.#streamed = index + 1;
        yield items.splice(0, 3);
        for (let turns = this.#pace; turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
      }
    }
    if (this.#server.transactions.flat().some((change) => 'unseen' in change)) yield* this.#beats();
    this.atEnd();
    if (this.failure !== null) throw this.failure;
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    }
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  *#snapshotOf(
    table: string,
    rows: ReadonlyMap<string, string>,
    { file, offset }: BinlogPosition,
  ): Generator<SourceItem> {
    const block = this.#block({ file, offset, gtid: '', ordinal: 0 });
    for (const [key, state] of rows) {
      const [name, id] = key.split(':');
      if (name === table) yield this.#row(block, table, 'read', null, [Number(id), state], 0);
    }
    yield { kind: 'sweep', table: { database: 'shop', table }, statement: '', ordinal: 0 };
  }

  /** What a server says where nothing happens: for long enough that a table has rested after it was read. */
  async *#beats(): AsyncGenerator<readonly SourceItem[]> {
    for (let beat = 0; beat < 400; beat += 1) {
      yield [{ kind: 'keepalive', position: this.#server.position, timeMicros: 1 }];
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async *#snapshotItems(
    names: readonly string[],
    rows: ReadonlyMap<string, string>,
    position: BinlogPosition,
    breaksAfter = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<readonly SourceItem[]> {
    let left = breaksAfter;
    for (const table of names) {
      for (const item of this.#snapshotOf(table, rows, position)) {
        if (left === 0) throw sourceErrors.SOURCE_CONNECTION_LOST({ message: 'the view is lost' });
        left -= 1;
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
      if ('unseen' in change) continue;
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
    for (const change of transaction) {
      if (!('unseen' in change) || !this.#captures.includes(change.unseen)) continue;
      const table = { database: 'shop', table: change.unseen };
      items.push({ kind: 'unseen', table, cause: 'statement', statement: 'UPDATE', ordinal: items.length + 1 });
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
