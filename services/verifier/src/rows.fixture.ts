import type { Column, RowKey } from '@mysync/core';
import type { SourceRow, TableReader } from '@mysync/source-mysql';
import { compileTable, decodeKey, encodeTransaction, makeTableSchema, RowEncoder } from '@mysync/wire';

const column = (name: string, kind: Column['kind'], keyPosition = 0): Column => ({
  name,
  type: kind === 'int' ? 'int' : 'varchar(20)',
  kind,
  keyPosition,
  nullable: keyPosition === 0,
  charset: '',
  members: [],
});

/** A table of `id` and a text, as the source hands its rows out; a new schema where it has another column. */
export const planOf = (...more: readonly string[]) =>
  compileTable({
    schema: makeTableSchema({
      database: 'shop',
      table: 'orders',
      columns: [column('id', 'int', 1), column('state', 'text'), ...more.map((name) => column(name, 'text'))],
      keyRule: 'primary',
    }),
  });

const transaction = encodeTransaction({
  source: 'shop',
  serverUuid: 'server-1',
  id: { file: '', offset: 0, gtid: '', ordinal: 0 },
  commitTimeMicros: 0,
});

export function rowOf(plan: ReturnType<typeof planOf>, id: number, state: string): SourceRow {
  const after = plan.schema.columns.map((_, at) => (at === 0 ? id : at === 1 ? state : null));
  const change = { operation: 'read', eventFile: '', eventOffset: 0, ordinal: 0, before: null, after } as const;
  return new RowEncoder().encode(plan, transaction, change);
}

export function idOf(key: RowKey): number {
  return Number(key.values[0]);
}

export function keyOf(row: SourceRow): RowKey {
  const decoded = decodeKey(row.key);
  if (decoded.kind !== 'row') throw new TypeError('no row key');
  return decoded.row;
}

/** What a reader does when it comes to the chunk that begins with this id. */
export type Break = (id: number) => void;

/** Two rows at once, in the order of their ids. */
export function readerOf(
  plan: ReturnType<typeof planOf>,
  rows: readonly SourceRow[],
  { isCut = true, onChunk = () => undefined }: { readonly isCut?: boolean; readonly onChunk?: Break } = {},
): TableReader {
  let isScanning = false;
  return {
    table: { database: 'shop', table: 'orders' },
    schema: plan.schema,
    estimatedRows: rows.length,
    isCut,
    chunks: async function* (after?: RowKey) {
      const first = after === undefined || !isCut ? 0 : rows.findIndex((row) => idOf(keyOf(row)) > idOf(after));
      isScanning = !isCut;
      for (let at = first; at >= 0 && at < rows.length; at += 2) {
        await Promise.resolve();
        onChunk(idOf(keyOf(rows[at] as SourceRow)));
        yield rows.slice(at, at + 2);
      }
      isScanning = false;
    },
    rows: (keys) => {
      // as a connection that is amid a result: nobody would ever answer
      if (isScanning) return Promise.reject(new Error('the connection is amid a result'));
      const wanted = new Set(keys.map(idOf));
      return Promise.resolve(rows.filter((row) => wanted.has(idOf(keyOf(row)))));
    },
    close: () => Promise.resolve(),
  };
}
