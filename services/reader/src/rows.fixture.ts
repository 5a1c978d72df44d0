/** Rows of one table as they enter a window, and what is in their messages. */
import assert from 'node:assert/strict';
import {
  compileTable,
  encodeTransaction,
  MessageDecoder,
  makeTableSchema,
  RowEncoder,
  type RowMessage,
  type RowValues,
} from '@mysync/wire';
import type { WindowEntry } from './change-router.ts';

const column = (name: string, kind: 'int' | 'text', keyPosition: number) =>
  ({ name, type: kind, kind, keyPosition, nullable: keyPosition === 0, charset: '', members: [] }) as const;
/** shop.orders: id, region (a `partitionBy` column), note. */
const schema = makeTableSchema({
  database: 'shop',
  table: 'orders',
  columns: [column('id', 'int', 1), column('region', 'text', 0), column('note', 'text', 0)],
  keyRule: 'primary',
});
const plan = compileTable({ schema, partitionBy: ['region'] });
const encoder = new RowEncoder();

export function rowEntry(
  operation: 'insert' | 'update' | 'delete',
  before: RowValues | null,
  after: RowValues | null,
  gtid = '0-1-9',
): WindowEntry {
  const id = { file: 'binlog.000007', offset: 4711, gtid, ordinal: 0 };
  const block = encodeTransaction({ source: 's', serverUuid: 'u', id, commitTimeMicros: 1 });
  const change = { operation, eventFile: '', eventOffset: 0, ordinal: 3, before, after };
  const message = encoder.encode(plan, block, change);
  return { message, transaction: { id, commitTimeMicros: 1, counter: 9 }, ordinal: 3, versionOrdinal: 3 };
}

export function readRow({ message }: WindowEntry): RowMessage {
  const decoded = new MessageDecoder().decode(message.payload);
  assert.ok('schema' in decoded);
  return decoded;
}
